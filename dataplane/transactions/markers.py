"""Markers: when a transaction is decided, every one of its partitions is told by its leader's log.

The coordinator asks the leaders, itself among them, with WriteTxnMarkers, until each partition has its marker:

    NONE                                              done
    a partition that metadata have not known for long its topic is deleted: nothing is missing there
    INVALID_PRODUCER_EPOCH                            a higher epoch of the producer has written there (or this one, where each
                                                      transaction has its own), so nothing of the transaction is open: it is
                                                      over there. Others still need their markers
    TRANSACTION_COORDINATOR_FENCED                    another coordinator has taken over. This one gives the transaction up, and
                                                      will soon hear that it leads the partition no more
    every other error, no answer, no leader           asked again after a pause: to write a marker twice is harmless

A higher epoch need not be a successor's: whoever may write to a topic may do so under any epoch of any producer, and a
transaction given up for that would stay open everywhere else, in its partition of ``__consumer_offsets`` too. A coordinator
that was overtaken, and so believes itself at the end, cannot store that.

Markers for one broker travel together: those of a turn, and all that come up while enough requests are on their way. A
request holds a bounded number of partitions, so one transaction of thousands does not hold the others up.
"""

from __future__ import annotations

import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from dataplane.transactions.model import Transaction, TransactionState, partitions_by_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dataplane.cluster.metadata import Metadata
    from dataplane.doors import Loop
    from dataplane.records.steps import Steps
    from dataplane.slices import Slices
    from dataplane.tasks import Future
    from dataplane.transactions.model import Partition
    from dataplane.transactions.shard import TransactionShard

VERSION = 2
TIMEOUT_S = 15.0
REQUESTS_AT_ONCE = 8
"""To one broker. A partition whose replicas are slow delays the request that it is in, and no more than these."""
PARTITIONS_PER_REQUEST = 500
FIRST_PAUSE_S, LAST_PAUSE_S = 0.05, 1.0
UNKNOWN_S = 10.0
"""So long metadata may lack a partition before it counts as deleted. It was there when it was added, but a coordinator that was
elected just now may not have heard of a topic that is new."""
PARTITIONS_PER_STEP = 64
_OWNER = "markers"

_NEEDS_NO_MORE = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)

_log = logging.getLogger(__name__)


class Call(Protocol):
    """`Peers.call`."""

    def __call__(self, broker_id: int, request: Any, version: int, timeout_s: float) -> Future[Any]:
        """Ask a broker."""
        ...


class _Job:
    """A transaction that is decided, and the partitions that still have to be told."""

    __slots__ = ("again", "done", "is_given_up", "missing", "pause_s", "shard", "transaction", "unknown_since")

    def __init__(self, shard: TransactionShard, transaction: Transaction, done: Callable[[], None]) -> None:
        self.shard, self.transaction, self.done = shard, transaction, done
        self.missing: dict[Partition, None] = dict(transaction.partitions)
        self.again: list[Partition] = []  # after the pause that has begun
        self.pause_s = FIRST_PAUSE_S
        self.unknown_since: dict[Partition, float] = {}
        self.is_given_up = False

    @property
    def is_over(self) -> bool:
        return self.is_given_up or self.shard.closed

    def marker(self, partitions: Iterable[Partition]) -> WritableTxnMarker:
        """For some of its partitions."""
        transaction = self.transaction
        return WritableTxnMarker(
            transaction.producer_id,
            transaction.producer_epoch,
            transaction.state is TransactionState.PREPARE_COMMIT,
            tuple(WritableTxnMarkerTopic(*row) for row in partitions_by_topic(partitions)),
            self.shard.leader_epoch,
            transaction.version,
        )


_Part = tuple[_Job, list["Partition"]]
"""Partitions of one transaction that one broker leads."""


class _Line:
    """What one broker is to be told."""

    __slots__ = ("is_scheduled", "on_their_way", "parts")

    def __init__(self) -> None:
        self.parts: deque[_Part] = deque()
        self.on_their_way = 0  # requests
        self.is_scheduled = False


