"""A durable topic: what is acknowledged is on the disks of enough brokers, not only in their memory."""

from __future__ import annotations

from types import MappingProxyType

from tests.simulation.producer import Batch
from tests.simulation.workloads.base import Workload


class Ledger(Workload):
    """See the module. Two partitions beside those of others, so that a follower waits for its disk and for a leader at once."""

    TOPIC = "ledger"
    PARTITIONS = 2
    CONFIG = MappingProxyType({"flush_messages": "1"})
    IS_PROMPT = False  # it waits for disks

    def prepare(self) -> None:
        super().prepare()
        self.invariants.watch_disks()

    def _acknowledged(self, partition: int, base: int, batch: Batch, took_s: float) -> None:
        super()._acknowledged(partition, base, batch, took_s)
        self.invariants.acknowledged_durably(partition, base + len(batch.records) - 1)
