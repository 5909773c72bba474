"""One run of a campaign: producers with acks=all and a reader, while faults come; what must hold is looked at all along.

At the end everything is healed. Then all that was acknowledged is read, once and in order, and all replicas are equal.
Batches of one producer are in order, and none is there twice, whatever was retried; what was not acknowledged may be
there or not.
"""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from dataplane.tasks import Task, gather
from tests.simulation.ambushes import Ambushes
from tests.simulation.cluster import SETTINGS, SimulatedCluster
from tests.simulation.invariants import MIN_INSYNC_REPLICAS, Invariants, ViolationError
from tests.simulation.operators import Operators
from tests.simulation.pace import Pace

TOPIC = "orders"
PARTITIONS = 2
ROUNDS = 6
HEALED_WITHIN_S = 90.0
READ_AGAIN = 50
CAMPAIGN_SETTINGS = replace(
    SETTINGS, replica_fetch_max_bytes=300, replica_fetch_wait_max_ms=500, usage_topic_num_partitions=1
)
"""Who was away catches up in many steps, and something may happen between them. Else as little as possible happens."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run shows. `violation`: None where everything held."""

    seed: int
    violation: str | None
    acknowledged: int
    faults: dict[str, int]
    virtual_s: float
    cpu_s: float
    trace: tuple[int, tuple[tuple[float, str], ...]]


def prepare() -> None:
    """A process that runs many seeds: whose session ends says so at length, and here it happens all the time."""
    logging.disable()
    gc.freeze()  # what is imported is no garbage after any of them


def run(seed: int, *, rounds: int = ROUNDS) -> Outcome:
    """A whole run from a seed."""
    began = time.process_time()
    campaign = _Campaign(seed)
    violation = None
    try:
        with _garbage_kept():
            campaign.whole(rounds)
    except Exception as error:  # noqa: BLE001 - whatever a broker raises ends its run, and is found
        violation = f"{type(error).__name__}: {error}"
    cluster = campaign.cluster
    return Outcome(
        seed,
        violation,
        len(campaign.acknowledged),
        campaign.faults.counts,
        cluster.network.clock.monotonic(),
        time.process_time() - began,
        cluster.trace,
    )


class _AllFaults(Ambushes, Operators):
    """Plain ones, those that lie in wait, and what operators do."""


@contextmanager
def _garbage_kept() -> Iterator[None]:
    """Looking for cycles again and again takes a fifth of a run's time: once is enough, at its end."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()
            gc.collect()


class _Campaign:
    def __init__(self, seed: int) -> None:
        self.cluster = SimulatedCluster(seed, settings=CAMPAIGN_SETTINGS)
        self.faults = _AllFaults(self.cluster, TOPIC, PARTITIONS)
        self.invariants = Invariants(self.cluster, TOPIC, PARTITIONS)
        self.pace = Pace(self.cluster)
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self._over = False

    def whole(self, rounds: int) -> None:
        cluster = self.cluster
        cluster.until(cluster.up)
        cluster.create_topic(TOPIC, PARTITIONS, min_insync_replicas=str(MIN_INSYNC_REPLICAS))
        faults = Task(self._faults(rounds))
        writers = [Task(self._write(partition)) for partition in range(PARTITIONS)]
        readers = [Task(self._read(partition)) for partition in range(PARTITIONS)]
        self._until(lambda: faults.done, 40.0 * rounds, "the faults did not end")
        faults.result()
        self._over = True
        everything = Task(gather([*writers, *readers]))
        self._until(lambda: everything.done, HEALED_WITHIN_S, "all is healed, and a client does not get on")
        everything.result()
        self._until(
            lambda: cluster.up() and cluster.in_sync(TOPIC) and self._all_committed(),
            HEALED_WITHIN_S,
            "all is healed, and replicas are not in sync",
        )
        self._check_the_end()

    def _until(self, condition: Callable[[], bool], within_s: float, otherwise: str) -> None:
        try:
            self.cluster.until(condition, within_s)
        except TimeoutError:
            raise ViolationError(f"{otherwise}, after {within_s:.0f} s") from None

    def _all_committed(self) -> bool:
        """A new leader's high watermark is behind, until its followers have asked."""
        logs = [p for b in self.cluster.brokers.values() for p in b.replicas.partitions() if p.is_leader]
        return all(partition.high_watermark == partition.log.end_offset for partition in logs)

    async def _faults(self, rounds: int) -> None:
        await self.faults.campaign(rounds)

    async def _write(self, partition: int) -> None:
        client, ids = self.cluster.client, self.cluster.ids
        producer_id = await client.producer_id(ids)
        number = sequence = 0
        while not self._over:
            values = [f"{partition}-{number}-{place}".encode() for place in range(1 + number % 3)]
            base = await client.produce(TOPIC, partition, values, producer_id, sequence, ids)
            self.invariants.acknowledged(partition, base + len(values) - 1)
            sequence += len(values)
            for place, value in enumerate(values):
                if self.acknowledged.setdefault((partition, base + place), value) != value:
                    raise ViolationError(f"offset {base + place} of {partition} was acknowledged twice")
            number += 1
            await self.pace.rest(0.05, 0.5)

    async def _read(self, partition: int) -> None:
        """What is new, and a little of what was read before; all of it at the end."""
        client, ids = self.cluster.client, self.cluster.ids
        end = 0
        while not self._over:
            for offset, value in await client.read_all(TOPIC, partition, ids, max(0, end - READ_AGAIN)):
                self.invariants.read(partition, offset, value)
                end = offset + 1
            await self.pace.rest(0.25, 1.0)

    def _check_the_end(self) -> None:
        self.invariants.compare_logs(all_of_them=True)
        ends: set[tuple[Any, ...]] = set()
        for broker, running in self.cluster.brokers.items():
            logs = [running.logs.get(f"simulate.{TOPIC}", partition) for partition in range(PARTITIONS)]
            assert all(logs), f"broker {broker} has lost a log"
            ends.add(tuple(log.end_offset for log in logs if log is not None))
        assert len(ends) == 1, f"replicas end at different offsets: {sorted(ends)}"
        for partition in range(PARTITIONS):
            read = dict(self.cluster.run(self.cluster.client.read_all(TOPIC, partition, self.cluster.ids)))
            for offset, value in read.items():
                self.invariants.read(partition, offset, value)
            self._check_partition(partition, read)

    def _check_partition(self, partition: int, read: dict[int, bytes]) -> None:
        wanted = {offset: value for (place, offset), value in self.acknowledged.items() if place == partition}
        lost = {offset: value for offset, value in wanted.items() if read.get(offset) != value}
        if lost:
            raise ViolationError(f"partition {partition}: {len(lost)} acknowledged records are lost, first {min(lost)}")
        in_order = [read[offset] for offset in sorted(read)]
        expected = sorted(in_order, key=_number)
        if in_order != expected or len(set(in_order)) != len(in_order):
            raise ViolationError(f"partition {partition}: records are doubled or out of order")


def _number(value: bytes) -> tuple[int, ...]:
    return tuple(int(part) for part in value.split(b"-"))
