"""A fetch session (KIP-227): what a reader wants is remembered here, and an answer holds only what has changed.

The first fetch names all partitions; from then on a request names those that it wants otherwise than before (another
offset, a new partition) and those that it forgets, and the answer leaves out whatever has nothing to tell: no records,
the same high watermark and log start offset, no error. Requests are numbered (the *epoch* of the session), so that one
that was lost or sent twice is noticed.

What a request costs must not grow with the partitions on which nothing happens. So a partition of a session is

* *due*: it may have something to tell, and the next fetch looks at it. Those that have an error or more to read stay
  due; who got records goes behind all the others, so that each has its turn; or
* *idle*: the last look found nothing that the reader does not know. It hangs on the partition as a `waiters.Watcher`
  and becomes due when something happens there.

A fetch that waits is a waiter of the session; what arrives at a partition counts for it. What a look has found is *told*
only when an answer goes out: a fetch may look, wait, and look again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchResponseLeaderIdAndEpoch,
    FetchResponsePartitionData,
)
from dataplane.protocol.schema import NO_UUID
from dataplane.records.steps import Pace, run_through

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from uuid import UUID

    from dataplane.protocol.messages.fetch import FetchRequest, FetchTopic, ForgottenTopic
    from dataplane.records.steps import Steps
    from dataplane.replication.replica.waiters import ReadWaiter, Watcher

NO_SESSION = 0
INITIAL_EPOCH, FINAL_EPOCH = 0, -1
_LAST_EPOCH = 2**31 - 1
_UNKNOWN = -1
_UNTOLD = -2
_ROW_US, _TOPIC_US, _WANT_US, _READ_US = 1, 2, 3, 16


def next_epoch(epoch: int) -> int:
    """The number of the request after this one: it wraps to 1, for 0 begins a session."""
    return 1 if epoch == _LAST_EPOCH else epoch + 1


class Reading(NamedTuple):
    """One look at one partition."""

    data: FetchResponsePartitionData
    size: int  # of the records
    place: dict[Watcher, None] | None  # where to hang to hear more of it; None: there is no such place
    at_end: bool = False  # there is, and nothing more can be said before something happens there


NO_LEADER = FetchResponseLeaderIdAndEpoch()


def refused(
    wanted: FetchPartition,
    code: ErrorCode,
    leader: FetchResponseLeaderIdAndEpoch = NO_LEADER,
    aborted_transactions: tuple[AbortedTransaction, ...] | None = (),
) -> Reading:
    """What is said of a partition instead of reading it, perhaps with its leader as we know it."""
    data = FetchResponsePartitionData(
        partition_index=wanted.partition,
        error_code=code,
        high_watermark=-1,
        log_start_offset=-1,
        current_leader=leader,
        aborted_transactions=aborted_transactions,
        records=b"",
    )
    return Reading(data, 0, None)


Read = Callable[["str | UUID", FetchPartition, int, bool], Reading]
"""Look at a partition: its topic as the client names it, what is wanted, bytes left, whether one batch must fit."""


def _never() -> bool:
    return False


class SessionPartition:
    """One partition of a session. Thousands may be idle: it holds what is needed to answer, and nothing else."""

    __slots__ = ("_place", "high_watermark", "log_start_offset", "session", "topic", "wanted")

    def __init__(self, session: FetchSession, topic: str | UUID, wanted: FetchPartition) -> None:
        self.session = session
        self.topic = topic
        self.wanted = wanted
        self.high_watermark = _UNTOLD  # as the reader was told
        self.log_start_offset = _UNTOLD
        self._place: dict[Watcher, None] | None = None

    def has_news(self, reading: Reading) -> bool:
        """Whether an answer has to mention it."""
        data = reading.data
        return (
            reading.size > 0
            or data.high_watermark != self.high_watermark
            or data.log_start_offset != self.log_start_offset
            or data.error_code != ErrorCode.NONE
            or data.preferred_read_replica >= 0
            or data.diverging_epoch.epoch >= 0
        )

    def told(self, data: FetchResponsePartitionData) -> None:
        """The reader knows. After an error it is told of the partition again, whatever has changed."""
        failed = data.error_code != ErrorCode.NONE or data.diverging_epoch.epoch >= 0
        self.high_watermark = _UNKNOWN if failed else data.high_watermark
        self.log_start_offset = data.log_start_offset

    def hang(self, place: dict[Watcher, None]) -> None:
        """Hear of what happens there."""
        if self._place is not place:
            self.unhang()
            self._place = place
            place[self] = None

    def has_stirred(self, reading: Reading) -> bool:
        """Whether something has happened since this look, after which it hung where more is heard of."""
        return reading.place is not None and self._place is not reading.place

    def unhang(self) -> None:
        """Hear nothing any more."""
        if self._place is not None:
            self._place.pop(self, None)
            self._place = None

    # --- as a `waiters.Watcher` ---------------------------------------------------------------------------------------

    def arrived(self, size: int) -> None:
        """There is something to tell."""
        session = self.session
        if session.on_stir is not None and self not in session.due:
            session.on_stir(self)
        session.due[self] = None
        waiter = session.waiter
        if waiter is None:
            self.unhang()  # it is due already, whatever else happens until the next fetch
        elif size:
            waiter.arrived(size)

    def lost(self) -> None:
        """It is not what it was."""
        self.unhang()
        session = self.session
        session.due[self] = None
        if session.waiter is not None:
            session.waiter.lost()


@dataclass(slots=True)
class Found:
    """What one look at a session's or a request's partitions has found."""

    rows: list[tuple[SessionPartition | None, str | UUID, Reading]] = field(default_factory=list)
    size: int = 0
    must_answer: bool = False  # there is something that cannot wait: an error, where logs part, another replica

    def add(self, row: SessionPartition | None, topic: str | UUID, reading: Reading) -> None:
        """One more to tell."""
        self.rows.append((row, topic, reading))
        self.size += reading.size
        data = reading.data
        if data.error_code or data.preferred_read_replica >= 0 or data.diverging_epoch.epoch >= 0:
            self.must_answer = True

    def places(self) -> list[dict[Watcher, None]]:
        """Where more may arrive."""
        return [reading.place for _, _, reading in self.rows if reading.place is not None]

    def topics(self) -> tuple[FetchableTopicResponse, ...]:
        """As an answer has it: the partitions of a topic together."""
        return run_through(self.topics_in_steps())

    def topics_in_steps(self) -> Steps[tuple[FetchableTopicResponse, ...]]:
        """The same with pauses."""
        pace = Pace()
        topics: dict[str | UUID, list[FetchResponsePartitionData]] = {}
        for _, topic, reading in self.rows:
            if pace.over(_ROW_US):
                yield None
            topics.setdefault(topic, []).append(reading.data)
        told = []
        while topics:  # from its end: what is left of it when all is told would be let go in one piece
            if pace.over(_TOPIC_US):
                yield None
            topic, rows = topics.popitem()
            name, topic_id = (topic, NO_UUID) if isinstance(topic, str) else ("", topic)
            told.append(FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=tuple(rows)))
        told.reverse()
        return tuple(told)


class FetchSession:
    """One session; `session_cache` says how many there are and which has to go."""

    __slots__ = (
        "_topics",
        "access",
        "counted",
        "created_at",
        "due",
        "epoch",
        "id",
        "is_closed",
        "on_stir",
        "principal",
        "repeats",
        "size",
        "used_at",
        "uses_topic_ids",
        "waiter",
    )

    def __init__(
        self, session_id: int, principal: str, now: float, *, uses_topic_ids: bool, repeats: bool = False
    ) -> None:
        self.id = session_id
        self.repeats = repeats  # an answer mentions what its request mentions: then the reader may drop answers
        self.principal = principal
        self.uses_topic_ids = uses_topic_ids
        self.epoch = next_epoch(INITIAL_EPOCH)  # of the next request
        self.created_at = self.used_at = now  # seconds
        self.access = (
            0  # the generation of the reader's access in which its partitions were looked at (`tenancy.access`)
        )
        self.size = 0
        self.counted = 0  # of them, in the cache's books
        self.due: dict[SessionPartition, None] = {}  # in the order in which they have their turn
        self.waiter: ReadWaiter | None = None  # of the fetch that waits
        self.is_closed = False
        self.on_stir: Callable[[SessionPartition], None] | None = None  # called when an idle one becomes due
        self._topics: dict[str | UUID, dict[int, SessionPartition]] = {}

    def partitions(self) -> Iterator[SessionPartition]:
        """All of them."""
        for rows in self._topics.values():
            yield from rows.values()

    def partition(self, topic: str | UUID, index: int) -> SessionPartition | None:
        """One of them."""
        rows = self._topics.get(topic)
        return None if rows is None else rows.get(index)

    def begin(
        self, found: Found, wanted: Iterable[tuple[str | UUID, FetchPartition]], *, is_late: bool = False
    ) -> None:
        """Remember what a full fetch wanted and what it was told. `is_late`: it was looked at in earlier turns, too.

        Then something may have happened meanwhile, and the next request looks at all of it.
        """
        served = []
        for (topic, partition), (_, _, reading) in zip(wanted, found.rows, strict=True):
            row = self._want(topic, partition)
            row.told(reading.data)
            if reading.size:
                served.append((row, reading))
            else:
                self._settle(row, reading)
        for row, reading in served:
            self._settle(row, reading)  # behind all the others
        if is_late:
            self.due.update(dict.fromkeys(self.partitions()))

    def resume(self, request: FetchRequest, *, uses_topic_ids: bool) -> ErrorCode:
        """The next request of the session: take over what it changes. Or why not."""
        code = self.next_request(request, uses_topic_ids=uses_topic_ids)
        if not code:
            run_through(self.update(request))
        return code

    def next_request(self, request: FetchRequest, *, uses_topic_ids: bool) -> ErrorCode:
        """Whether this is the session's next request; if it is, what it changes is to be taken over (`update`)."""
        if self.epoch != request.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if self.uses_topic_ids != uses_topic_ids:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        self.epoch = next_epoch(self.epoch)
        self.wake()
        return ErrorCode.NONE

    def update(self, request: FetchRequest, most: int | None = None) -> Steps[None]:
        """Take over what a request changes.

        Ends early where the session has gone, or its next request has come, or it has more than `most` partitions.
        """
        pace, epoch = Pace(), self.epoch
        for topic in request.topics:
            name = self.name_of(topic)
            for wanted in topic.partitions:
                if pace.over(_WANT_US):
                    yield None
                if self.is_closed or self.epoch != epoch or (most is not None and self.size > most):
                    return
                self.due[self._want(name, wanted)] = None
        for gone in request.forgotten_topics_data:
            name = self.name_of(gone)
            rows = self._topics.get(name, {})
            for index in gone.partitions:
                if pace.over(_WANT_US):
                    yield None
                if self.is_closed or self.epoch != epoch:
                    return
                row = rows.pop(index, None)
                if row is not None:
                    self.size -= 1
                    row.unhang()
                    self.due.pop(row, None)
            if not rows:
                self._topics.pop(name, None)

    def allow(self, access: int, is_refused: Callable[[str | UUID], bool]) -> bool:
        """The reader's access is of this generation. Where it was another, topics that are refused now have that to tell.

        Whether there are such topics.
        """
        return run_through(self.allow_in_steps(access, is_refused))

    def allow_in_steps(self, access: int, is_refused: Callable[[str | UUID], bool]) -> Steps[bool]:
        """The same with pauses."""
        if self.access == access:
            return False
        self.access = access
        pace, any_refused = Pace(), False
        for topic, rows in list(self._topics.items()):
            if pace.over(_TOPIC_US):
                yield None
            if is_refused(topic) and self._topics.get(topic) is rows:
                self.due.update(dict.fromkeys(rows.values()))
                any_refused = True
        return any_refused

    def name_of(self, topic: FetchTopic | ForgottenTopic) -> str | UUID:
        """How this session's requests name a topic."""
        return topic.topic_id if self.uses_topic_ids else topic.topic

    def _want(self, topic: str | UUID, wanted: FetchPartition) -> SessionPartition:
        rows = self._topics.setdefault(topic, {})
        row = rows.get(wanted.partition)
        if row is None:
            row = rows[wanted.partition] = SessionPartition(self, topic, wanted)
            self.size += 1
        else:
            row.wanted = wanted
            if self.repeats:
                row.high_watermark = _UNTOLD
        return row

    # --- answering ----------------------------------------------------------------------------------------------------

    def look(self, read: Read, max_bytes: int) -> Found:
        """What there is to tell. Ends where the answer is full: the others stay due, and are first next time."""
        return run_through(self.look_in_steps(read, max_bytes, _never))

    def look_in_steps(self, read: Read, max_bytes: int, is_over: Callable[[], bool]) -> Steps[Found]:
        """The same with pauses. It ends early once `is_over`; `has_stirred` says what it may have missed."""
        found, pace = Found(), Pace()
        seen: dict[SessionPartition, bool] = {}  # those looked at; whether they were idle then
        rows = list(self.due)
        while rows:
            for row in rows:
                if pace.over(_READ_US):
                    yield None
                left = max_bytes - found.size
                if is_over() or left <= 0 < found.size:
                    return found
                if row not in self.due:  # forgotten meanwhile
                    continue
                reading = read(row.topic, row.wanted, max(0, left), found.size == 0)
                if row.has_news(reading):
                    found.add(row, row.topic, reading)
                    if reading.place is not None:
                        row.hang(reading.place)
                else:
                    self._settle(row, reading)
                seen[row] = row not in self.due
            rows = [row for row in self.due if seen.get(row, True)]  # something has happened there meanwhile
        return found

    def tell(self, found: Found) -> None:
        """An answer with this goes out."""
        run_through(self.tell_in_steps(found))

    def tell_in_steps(self, found: Found) -> Steps[None]:
        """The same with pauses."""
        pace = Pace()
        for row, _, reading in found.rows:
            if pace.over(_WANT_US):
                yield None
            if row is None or self.partition(row.topic, row.wanted.partition) is not row:  # forgotten meanwhile
                continue
            row.told(reading.data)
            if not row.has_stirred(reading):
                self._settle(row, reading)

    def has_stirred(self, found: Found) -> bool:
        """Whether something has happened at one of these partitions since it was looked at."""
        return any(row is not None and row.has_stirred(reading) for row, _, reading in found.rows)

    def expects_only(self, row: SessionPartition, epoch: int, access: int) -> bool:
        """Whether a request with this epoch is the next, none waits, and no other partition may have something to tell."""
        due = self.due
        return (
            self.epoch == epoch
            and self.waiter is None
            and not self.is_closed
            and self.access == access
            and (not due or (len(due) == 1 and row in due))
        )

    def told_records(
        self, row: SessionPartition, high_watermark: int, log_start_offset: int, place: dict[Watcher, None]
    ) -> None:
        """The request that `expects_only` spoke of was answered with records of this partition."""
        self.epoch = next_epoch(self.epoch)
        row.high_watermark, row.log_start_offset = high_watermark, log_start_offset
        row.hang(place)
        self.due[row] = None

    def _settle(self, row: SessionPartition, reading: Reading) -> None:
        """Due or idle, after a look whose news are known to the reader."""
        if self.is_closed:
            return
        if reading.place is not None:
            row.hang(reading.place)
        else:
            row.unhang()
        if reading.at_end:
            self.due.pop(row, None)
        else:
            if reading.size:
                self.due.pop(row, None)  # others first, next time
            self.due[row] = None

    def wait(self, waiter: ReadWaiter, found: Found) -> None:
        """The fetch that found too little waits; what has something to tell stays due, and counts what comes."""
        self.waiter = waiter
        for row, _, reading in found.rows:
            if row is not None and reading.place is not None:
                row.hang(reading.place)

    def wake(self) -> None:
        """A request that waits looks again, and sees that it was overtaken."""
        waiter, self.waiter = self.waiter, None
        if waiter is not None:
            waiter.lost()

    def close(self) -> None:
        """It is not in the cache any more."""
        self.is_closed = True
        for row in self.partitions():
            row.unhang()
        self._topics = {}  # each partition has this: as a cycle all would stay in memory (`garbage`)
        self.on_stir = None  # and so may this
        self.due.clear()
        self.wake()
