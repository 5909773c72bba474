"""Seeded faults: whatever happens to the brokers, what was acknowledged at acks=all is there, once and in order.

The schedule kills, restarts, pauses and separates brokers and elects leaders from the ISR, as the controller would. At
the end everything heals, and every replica must hold the same log.
"""

from __future__ import annotations

from random import Random

import pytest

from dataplane.protocol.errors import ErrorCode
from tests.dataplane.replication.cluster import TOPIC, Produced, ReplicatedCluster


class Run:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.cluster = ReplicatedCluster(seed=seed)
        self.cluster.create(min_insync_replicas="2")
        self.cluster.run(0.5)
        self.down: list[int] = []
        self.produced: list[tuple[str, Produced]] = []
        self.number = 0

    @property
    def state(self):
        return self.cluster.controller.states[TOPIC, 0]

    def step(self) -> None:
        action = self.random.choice(["produce"] * 12 + ["kill", "start", "cut", "heal", "move", "pause"])
        getattr(self, action)()
        self.cluster.run(self.random.choice([0.001, 0.01, 0.05, 0.5]))
        self.check_high_watermarks()

    def produce(self) -> None:
        leader = self.state.leader
        if leader not in self.down:
            for _ in range(self.random.randint(1, 4)):
                self.number += 1
                value = str(self.number)
                self.produced.append((value, self.cluster.produce(leader, value)))

    def kill(self) -> None:
        victim = self.random.choice([1, 2, 3])
        if self.down or victim in self.down:
            return
        self.down.append(victim)
        self.cluster.kill(victim)
        self.cluster.forget(victim)
        if self.state.leader == victim:
            self.elect([b for b in self.state.isr if b != victim])

    def start(self) -> None:
        for broker_id in self.down:
            self.cluster.start(broker_id)
            self.down.remove(broker_id)
            self.cluster.tell(told=(broker_id,))
            if self.state.leader == broker_id:
                self.elect([broker_id])

    def move(self) -> None:
        self.elect([b for b in self.state.isr if b not in self.down])

    def elect(self, candidates: list[int]) -> None:
        if candidates:
            leader = self.random.choice(candidates)
            isr = tuple(b for b in self.state.isr if b not in self.down)
            told = [b for b in (1, 2, 3) if b not in self.down]
            self.random.shuffle(told)
            late = told[:1] if self.random.random() < 0.3 else []  # one hears of it later
            self.cluster.elect(leader, isr, told=tuple(b for b in told if b not in late))
            self.cluster.run(self.random.choice([0.0, 0.01, 0.3]))
            self.cluster.tell(told=tuple(late))

    def cut(self) -> None:
        a, b = self.random.sample([1, 2, 3], 2)
        self.cluster.network.cut(f"b{a}", f"b{b}", both_ways=self.random.random() < 0.5)

    def heal(self) -> None:
        self.cluster.network.heal_all()

    def pause(self) -> None:
        host = f"b{self.random.choice([1, 2, 3])}"
        self.cluster.network.pause(host)
        self.cluster.run(self.random.choice([0.1, 3.0]))
        self.cluster.network.resume(host)

    def check_high_watermarks(self) -> None:
        for broker in self.cluster.brokers.values():
            partition = broker.partition() if broker.id not in self.down else None
            if partition is not None:
                assert partition.state.high_watermark <= partition.log.end_offset

    def settle(self) -> None:
        self.heal()
        self.start()
        self.cluster.tell()
        self.cluster.run(30)

    def acknowledged(self) -> dict[int, bytes]:
        """By the offset that was promised."""
        done = [(value, produced) for value, produced in self.produced if produced.code == ErrorCode.NONE]
        return {produced.appended.base_offset: value.encode() for value, produced in done}


@pytest.mark.parametrize("seed", range(25))
def test_nothing_acknowledged_is_lost_doubled_or_reordered(seed: int):
    run = Run(seed)
    for _ in range(120):
        run.step()
    run.settle()
    logs = [run.cluster[broker_id].values() for broker_id in (1, 2, 3)]
    assert logs[0] == logs[1] == logs[2]
    assert len(set(logs[0])) == len(logs[0])
    acknowledged = run.acknowledged()
    assert {offset: logs[0][offset : offset + 1] for offset in acknowledged} == {
        offset: [value] for offset, value in acknowledged.items()
    }
    assert acknowledged
    assert sorted(run.state.isr) == [1, 2, 3]
    again = run.cluster.produce(run.state.leader, "all is well")
    run.cluster.run(0.5)
    assert again.code == ErrorCode.NONE


def test_a_seed_replays_bit_for_bit():
    def digest() -> tuple[int, dict[int, bytes]]:
        run = Run(3)
        for _ in range(60):
            run.step()
        return run.cluster.network.digest, run.acknowledged()

    assert digest() == digest()
