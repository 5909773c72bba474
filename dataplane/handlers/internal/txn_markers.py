"""WriteTxnMarkers: a coordinator says that transactions have ended, and their partitions' logs say so from then on.

Internal listener only: from brokers, and from operators, who end what hangs by it (`kafka-transactions abort`). Each partition is
answered for itself, when its marker is committed: what comes of one keeps no other from its own, and the coordinator asks again
for those that have failed. A marker that is there already is written once more, and ends nothing.

A marker in the topic of offsets is told to the groups as well, whose offsets wait for it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dataplane.cluster.metadata import OFFSETS_TOPIC
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.transactions import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from dataplane.protocol.release import emptied
from dataplane.records.control import Marker, build_marker
from dataplane.records.steps import STEP_US, Pace, grouped
from dataplane.replication.appending import ALL_IN_SYNC
from dataplane.tasks import Future
from dataplane.transactions.model import RAISING

if TYPE_CHECKING:
    from dataplane.handlers.context import RequestContext
    from dataplane.protocol.messages.transactions import WritableTxnMarker, WriteTxnMarkersRequest
    from dataplane.records.steps import Steps

_TIMEOUT_S = 10.0
"""For its followers: the coordinator asks again soon after."""
_PARTITION_US, _ROW_US = STEP_US, 2
"""Each partition is a step: its marker is written in it."""

_Row = tuple[str, list[WritableTxnMarkerPartitionResult]]


def handle_write_txn_markers(
    ctx: RequestContext, request: WriteTxnMarkersRequest
) -> Steps[Future[WriteTxnMarkersResponse]]:
    """All markers of a request, answered together."""
    pending = _Pending(ctx)
    yield from pending.start(request)
    return pending.answer


class _Pending:
    """A request whose markers are on their way to the followers."""

    def __init__(self, ctx: RequestContext) -> None:
        self._ctx = ctx
        self._results: list[tuple[int, list[_Row]]] = []  # by producer
        self._open = 1  # one for `start` itself
        self.answer: Future[WriteTxnMarkersResponse] = Future()

    def start(self, request: WriteTxnMarkersRequest) -> Steps[None]:
        """Append on the leader, and wait for the others."""
        pace = Pace()
        for marker in request.markers:
            topics: list[_Row] = []
            self._results.append((marker.producer_id, topics))
            for topic in marker.topics:
                rows: list[WritableTxnMarkerPartitionResult] = []
                topics.append((topic.name, rows))
                for index in topic.partition_indexes:
                    if pace.over(_PARTITION_US):
                        yield None
                    place = len(rows)
                    rows.append(WritableTxnMarkerPartitionResult(index, ErrorCode.UNKNOWN_SERVER_ERROR))
                    self._open += 1
                    self._append(marker, topic.name, index, partial(self._set, rows, place))
        self._close_one()

    def _append(self, marker: WritableTxnMarker, topic: str, index: int, done: partial[None]) -> None:
        broker = self._ctx.broker
        partition = broker.replicas.registry.leader(topic, index)
        if isinstance(partition, ErrorCode):
            done(partition)
            return
        batch = build_marker(
            Marker.COMMIT if marker.transaction_result else Marker.ABORT,
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            coordinator_epoch=marker.coordinator_epoch,
            now_ms=broker.doors.clock.now_ms(),
        )
        appending = broker.replicas.appending
        is_above = marker.transaction_version >= RAISING
        appended = appending.append_marker(partition, memoryview(batch), marker.coordinator_epoch, is_above=is_above)
        if appended.error:
            done(appended.error)
            return

        def committed(code: ErrorCode) -> None:
            if code is ErrorCode.NONE and topic == OFFSETS_TOPIC:
                broker.groups.transaction_ended(index, marker.producer_id, committed=marker.transaction_result)
            done(code)

        appending.after_commit(partition, appended.last_offset, ALL_IN_SYNC, _TIMEOUT_S, committed)
        appending.commit(partition)  # in this slice's time, and paid by whose slice it is

    def _set(self, rows: list[WritableTxnMarkerPartitionResult], place: int, code: ErrorCode) -> None:
        rows[place] = WritableTxnMarkerPartitionResult(rows[place].partition_index, code)
        self._close_one()

    def _close_one(self) -> None:
        self._open -= 1
        if self._open == 0:
            self._ctx.broker.slices.run(self._ctx.owner, self._response()).then(self.answer.follow)

    def _response(self) -> Steps[WriteTxnMarkersResponse]:
        pace = Pace()
        markers: list[WritableTxnMarkerResult] = []

        for producer_id, topics in self._results:
            if pace.over(_ROW_US):
                yield None
            told = yield from grouped(topics, WritableTxnMarkerTopicResult, _ROW_US, pace)
            yield from emptied(topics)
            markers.append(WritableTxnMarkerResult(producer_id, told))
        return WriteTxnMarkersResponse(tuple(markers))
