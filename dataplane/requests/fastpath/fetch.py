"""The short cut of Fetch: a request for one partition that differs from an earlier one in nothing but the offset.

A client that reads one partition repeats its request; correlation id and fetch offset change::

    key version | correlation id | client id, limits, topic, partition, epoch | fetch offset | rest
                                 `------------- the shape: compared, not decoded -------------------'

Where the offset stands is known from the declarations (`protocol.templates`). As with Produce (`produce`) the slow path
has found out what the bytes mean, and what may have changed since is checked every time: that its permit is of the
present (`permits`), then leadership. One that has read all waits, as it came, and is looked at again, its permit as well,
when there are bytes. An error, too few bytes, anything but plain records goes the slow way, as does who reads committed
transactions where some were aborted. In a session the number of the
request changes, too: `fetch_in_session`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.doors import NotInMemoryError
from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.headers import SIZE_BYTES
from dataplane.protocol.messages.fetch import FetchPartition
from dataplane.protocol.templates import Requests
from dataplane.replication.serving.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH
from dataplane.replication.serving.follower_fetches import follower_of
from dataplane.requests.fastpath.fetch_in_session import SessionFastPath
from dataplane.requests.fastpath.fetch_shape import (
    ANSWERED,
    DECLINED,
    NOTHING_YET,
    Shape,
    shape_of,
)
from dataplane.requests.fastpath.permits import standing_permit
from dataplane.requests.slots import Slot
from dataplane.storage.errors import OffsetOutOfRangeError
from dataplane.storage.log import reading
from dataplane.tenancy.access import INTERNAL_GENERATION, Operation, authorize, of_topic
from dataplane.tenancy.talkers import talk_of
from dataplane.throttle.debt_queue import throttle_ms
from dataplane.throttle.fetching import WINDOW_S

if TYPE_CHECKING:
    from dataplane.handlers.context import RequestContext
    from dataplane.protocol.messages.fetch import FetchRequest
    from dataplane.replication.replica.partition import Partition
    from dataplane.replication.replica.waiters import ReadWaiter
    from dataplane.requests.served import Served

MAX_SHAPES = 64
MAX_SHAPE_BYTES = 1_024
FREE_LESSONS, HITS_PER_LESSON = 64, 16
"""Learning costs as much as serving: further shapes have to be worth it."""
_API = APIS[ApiKey.FETCH]
_FIRST_VERSION = 10  # older ones may not read every topic, or not as it is
_HOLES = ((FetchPartition, "fetch_offset"),)


class FetchFastPath:
    """The shapes of one connection."""

    __slots__ = ("_hits", "_lessons", "_registry", "_sessions", "_shapes", "client", "waiting")

    def __init__(self, client: Served) -> None:
        self.client = client
        replicas = client.broker.replicas
        self._registry, self.waiting = replicas.registry, replicas.waiting
        self._shapes = Requests[Shape](_API, _HOLES)
        self._sessions: SessionFastPath | None = None
        self._hits = self._lessons = 0

    def serve(self, frame: memoryview) -> bool:
        """Serve the frame if it has a known shape and nothing stands against it. False: nothing has been done."""
        found = self._shapes.find(frame)
        if found is None:
            return self._sessions is not None and self._sessions.serve(
                frame, self, self.client.session.access_generation
            )
        outcome = self.answer(*found)
        if outcome == NOTHING_YET:
            _Waiting(self, bytes(frame), *found).begin()
        return outcome != DECLINED

    def answer(self, shape: Shape, correlation_id: bytes, offset: int, slot: Slot | None = None) -> int:
        """Answer a request of this shape; unless it is ANSWERED, nothing has been done.

        With a `slot` it has waited, and is answered with what there is.
        """
        client = self.client
        broker, instance = client.broker, client.session.instance
        generation = INTERNAL_GENERATION if instance is None else instance.permit.generation
        if shape.permit.generation != generation:
            permit = standing_permit(client, Operation.READ, shape.physical)
            if permit is None:
                return DECLINED
            shape.permit = permit
            now_s = client.broker.doors.clock.monotonic()
            shape.talk = talk_of(client.session, shape.client_id, shape.physical, now_s)
        partition = shape.partition
        if partition is None or not partition.state.is_leader:
            found = self._registry.leader(shape.physical, shape.index)
            if isinstance(found, ErrorCode) or (shape.topic_id is not None and found.topic_id != shape.topic_id):
                return DECLINED
            partition = shape.partition = found
        state = partition.state
        if shape.leader_epoch >= 0 and shape.leader_epoch != state.leader_epoch:
            return DECLINED
        max_bytes = shape.max_bytes
        if instance is not None:
            if slot is None and client.turnstile.reads_nothing:
                return DECLINED
            allowed = broker.gate.fetch_bytes(instance, WINDOW_S)
            if allowed is not None and allowed < max_bytes:
                max_bytes = max(allowed, 1)
        stable, log = state.last_stable_offset, partition.log
        if stable < 0 or (shape.stable_only and offset <= log.last_aborted):
            return DECLINED  # the slow path looks for transactions, and says which were aborted
        end = stable if shape.stable_only else state.high_watermark
        min_bytes = shape.min_bytes if slot is None else 0
        if offset >= end and (min_bytes or offset > end):
            return NOTHING_YET if offset == end and min_bytes <= max_bytes else DECLINED
        try:
            records = reading.read(log, offset, max_bytes, end, at_least_one=True, wait=False)
        except (OffsetOutOfRangeError, NotInMemoryError, OSError):
            return DECLINED  # the slow path finds the same and words the answer
        size = 0 if records is None else records.size
        if size < min_bytes:
            return DECLINED
        if slot is None:
            slot = Slot()
            client.answers.append_slot(slot)
        self._send(correlation_id, shape, partition, records, size, slot)
        self._hits += 1
        return ANSWERED

    def _send(
        self, correlation_id: bytes, shape: Shape, partition: Partition, records: object, size: int, slot: Slot
    ) -> None:
        client = self.client
        instance = client.session.instance
        state, start_offset, tail = partition.state, partition.log.start_offset, shape.tail
        high_watermark, stable = state.high_watermark, state.last_stable_offset
        head = shape.head(correlation_id, 0, high_watermark, stable, start_offset, size)
        if instance is not None:
            told_s = client.turnstile.consumed(instance, len(head) + size + len(tail))
            if told_s:  # the size of the answer decides the delay that it reports
                told_ms = throttle_ms(told_s)
                slot.told(told_s)
                head = shape.head(correlation_id, told_ms, high_watermark, stable, start_offset, size)
        if not size:
            client.answers.fill_soon(slot, (head + tail,))
            return
        shape.talk.consumed += size
        if instance is not None and partition.usage is not None:
            records.sent = partition.usage.consumed  # type: ignore[attr-defined]
        client.answers.fill_soon(slot, (head, records, tail) if tail else (head, records))  # type: ignore[arg-type]

    def remember(self, ctx: RequestContext, request: FetchRequest, frame: memoryview) -> None:
        """Learn the shape of a request that the slow path has decoded, if it is of the kind that is served here."""
        if ctx.version < _FIRST_VERSION or len(frame) > MAX_SHAPE_BYTES:
            return
        if ctx.is_on_behalf:  # the topic's owner is charged, which only the slow path knows
            return
        if len(request.topics) != 1 or len(request.topics[0].partitions) != 1 or request.forgotten_topics_data:
            return
        wanted = request.topics[0].partitions[0]
        if wanted.partition < 0:
            return
        in_session = request.session_epoch > INITIAL_EPOCH
        plain = (
            request.session_id > 0 if in_session else request.session_epoch == FINAL_EPOCH and not request.session_id
        )
        selects = request.rack_id and ctx.broker.config.settings.replica_selector_class
        if not plain or wanted.last_fetched_epoch >= 0 or selects or follower_of(request) >= 0:
            return
        if self._lessons > FREE_LESSONS + self._hits // HITS_PER_LESSON or self._knows(frame):
            return
        self._lessons += 1
        shape = shape_of(ctx, request)
        if shape is None:
            return
        if in_session:
            self._sessions = self._sessions or SessionFastPath()
            self._sessions.remember(ctx, request, frame, shape)
            return
        if len(self._shapes) >= MAX_SHAPES:  # most are of leader epochs that are over
            self._shapes.forget()
        self._shapes.learn(frame, ctx.session.names, shape)

    def _knows(self, frame: memoryview) -> bool:
        """Whether there is nothing to learn from a request, though it had to go the slow way."""
        if self._shapes.find(frame) is not None:
            return True
        return self._sessions is not None and self._sessions.knows(frame)


class _Waiting:
    """A request that has read all: until there are bytes, or its time is up, or its client may not read any more.

    Then it is answered as it would be now, or the slow way.
    """

    __slots__ = ("_correlation_id", "_frame", "_offset", "_path", "_shape", "_slot", "_told_s", "_waiter")

    def __init__(self, path: FetchFastPath, frame: bytes, shape: Shape, correlation_id: bytes, offset: int) -> None:
        self._path, self._frame, self._slot = path, frame, Slot()
        self._shape, self._correlation_id, self._offset = shape, correlation_id, offset
        self._told_s = path.client.turnstile.told_s
        self._waiter: ReadWaiter | None = None

    def begin(self) -> None:
        client, shape = self._path.client, self._shape
        assert shape.partition is not None
        client.answers.append_slot(self._slot)
        places = [shape.partition.queues.readers(stable_only=shape.stable_only)]
        self._waiter = self._path.waiting.for_bytes(
            places, shape.min_bytes, shape.wait_s, self._woken, client.session.account
        )
        client.answers.wait_at(self._slot, len(self._frame) + SIZE_BYTES, self)

    def _woken(self) -> None:
        self._waiter = None  # which refers to this
        self._path.client.go_on(self._slot, self._frame, self._told_s, self._is_answered)

    def _is_answered(self) -> bool:
        return self._path.answer(self._shape, self._correlation_id, self._offset, self._slot) == ANSWERED

    def give_up(self) -> None:
        if self._waiter is not None:
            self._waiter.cancel()
            self._waiter = None

    def look_again(self) -> None:
        refusal = authorize(self._path.client.session, Operation.READ, of_topic(self._shape.physical))
        if self._waiter is not None and isinstance(refusal, ErrorCode):
            self._waiter.lost()
