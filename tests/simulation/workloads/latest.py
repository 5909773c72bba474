"""A compacted topic: of every key the newest that was acknowledged is there, or a newer one, on every replica."""

from __future__ import annotations

from collections.abc import Coroutine
from types import MappingProxyType
from typing import Any

from dataplane.records.batch import read_records
from dataplane.storage.log import lookup
from tests.simulation.invariants import Invariants, ViolationError
from tests.simulation.producer import Batch
from tests.simulation.workloads.base import Workload

KEYS = 6


class Latest(Workload):
    """See the module. What a key's values are called rises: the number of the batch and the place in it."""

    TOPIC = "latest"
    CONFIG = MappingProxyType({"cleanup_policy": "compact"})

    def prepare(self) -> None:
        super().prepare()
        self._newest: dict[bytes, tuple[int, int]] = {}

    def _make_invariants(self) -> Invariants:
        return Invariants(self.cluster, self.TOPIC, self.PARTITIONS, are_logs_equal=False)

    def clients(self) -> list[Coroutine[Any, Any, None]]:
        return [self.write("a"), self._look()]

    def records(self, writer: str, partition: int, number: int) -> list[tuple[bytes, bytes]]:
        made = super().records(writer, partition, number)
        return [(b"key-%d" % ((number * 3 + place) % KEYS), value) for place, (_, value) in enumerate(made)]

    def _acknowledged(self, partition: int, base: int, batch: Batch, took_s: float) -> None:
        super()._acknowledged(partition, base, batch, took_s)
        for place, (key, _) in enumerate(batch.records):
            self._newest[key] = max(self._newest.get(key, (-1, -1)), (batch.number, place))

    async def _look(self) -> None:
        """A reader meets segments that are replaced under it. What it misses a new leader may just not show yet."""
        while not self.shared.is_over:
            await self.cluster.client.read_all(self.TOPIC, 0, self.cluster.ids)
            await self.pace.rest(0.5, 2.0)

    def check(self) -> None:
        self.check_ends()
        for broker, running in self.cluster.brokers.items():
            log = running.logs.get(f"simulate.{self.TOPIC}", 0)
            assert log is not None
            found = [read_records(bytes(batch)) for _, batch in lookup.batches(log, log.start_offset, log.end_offset)]
            rows = [(record.key or b"", record.value or b"") for records in found for record in records]
            self._compare(self._newest, rows, f"broker {broker}")

    def _compare(self, wanted: dict[bytes, tuple[int, int]], rows: list[tuple[Any, bytes]], who: str) -> None:
        last: dict[bytes, tuple[int, int]] = {}
        for key, value in rows:
            _, _, number, place = value.decode().split("-")
            last[key] = (int(number), int(place))
        for key, newest in wanted.items():
            if last.get(key, (-1, -1)) < newest:
                raise ViolationError(
                    f"{self.TOPIC}: {who} has {last.get(key)} of {key!r}, and {newest} was acknowledged"
                )
