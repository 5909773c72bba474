"""A workload: a topic of its own, clients that use it until the faults are over, and a look at what it holds then."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tests.simulation.invariants import MIN_INSYNC_REPLICAS, Invariants, ViolationError
from tests.simulation.producer import Batch, Producer

if TYPE_CHECKING:
    from dataplane.replication.replica.partition import Partition
    from tests.simulation.cluster import SimulatedCluster
    from tests.simulation.pace import Pace


@dataclass
class Shared:
    """What all workloads of a run have in common."""

    cluster: SimulatedCluster
    pace: Pace
    random: Random
    is_over: bool = False
    is_to_be_calm: bool = False  # no faults, for a while


class Workload:
    """Of one topic. What is acknowledged with acks=all is there at the end, once and in order."""

    TOPIC: str
    PARTITIONS = 1
    CONFIG: Mapping[str, str] = MappingProxyType({})
    IS_PROMPT = True
    """Whether nothing but the network is waited for, while nothing is wrong."""

    def __init__(self, shared: Shared) -> None:
        self.shared, self.cluster, self.pace = shared, shared.cluster, shared.pace
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self._producers: dict[str, Producer] = {}

    # --- what a campaign calls ----------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Before anything goes wrong."""
        self.cluster.create_topic(
            self.TOPIC, self.PARTITIONS, min_insync_replicas=str(MIN_INSYNC_REPLICAS), **self.CONFIG
        )
        self.invariants = self._make_invariants()

    def _make_invariants(self) -> Invariants:
        return Invariants(self.cluster, self.TOPIC, self.PARTITIONS)

    def clients(self) -> list[Coroutine[Any, Any, None]]:
        """They end when it is over."""
        return [self.write("a")]

    def check(self) -> None:
        """All is healed and in sync. Raises ViolationError."""
        self.invariants.compare_logs(all_of_them=True)
        self.check_ends()
        for partition in range(self.PARTITIONS):
            read = dict(self.cluster.run(self.cluster.client.read_all(self.TOPIC, partition, self.cluster.ids)))
            for offset, value in read.items():
                self.invariants.read(partition, offset, value)
            self.check_partition(partition, read)

    # --- what its clients do ------------------------------------------------------------------------------------------

    def records(self, writer: str, partition: int, number: int) -> list[tuple[bytes, bytes]]:
        """Of a batch: key, value."""
        return [(b"k", f"{writer}-{partition}-{number}-{place}".encode()) for place in range(1 + number % 3)]

    async def write(self, writer: str, *, in_flight: int = 5, busy_s: float = 0.05, quiet_s: float = 0.5) -> None:
        """A producer with a name."""
        await self.write_while(
            writer, lambda: self.pace.rest(busy_s, quiet_s), lambda: self.shared.is_over, in_flight=in_flight
        )

    async def write_while(
        self, writer: str, rest: Callable[[], Awaitable[None]], is_over: Callable[[], bool], *, in_flight: int = 5
    ) -> None:
        """The same with another pace, and another end."""
        self._producers[writer] = producer = Producer(
            self.cluster,
            self.TOPIC,
            self.PARTITIONS,
            lambda partition, number: self.records(writer, partition, number),
            self._acknowledged,
            in_flight=in_flight,
        )
        await producer.run(rest, is_over)

    def _acknowledged(self, partition: int, base: int, batch: Batch, took_s: float) -> None:
        if self.IS_PROMPT:
            self.pace.took(took_s, f"acks=all of {self.TOPIC}-{partition}")
        self.invariants.acknowledged(partition, base + len(batch.records) - 1)
        for place, (_, value) in enumerate(batch.records):
            if self.acknowledged.setdefault((partition, base + place), value) != value:
                raise ViolationError(f"offset {base + place} of {self.TOPIC}-{partition} was acknowledged twice")

    # --- looking at it ------------------------------------------------------------------------------------------------

    def leader(self, partition: int = 0) -> Partition:
        """The replica that leads, when all is well."""
        for running in self.cluster.brokers.values():
            found = running.replicas.registry.get(f"simulate.{self.TOPIC}", partition)
            if found is not None and found.state.is_leader:
                return found
        raise ViolationError(f"nobody leads {self.TOPIC}-{partition}")

    def check_ends(self) -> None:
        """All replicas end at the same offsets."""
        ends: set[tuple[int, ...]] = set()
        for broker, running in self.cluster.brokers.items():
            logs = [running.logs.get(f"simulate.{self.TOPIC}", partition) for partition in range(self.PARTITIONS)]
            if not all(logs):
                raise ViolationError(f"broker {broker} has lost a log of {self.TOPIC}")
            ends.add(tuple(log.end_offset for log in logs if log is not None))
        if len(ends) != 1:
            raise ViolationError(f"replicas of {self.TOPIC} end at different offsets: {sorted(ends)}")

    def check_partition(self, partition: int, read: dict[int, bytes], start: int = 0) -> None:
        """What is read from `start` on, against what was acknowledged and sent."""
        wanted = {offset: value for (place, offset), value in self.acknowledged.items() if place == partition}
        lost = {offset: value for offset, value in wanted.items() if offset >= start and read.get(offset) != value}
        if lost:
            raise ViolationError(
                f"{self.TOPIC}-{partition}: {len(lost)} acknowledged records are lost, first {min(lost)}"
            )
        if len(set(read.values())) != len(read):
            raise ViolationError(f"{self.TOPIC}-{partition}: records are doubled")
        by_writer: dict[str, list[tuple[int, ...]]] = {}
        for offset in sorted(read):
            writer, *numbers = read[offset].decode().split("-")
            by_writer.setdefault(writer, []).append(tuple(int(number) for number in numbers))
        for writer, producer in self._producers.items():
            found = by_writer.get(writer, [])
            if found != sorted(found):
                raise ViolationError(f"{self.TOPIC}-{partition}: records are out of order")
            if found and found[-1][1] >= producer.sent[partition]:
                raise ViolationError(f"{self.TOPIC}-{partition}: a record that nobody has sent")