class Markers:
    """Of all transactions that this broker coordinates."""

    def __init__(self, loop: Loop, slices: Slices, metadata: Metadata, call: Call) -> None:
        self._loop, self._slices, self._metadata, self._call = loop, slices, metadata, call
        self._lines: dict[int, _Line] = {}  # by broker

    def write(self, shard: TransactionShard, transaction: Transaction, done: Callable[[], None]) -> None:
        """Tell every partition of a transaction; `done` is called once, in a later turn, unless the shard is closed before."""
        job = _Job(shard, transaction, done)
        self._loop.call_soon(partial(self._sort, job, list(job.missing)))

    # --- to whom ------------------------------------------------------------------------------------------------------

    def _sort(self, job: _Job, partitions: list[Partition]) -> None:
        self._slices.run(_OWNER, self._sorted(job, partitions)).then(lambda future: future.result())

    def _sorted(self, job: _Job, partitions: list[Partition]) -> Steps[None]:
        by_leader: dict[int, list[Partition]] = {}
        later: list[Partition] = []
        for number, partition in enumerate(partitions, 1):
            if number % PARTITIONS_PER_STEP == 0:
                yield None
            known = self._metadata.partition(*partition)
            if known is not None and known.has_leader:
                by_leader.setdefault(known.leader, []).append(partition)
            elif known is None and self._is_deleted(job, partition):
                job.missing.pop(partition, None)
            else:
                later.append(partition)
        if job.is_over:
            return
        for leader, led in by_leader.items():
            line = self._lines.setdefault(leader, _Line())
            for first in range(0, len(led), PARTITIONS_PER_REQUEST):
                line.parts.append((job, led[first : first + PARTITIONS_PER_REQUEST]))
            self._schedule(leader, line)
        self._heard(job, later)

    def _is_deleted(self, job: _Job, partition: Partition) -> bool:
        if not self._metadata.version:  # nobody has told us anything yet
            return False
        now = self._loop.clock.monotonic()
        return now - job.unknown_since.setdefault(partition, now) >= UNKNOWN_S

    # --- requests -----------------------------------------------------------------------------------------------------

    def _schedule(self, leader: int, line: _Line) -> None:
        if line.parts and not line.is_scheduled and line.on_their_way < REQUESTS_AT_ONCE:
            line.is_scheduled = True
            self._loop.call_soon(partial(self._send, leader, line))

    def _send(self, leader: int, line: _Line) -> None:
        line.is_scheduled = False
        parts = self._next_parts(line)
        if not parts:
            return
        request = WriteTxnMarkersRequest(markers=tuple(job.marker(partitions) for job, partitions in parts))
        line.on_their_way += 1
        self._call(leader, request, VERSION, TIMEOUT_S).then(partial(self._answered, leader, line, parts))
        self._schedule(leader, line)

    @staticmethod
    def _next_parts(line: _Line) -> list[_Part]:
        parts: list[_Part] = []
        room = PARTITIONS_PER_REQUEST
        while line.parts and (not parts or len(line.parts[0][1]) <= room):
            part = line.parts.popleft()
            if not part[0].is_over:
                parts.append(part)
                room -= len(part[1])
        return parts

    def _answered(self, leader: int, line: _Line, parts: list[_Part], future: Future[WriteTxnMarkersResponse]) -> None:
        line.on_their_way -= 1
        codes = {} if future.error is not None else _codes(future.result())
        for job, partitions in parts:
            self._take(job, partitions, codes)
        self._schedule(leader, line)

    def _take(self, job: _Job, partitions: list[Partition], codes: dict[tuple[int, Partition], int]) -> None:
        if job.is_over:
            return
        again: list[Partition] = []
        for partition in partitions:
            code = codes.get((job.transaction.producer_id, partition))  # None: no word of it
            if code in _NEEDS_NO_MORE:
                job.missing.pop(partition, None)
            elif code == ErrorCode.TRANSACTION_COORDINATOR_FENCED:
                self._give_up(job)
                return
            else:
                again.append(partition)
        self._heard(job, again)

    @staticmethod
    def _give_up(job: _Job) -> None:
        job.is_given_up = True
        _log.warning(
            "a transaction of producer %d is given up in epoch %d of partition %d: another coordinator has it",
            *(job.transaction.producer_id, job.shard.leader_epoch, job.shard.index),
        )

    # --- what has become of it ----------------------------------------------------------------------------------------

    def _heard(self, job: _Job, again: list[Partition]) -> None:
        """Some partitions have to be asked again; it is over when nothing is missing."""
        if not job.missing:
            job.is_given_up = True  # whatever may still come of it
            job.done()
        elif again:
            if not job.again:
                self._loop.call_later(job.pause_s, partial(self._ask_again, job))
                job.pause_s = min(job.pause_s * 2, LAST_PAUSE_S)
            job.again += again

    def _ask_again(self, job: _Job) -> None:
        partitions, job.again = job.again, []
        if not job.is_over:
            self._sort(job, partitions)


def _codes(answer: WriteTxnMarkersResponse) -> dict[tuple[int, Partition], int]:
    return {
        (marker.producer_id, (topic.name, partition.partition_index)): partition.error_code
        for marker in answer.markers
        for topic in marker.topics
        for partition in topic.partitions
    }
