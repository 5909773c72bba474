"""DeleteRecords: partitions begin later; what lay before is gone. See `replication.upkeep.deletion`.

In steps, partition by partition: whether the session may do it is asked when the partition's turn comes.
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
from dataplane.records.steps import Pace, grouped
from dataplane.replication.upkeep.deletion import NO_LOW_WATERMARK, delete_records
from dataplane.tasks import Future
from dataplane.tenancy.access import Operation

if TYPE_CHECKING:
    from dataplane.handlers.context import RequestContext
    from dataplane.records.steps import Steps

_PARTITION_US, _TOPIC_US = 25, 2

Row = tuple[str, list[DeleteRecordsPartitionResult]]


def handle_delete_records(ctx: RequestContext, request: DeleteRecordsRequest) -> Steps[Future[DeleteRecordsResponse]]:
    """All partitions of a request, answered together."""
    pending = _Pending(ctx, request)
    yield from pending.start()
    return pending.answer


class _Pending:
    """A request whose partitions wait for their replicas."""

    def __init__(self, ctx: RequestContext, request: DeleteRecordsRequest) -> None:
        self._ctx, self._request = ctx, request
        self._topics: list[Row] = []
        self._open = 1  # one for `start` itself
        self.answer: Future[DeleteRecordsResponse] = Future()

    def start(self) -> Steps[None]:
        """Delete on the leader, and wait for the others."""
        pace = Pace()
        timeout_s = self._request.timeout_ms / 1000
        for topic in self._request.topics:
            rows: list[DeleteRecordsPartitionResult] = []
            self._topics.append((topic.name, rows))
            for place, wanted in enumerate(topic.partitions):
                if pace.over(_PARTITION_US):
                    yield None
                rows.append(DeleteRecordsPartitionResult(wanted.partition_index, NO_LOW_WATERMARK))
                self._open += 1
                self._delete(topic.name, wanted, timeout_s, partial(self._set, rows, place))
        self._close_one()

    def _delete(self, topic: str, wanted: DeleteRecordsPartition, timeout_s: float, done: partial[None]) -> None:
        replicas = self._ctx.broker.replicas
        refusal = self._ctx.topic_refusal(Operation.DELETE, topic)
        if refusal:
            done(refusal, NO_LOW_WATERMARK)
        elif topic in COORDINATORS_TOPICS:  # compaction keeps them small, nobody deletes from them
            done(ErrorCode.INVALID_TOPIC_EXCEPTION, NO_LOW_WATERMARK)
        else:
            partition = replicas.registry.leader(topic, wanted.partition_index)
            if isinstance(partition, ErrorCode):
                done(partition, NO_LOW_WATERMARK)
            else:
                delete_records(replicas, partition, wanted.offset, timeout_s, done)

    def _set(self, rows: list[DeleteRecordsPartitionResult], place: int, code: ErrorCode, low_watermark: int) -> None:
        rows[place] = DeleteRecordsPartitionResult(
            partition_index=rows[place].partition_index, low_watermark=low_watermark, error_code=code
        )
        self._close_one()

    def _close_one(self) -> None:
        self._open -= 1
        if self._open == 0:
            self._ctx.broker.slices.run(self._ctx.owner, self._response()).then(self.answer.follow)

    def _response(self) -> Steps[DeleteRecordsResponse]:
        topics, self._topics = self._topics, []
        return DeleteRecordsResponse(topics=(yield from grouped(topics, DeleteRecordsTopicResult, _TOPIC_US)))
