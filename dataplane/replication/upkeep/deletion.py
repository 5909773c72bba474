"""DeleteRecords: the log of a partition begins later, on every replica, for ever.

The leader moves its log start offset at once: nobody reads what lies before any more, and segments that hold nothing
else go. Followers hear of it with their next answer and say with the fetch after that where their logs begin. The
smallest start offset of the live replicas is the *low watermark*. The request is answered when it has reached the
offset asked for and the leader's own start offset is on disk: then the records do not come back, under any leader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.protocol.errors import ErrorCode
from dataplane.storage.log import removing

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.replication.manager import Replicas
    from dataplane.replication.replica.partition import Partition
    from dataplane.tasks import Future

TO_HIGH_WATERMARK = -1
NO_LOW_WATERMARK = -1
_EVERYBODY = 2**63


def delete_records(
    replicas: Replicas, partition: Partition, offset: int, timeout_s: float, done: Callable[[ErrorCode, int], None]
) -> None:
    """Delete what lies before `offset` (-1: all that is committed). `done` gets an error and the low watermark."""
    log = partition.log
    if not log.config.is_deleted:
        done(ErrorCode.POLICY_VIOLATION, NO_LOW_WATERMARK)
        return
    wanted = partition.state.high_watermark if offset == TO_HIGH_WATERMARK else offset
    if not 0 <= wanted <= partition.state.high_watermark:
        done(ErrorCode.OFFSET_OUT_OF_RANGE, NO_LOW_WATERMARK)
        return
    if wanted > log.start_offset:
        try:
            removing.set_start_offset(log, wanted)
        except OSError:
            replicas.roles.failed(partition)
            done(ErrorCode.KAFKA_STORAGE_ERROR, NO_LOW_WATERMARK)
            return
        replicas.accounting.measure(partition)
        replicas.waiting.arrived(partition.queues.replica_waiters, _EVERYBODY)  # followers hear of it now
        replicas.progress.start_moved(partition)

    def reached(code: ErrorCode) -> None:
        # Kafka says how far it got when time is up.
        lost = code not in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT)
        done(code, NO_LOW_WATERMARK if lost else partition.low_watermark())

    def on_disk(written: Future[None]) -> None:
        if written.error is not None:
            done(ErrorCode.KAFKA_STORAGE_ERROR, NO_LOW_WATERMARK)
        elif not partition.state.is_leader:
            done(ErrorCode.NOT_LEADER_OR_FOLLOWER, NO_LOW_WATERMARK)
        else:
            replicas.waiting.for_low_watermark(partition, wanted, timeout_s, reached)

    replicas.logs.checkpoints.settle_start_offsets().then(on_disk)
