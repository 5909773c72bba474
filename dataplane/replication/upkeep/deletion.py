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

TO_HIGH_WATERMARK = -1
NO_LOW_WATERMARK = -1
_EVERYBODY = 2**63


def begin_later(replicas: Replicas, partition: Partition, offset: int) -> tuple[ErrorCode, int]:
    """Delete on this leader what lies before `offset` (-1: all that is committed). An error, and the offset that is wanted.

    It is for ever when checkpoints are settled (`CheckpointSchedule.settle`), which all partitions of a request share; then
    others are waited for with `when_on_disk`.
    """
    log = partition.log
    if not log.config.is_deleted:
        return ErrorCode.POLICY_VIOLATION, NO_LOW_WATERMARK
    wanted = partition.state.high_watermark if offset == TO_HIGH_WATERMARK else offset
    if not 0 <= wanted <= partition.state.high_watermark:
        return ErrorCode.OFFSET_OUT_OF_RANGE, NO_LOW_WATERMARK
    if wanted > log.start_offset:
        try:
            removing.set_start_offset(log, wanted)
        except OSError:
            replicas.roles.failed(partition)
            return ErrorCode.KAFKA_STORAGE_ERROR, NO_LOW_WATERMARK
        replicas.accounting.measure(partition)
        replicas.waiting.arrived(partition.queues.replica_waiters, _EVERYBODY)  # followers hear of it now
        replicas.progress.start_moved(partition)
    replicas.logs.checkpoints.note(log)
    return ErrorCode.NONE, wanted


def when_on_disk(
    replicas: Replicas, partition: Partition, wanted: int, timeout_s: float, done: Callable[[ErrorCode, int], None]
) -> None:
    """Wait until no live replica begins before `wanted`. `done` gets an error and the low watermark."""

    def reached(code: ErrorCode) -> None:
        # Kafka says how far it got when time is up.
        lost = code not in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT)
        done(code, NO_LOW_WATERMARK if lost else partition.low_watermark())

    if partition.state.is_leader:
        replicas.waiting.for_low_watermark(partition, wanted, timeout_s, reached)
    else:
        done(ErrorCode.NOT_LEADER_OR_FOLLOWER, NO_LOW_WATERMARK)
