"""DeleteRecords: partitions begin later; what lay before is gone. See `replication.upkeep.deletion`.

In steps, partition by partition: whether the session may do it is asked when the partition's turn comes. Where the logs begin is
written to disk once for all of them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dataplane.cluster.metadata import COORDINATORS_TOPICS
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.fetch import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from dataplane.records.steps import Pace
from dataplane.replication.upkeep.deletion import NO_LOW_WATERMARK, begin_later, when_on_disk
from dataplane.tasks import Future
from dataplane.tenancy.access import Operation

if TYPE_CHECKING:
    from dataplane.handlers.context import RequestContext
    from dataplane.records.steps import Steps
    from dataplane.replication.replica.partition import Partition

_PARTITION_US, _WAIT_US, _ROW_US = 25, 8, 2


class _Deletion:
    """Of one partition, however often the request names it: the log begins at `wanted` on this leader."""

    __slots__ = ("code", "low_watermark", "partition", "wanted")

    def __init__(self, partition: Partition) -> None:
        self.partition, self.wanted = partition, 0
        self.code, self.low_watermark = ErrorCode.NONE, NO_LOW_WATERMARK

    def over(self, code: ErrorCode, low_watermark: int) -> None:
        """What became of it."""
        self.code, self.low_watermark = code, low_watermark


Row = tuple[int, ErrorCode | _Deletion]
"""A partition of the request, and why nothing is deleted there, or the deletion."""


def handle_delete_records(ctx: RequestContext, request: DeleteRecordsRequest) -> Steps[Future[DeleteRecordsResponse]]:
    """All partitions of a request, answered together."""
    pending = _Pending(ctx, request.timeout_ms / 1000)
    yield from pending.start(request)
    return pending.answer


class _Pending:
    """A request whose partitions wait for their replicas. It holds nothing of the request."""

    def __init__(self, ctx: RequestContext, timeout_s: float) -> None:
        self._ctx, self._timeout_s = ctx, timeout_s
        self._topics: list[tuple[str, list[Row]]] = []
        self._open = 1  # one for `start` itself
        self.answer: Future[DeleteRecordsResponse] = Future()

    def start(self, request: DeleteRecordsRequest) -> Steps[None]:
        """Delete on the leader, and wait for the disk and the others."""
        pace = Pace()
        begun: dict[tuple[str, int], _Deletion] = {}
        for topic in request.topics:
            rows: list[Row] = []
            self._topics.append((topic.name, rows))
            for wanted in topic.partitions:
                if pace.over(_PARTITION_US):
                    yield None
                found: ErrorCode | _Deletion | tuple[Partition, int] = self._delete(topic.name, wanted)
                if isinstance(found, tuple):
                    partition, offset = found
                    found = begun.setdefault((topic.name, wanted.partition_index), _Deletion(partition))
                    found.wanted = max(found.wanted, offset)
                rows.append((wanted.partition_index, found))
        if begun:
            self._open += 1
            settled = self._ctx.broker.replicas.logs.checkpoints.settle()
            settled.then(lambda written: self._in_slices(self._wait_for(begun, written.error)))
        self._close_one()

    def _delete(self, topic: str, wanted: DeleteRecordsPartition) -> tuple[Partition, int] | ErrorCode:
        """On this leader; the offset at which the log shall begin everywhere."""
        replicas = self._ctx.broker.replicas
        refusal = self._ctx.topic_refusal(Operation.DELETE, topic)
        if refusal:
            return refusal
        if topic in COORDINATORS_TOPICS:  # compaction keeps them small, nobody deletes from them
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        partition = replicas.registry.leader(topic, wanted.partition_index)
        if isinstance(partition, ErrorCode):
            return partition
        error, offset = begin_later(replicas, partition, wanted.offset)
        return error or (partition, offset)

    def _wait_for(self, begun: dict[tuple[str, int], _Deletion], error: BaseException | None) -> Steps[None]:
        """What could be written is on disk."""
        pace = Pace()
        while begun:
            if pace.over(_WAIT_US):
                yield None
            _, deletion = begun.popitem()
            if error is not None:
                deletion.over(ErrorCode.KAFKA_STORAGE_ERROR, NO_LOW_WATERMARK)
                continue
            self._open += 1
            done = partial(self._over, deletion)
            when_on_disk(self._ctx.broker.replicas, deletion.partition, deletion.wanted, self._timeout_s, done)
        self._close_one()

    def _over(self, deletion: _Deletion, code: ErrorCode, low_watermark: int) -> None:
        deletion.over(code, low_watermark)
        self._close_one()

    def _in_slices(self, steps: Steps[None]) -> None:
        self._ctx.broker.slices.run(self._ctx.owner, steps)

    def _close_one(self) -> None:
        self._open -= 1
        if self._open == 0:
            self._ctx.broker.slices.run(self._ctx.owner, self._response()).then(self.answer.follow)

    def _response(self) -> Steps[DeleteRecordsResponse]:
        """Each row is let go of when it is told, not thousands in the end."""
        pace, topics = Pace(), self._topics
        told: list[DeleteRecordsTopicResult] = []
        topics.reverse()
        while topics:
            name, rows = topics.pop()
            rows.reverse()
            results: list[DeleteRecordsPartitionResult] = []
            while rows:
                if pace.over(_ROW_US):
                    yield None
                results.append(_told(*rows.pop()))
            told.append(DeleteRecordsTopicResult(name, tuple(results)))
        return DeleteRecordsResponse(topics=tuple(told))


def _told(index: int, outcome: ErrorCode | _Deletion) -> DeleteRecordsPartitionResult:
    if isinstance(outcome, _Deletion):
        return DeleteRecordsPartitionResult(index, outcome.low_watermark, outcome.code)
    return DeleteRecordsPartitionResult(index, NO_LOW_WATERMARK, outcome)
