"""What must hold in every broker once all clients are done and all is committed: nobody waits, and nothing is half done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.invariants import ViolationError

if TYPE_CHECKING:
    from dataplane.replication.replica.partition import Partition
    from tests.simulation.cluster import SimulatedCluster

PLACES = ("turn_end_calls", "turn_end_acks", "sync_calls", "ack_waiters", "low_watermark_waiters")
"""Of a partition: where those who are to be answered wait."""


def check_at_rest(cluster: SimulatedCluster) -> None:
    """Raises ViolationError."""
    for broker, running in cluster.brokers.items():
        for partition in running.replicas.registry.partitions():
            wrong = _wrong(partition)
            if wrong:
                raise ViolationError(f"all is done, and at broker {broker} {partition.topic}-{partition.index} {wrong}")


def _wrong(partition: Partition) -> str:
    if partition.queues.dirty:
        return "is still to be written"
    if partition.log.staged_end != partition.log.end_offset:
        return "has something staged"
    waiting = [place for place in PLACES if getattr(partition.queues, place)]
    return f"has somebody in {waiting[0]}" if waiting else ""
