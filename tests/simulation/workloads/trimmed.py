"""A topic whose oldest records go, by `retention.bytes` and by DeleteRecords: those and no others."""

from __future__ import annotations

from collections.abc import Coroutine
from types import MappingProxyType
from typing import Any

from dataplane.protocol.messages.fetch import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from tests.simulation.invariants import ViolationError
from tests.simulation.workloads.base import Workload

KEPT_BYTES = 6_000
UNCOMMITTED_BYTES = 2_000
"""What a leader may have counted that a later one did not have."""


class Trimmed(Workload):
    """See the module."""

    TOPIC = "trimmed"
    CONFIG = MappingProxyType({"retention_bytes": str(KEPT_BYTES)})

    def prepare(self) -> None:
        super().prepare()
        self._asked = 0  # the highest offset before which anything was to be deleted

    def clients(self) -> list[Coroutine[Any, Any, None]]:
        return [self.write("a"), self._delete()]

    async def _delete(self) -> None:
        client, random = self.cluster.client, self.shared.random
        while not self.shared.is_over:
            await self.pace.rest(0.3, 1.5)
            known = max((offset for _, offset in self.acknowledged), default=0)
            if random.random() < 0.5 or not known:
                continue
            offset = random.randint(max(0, known - 60), known)
            self._asked = max(self._asked, offset)
            row = DeleteRecordsTopic(self.TOPIC, (DeleteRecordsPartition(0, offset),))
            leader = await client.leader(self.TOPIC, 0, self.cluster.ids)
            answer = await client.call(leader, DeleteRecordsRequest(topics=(row,), timeout_ms=3_000), 2)
            if answer is None or answer.topics[0].partitions[0].error_code:
                client.doubt(self.TOPIC, 0)
            else:
                self.invariants.deleted(0, offset, by=leader)

    def check(self) -> None:
        self.invariants.compare_logs(all_of_them=True)
        self.check_ends()
        log = self.leader().log
        start = log.start_offset
        if start > self._asked and log.size_bytes < KEPT_BYTES - UNCOMMITTED_BYTES:
            raise ViolationError(
                f"{self.TOPIC} begins at {start} with {log.size_bytes} bytes, deleted was what lies before {self._asked}"
            )
        read = self.cluster.run(self.cluster.client.read_all(self.TOPIC, 0, self.cluster.ids, start))
        self.check_partition(0, dict(read), start)
