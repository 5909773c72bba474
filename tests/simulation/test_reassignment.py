"""Partitions move between four brokers while producers write, and while a broker dies in the middle: nothing is lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from dataplane.controller.controller import Controller, NewTopic
from dataplane.tasks import Task, gather
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.invariants import Invariants

TOPIC, PHYSICAL = "orders", "simulate.orders"
BEFORE = {0: (1, 2, 3), 1: (2, 3, 1)}
AFTER = {0: (4, 2, 1), 1: (3, 4)}
BATCHES = 60
DIE = ["the controller", "the leader", "the new replica", "nobody"]


class Moving:
    """A cluster with a topic on three of its four brokers, producers, and an operator."""

    def __init__(self, seed: int) -> None:
        self.cluster = SimulatedCluster(seed, brokers=4)
        self.cluster.until(self.cluster.up)
        topic = NewTopic(PHYSICAL, assignment=BEFORE, config={"min.insync.replicas": "2"})
        self.cluster.run(self._ask(lambda controller: controller.create_topics([topic])))
        self.invariants = Invariants(self.cluster, TOPIC, len(BEFORE))
        self.acknowledged: dict[tuple[int, int], bytes] = {}

    def run(self, operator: Any) -> None:
        """Until the operator is done and the producers have written everything."""
        done = Task(gather([Task(operator), *(Task(self._write(partition)) for partition in BEFORE)]))
        self.cluster.until(lambda: done.done, within_s=300)
        done.result()
        self.cluster.until(lambda: all(self.in_sync(index) for index in BEFORE))

    async def _write(self, partition: int) -> None:
        client, ids = self.cluster.client, self.cluster.ids
        producer_id = await client.producer_id(ids)
        sequence = 0
        for number in range(BATCHES):
            values = [f"{partition}-{number}-{place}".encode() for place in range(1 + number % 3)]
            base = await client.produce(TOPIC, partition, values, producer_id, sequence, ids)
            sequence += len(values)
            self.acknowledged |= {(partition, base + place): value for place, value in enumerate(values)}
            await client.sleep(0.1)

    async def _ask(self, question: Any) -> Any:
        """Of whoever is the controller; again where it is not any more."""
        while True:
            for broker in list(self.cluster.brokers.values()):
                answer = await question(broker.controller) if broker.controller.is_active else None
                if answer is not None:
                    return answer
            await self.cluster.client.sleep(0.1)

    async def reassign(self, targets: Mapping[int, Sequence[int] | None]) -> None:
        wanted = {(PHYSICAL, index): target for index, target in targets.items()}
        while wanted:  # what is refused now may be possible when a broker is back
            outcomes = await self._ask(partial(Controller.reassign, wanted=wanted))
            wanted = {key: wanted[key] for key, refusal in outcomes.items() if refusal is not None}
            await self.cluster.client.sleep(0.1 if wanted else 0.0)

    async def over(self) -> None:
        while await self._ask(lambda controller: controller.reassigned()):
            await self.cluster.client.sleep(0.1)

    async def die(self, who: str) -> None:
        """Somewhere in the middle; and back after a while."""
        cluster = self.cluster
        await cluster.client.sleep(cluster.random.uniform(0.0, 0.4))
        victim = {
            "the controller": next((n for n, b in cluster.brokers.items() if b.controller.is_active), 1),
            "the leader": await cluster.client.leader(TOPIC, 0, cluster.ids),
            "the new replica": 4,
        }.get(who)
        if victim in cluster.brokers:
            cluster.kill(victim)
            await cluster.client.sleep(3 + cluster.random.random())
            cluster.start(victim)

    def in_sync(self, index: int) -> bool:
        """Everybody knows all replicas, and that all are in sync."""
        found = [broker.metadata.partition(PHYSICAL, index) for broker in self.cluster.brokers.values()]
        return all(p is not None and p.has_leader and sorted(p.isr) == sorted(p.replicas) for p in found)

    def check(self, expected: Mapping[int, Sequence[int]]) -> None:
        """Replicas are where they shall be and nowhere else, all equal, and what was acknowledged is in them."""
        self.cluster.until(lambda: self.places() == {index: sorted(target) for index, target in expected.items()}, 30)
        self.invariants.compare_logs()
        read = {
            (partition, offset): value
            for partition in BEFORE
            for offset, value in self.cluster.run(self.cluster.client.read_all(TOPIC, partition, self.cluster.ids))
        }
        assert read == self.acknowledged
        assert len(read) == len(BEFORE) * sum(1 + number % 3 for number in range(BATCHES))

    def places(self) -> dict[int, list[int]]:
        """The brokers that have a log of each partition."""
        return {
            index: [n for n, b in sorted(self.cluster.brokers.items()) if b.logs.get(PHYSICAL, index) is not None]
            for index in BEFORE
        }


@pytest.mark.parametrize("who", DIE)
@pytest.mark.parametrize("seed", range(2))
def test_what_was_acknowledged_moves_along_whoever_dies_in_the_middle(seed: int, who: str) -> None:
    moving = Moving(100 + seed)

    async def operator() -> None:
        await moving.reassign(AFTER)
        await moving.die(who)
        await moving.over()

    moving.run(operator())
    moving.check(AFTER)
    assert moving.cluster.brokers[1].metadata.partition(PHYSICAL, 0).replicas == AFTER[0]


@pytest.mark.parametrize("seed", range(3))
def test_cancelled_or_replaced_in_the_middle_all_is_where_the_last_word_wants_it(seed: int) -> None:
    moving = Moving(200 + seed)

    async def operator() -> None:
        await moving.reassign(AFTER)
        await moving.cluster.client.sleep(moving.cluster.random.uniform(0.0, 0.05))
        await moving.reassign({1: (4, 1)})
        await moving.die("the controller")
        await moving.over()
        await moving.reassign(BEFORE)
        await moving.over()

    moving.run(operator())
    moving.check(BEFORE)
