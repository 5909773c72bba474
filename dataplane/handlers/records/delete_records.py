"""DeleteRecords: partitions begin later; what lay before is gone. See `replication.upkeep.deletion`.

In steps, partition by partition: whether the session may do it is asked when the partition's turn comes. Where the logs begin is
written to disk once for all of them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from dataplane.cluster.metadata import COORDINATORS_TOPICS
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.fetch import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from dataplane.records.steps import Pace, grouped
from dataplane.replication.upkeep.deletion import NO_LOW_WATERMARK, begin_later, when_on_disk
from dataplane.tasks import Future
from dataplane.tenancy.access import Operation

if TYPE_CHECKING:
    from dataplane.handlers.context import RequestContext
    from dataplane.records.steps import Steps
    from dataplane.replication.replica.partition import Partition

_PARTITION_US, _WAIT_US, _TOPIC_US = 25, 8, 2

Row = tuple[str, list[DeleteRecordsPartitionResult]]


class _Begun(NamedTuple):
    """A partition whose log begins at `wanted` on this leader, and the place of its answer."""

    partition: Partition
    wanted: int
    rows: list[DeleteRecordsPartitionResult]
    place: int


def handle_delete_records(ctx: RequestContext, request: DeleteRecordsRequest) -> Steps[Future[DeleteRecordsResponse]]:
    """All partitions of a request, answered together."""
    pending = _Pending(ctx, request.timeout_ms / 1000)
    yield from pending.start(request)
    return pending.answer


class _Pending:
    """A request whose partitions wait for their replicas. It holds nothing of the request."""

    def __init__(self, ctx: RequestContext, timeout_s: float) -> None:
        self._ctx, self._timeout_s = ctx, timeout_s
        self._topics: list[Row] = []
        self._open = 1  # one for `start` itself
        self.answer: Future[DeleteRecordsResponse] = Future()

    def start(self, request: DeleteRecordsRequest) -> Steps[None]:
        """Delete on the leader, and wait for the disk and the others."""
        pace = Pace()
        begun: list[_Begun] = []
        for topic in request.topics:
            rows: list[DeleteRecordsPartitionResult] = []
            self._topics.append((topic.name, rows))
            for place, wanted in enumerate(topic.partitions):
                if pace.over(_PARTITION_US):
                    yield None
                rows.append(DeleteRecordsPartitionResult(wanted.partition_index, NO_LOW_WATERMARK))
                found = self._delete(topic.name, wanted)
                if isinstance(found, tuple):
                    begun.append(_Begun(*found, rows, place))
                else:
                    self._say(rows, place, found, NO_LOW_WATERMARK)
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

    def _wait_for(self, begun: list[_Begun], error: BaseException | None) -> Steps[None]:
        """What could be written is on disk."""
        pace = Pace()
        while begun:
            if pace.over(_WAIT_US):
                yield None
            partition, wanted, rows, place = begun.pop()
            if error is not None:
                self._say(rows, place, ErrorCode.KAFKA_STORAGE_ERROR, NO_LOW_WATERMARK)
                continue
            self._open += 1
            done = partial(self._set, rows, place)
            when_on_disk(self._ctx.broker.replicas, partition, wanted, self._timeout_s, done)
        self._close_one()

    def _in_slices(self, steps: Steps[None]) -> None:
        self._ctx.broker.slices.run(self._ctx.owner, steps)

    @staticmethod
    def _say(rows: list[DeleteRecordsPartitionResult], place: int, code: ErrorCode, low_watermark: int) -> None:
        rows[place] = DeleteRecordsPartitionResult(rows[place].partition_index, low_watermark, code)

    def _set(self, rows: list[DeleteRecordsPartitionResult], place: int, code: ErrorCode, low_watermark: int) -> None:
        self._say(rows, place, code, low_watermark)
        self._close_one()

    def _close_one(self) -> None:
        self._open -= 1
        if self._open == 0:
            self._ctx.broker.slices.run(self._ctx.owner, self._response()).then(self.answer.follow)

    def _response(self) -> Steps[DeleteRecordsResponse]:
        topics, self._topics = self._topics[::-1], []
        in_order = (topics.pop() for _ in range(len(topics)))  # each goes by itself, not thousands in the end
        return DeleteRecordsResponse(topics=(yield from grouped(in_order, DeleteRecordsTopicResult, _TOPIC_US)))
