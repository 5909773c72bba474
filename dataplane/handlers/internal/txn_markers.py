"""WriteTxnMarkers: a coordinator says that transactions have ended, and their partitions' logs say so from then on.

From brokers. Each partition is answered for itself, when its marker is committed: what comes of one keeps no other from its
own, and the coordinator asks again for those that have failed. A marker that is there already is written once more, and ends
nothing. A marker in the topic of offsets is told to the groups as well, whose offsets wait for it.

Everybody else (a tenant with ALTER on its cluster, as Kafka has it since KIP-1037; on the internal listener operators and the
control plane) ends by it what hangs: a transaction that no coordinator knows (`kafka-transactions abort`). So they may

    abort what is open                           nothing else is written: where nothing is open, all is as it shall be (NONE)
    not commit                                   INVALID_REQUEST. What is left of a transaction need not be all of it
    as no later coordinator than there has been  a higher epoch counts as the one that the log knows: with one of their own they
                                                 would shut out the coordinator, whose transactions could not end any more
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dataplane.cluster.metadata import OFFSETS_TOPIC
from dataplane.handlers.transaction_charges import charge_markers
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
from dataplane.storage.log import producing
from dataplane.tasks import Future
from dataplane.tenancy.access import CLUSTER, Operation, refusal_of_a_change
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
    pending = _Pending(ctx) if ctx.may(Operation.CLUSTER_ACTION, CLUSTER) else _Aborting(ctx)
    yield from pending.start(request)
    return pending.answer


class _Pending:
    """A request whose markers are on their way to the followers."""

    def __init__(self, ctx: RequestContext) -> None:
        self._ctx = ctx
        self._results: list[tuple[int, list[_Row]]] = []  # by producer
        self._open = 1  # one for `start` itself
        self.answer: Future[WriteTxnMarkersResponse] = Future()

    def _goes_on(self) -> None:
        """Its turn has come, once more."""

    def _all_begun(self) -> None:
        """Everything has been looked at."""

    def start(self, request: WriteTxnMarkersRequest) -> Steps[None]:
        """Append on the leader, and wait for the others."""
        pace = Pace()
        self._goes_on()
        for marker in request.markers:
            topics: list[_Row] = []
            self._results.append((marker.producer_id, topics))
            for topic in marker.topics:
                rows: list[WritableTxnMarkerPartitionResult] = []
                topics.append((topic.name, rows))
                for index in topic.partition_indexes:
                    if pace.over(_PARTITION_US):
                        yield None
                        self._goes_on()
                    place = len(rows)
                    rows.append(WritableTxnMarkerPartitionResult(index, ErrorCode.UNKNOWN_SERVER_ERROR))
                    self._open += 1
                    self._append(marker, topic.name, index, partial(self._set, rows, place))
        self._all_begun()
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

        self._results.reverse()
        while self._results:  # freed whole, ten thousand markers would take 5 ms
            producer_id, topics = self._results.pop()
            if pace.over(_ROW_US):
                yield None
            told = yield from grouped(topics, WritableTxnMarkerTopicResult, _ROW_US, pace)
            yield from emptied(topics)
            markers.append(WritableTxnMarkerResult(producer_id, told))
        return WriteTxnMarkersResponse(tuple(markers))


class _Aborting(_Pending):
    """See the file's text: of whoever is no broker."""

    def __init__(self, ctx: RequestContext) -> None:
        super().__init__(ctx)
        self._refusal = ErrorCode.NONE
        self._appended = 0

    def _goes_on(self) -> None:
        self._refusal = self._ctx.cluster_refusal(Operation.ALTER)

    def _all_begun(self) -> None:
        charge_markers(self._ctx, self._appended)

    def _append(self, marker: WritableTxnMarker, topic: str, index: int, done: partial[None]) -> None:
        found = self._ending(marker, topic, index)
        if isinstance(found, ErrorCode):
            done(found)
        else:
            self._appended += 1
            super()._append(found, topic, index, done)

    def _ending(self, marker: WritableTxnMarker, topic: str, index: int) -> WritableTxnMarker | ErrorCode:
        """What is to be written, or what is told without."""
        if self._refusal:
            return self._refusal
        if marker.transaction_result:
            return ErrorCode.INVALID_REQUEST
        refusal = refusal_of_a_change(self._ctx.session, topic)
        if refusal:
            return refusal
        partition = self._ctx.broker.replicas.registry.leader(topic, index)
        if isinstance(partition, ErrorCode):
            return partition
        try:
            producers = producing.producers_of(partition.log)
        except OSError:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if marker.producer_id not in producers.transactions.open:
            return ErrorCode.NONE
        known = max(producers.coordinator_epoch(marker.producer_id), 0)
        return replace(marker, coordinator_epoch=min(marker.coordinator_epoch, known), transaction_version=0)
