"""What of an instance's requests may begin now, and what waits unread (KIP-13, KIP-124, KIP-219).

Before a frame is taken from the socket its first bytes are shown to `begins`: the kind of request, and its size. What it
asks for is looked up in the instance's tolls: a list of buckets for each kind (`Instance.tolls`, made by the gate). Where
one of them owes, and the sender has used an equal part of it already (`throttle.debt_queue`), the connection is not read from
until it is served; so what waits is held by the client, not by the broker. What may begin is charged at once by the size
that it announces; a fetch and what it cost the loop are charged when they are known.

The answer goes out at once and says how long to wait before the next. Two kinds never wait, and so cannot be kept from a
group by its instance's other work: heartbeats, and what a connection introduces itself with. Commits wait for nothing but
what groups store. On a member's connection nothing else waits longer than half of the shortest session timeout either, since
a heartbeat may stand behind it. To be a member costs nothing, and one request of each of a thousand connections every few
seconds would be no limit: so what is produced waits for its bytes there, too, and a fetch that is let in before its turn is
answered and brings nothing.

What came pipelined is not looked up frame by frame where all that is here could pass: the first Produce or Fetch *clears* what
stands behind it, until something else than its kind comes, a fetch makes a debt, or what was received is handed out; then
it is charged in one sum (`settle`). Measured: looking each up was 13 % of a small Produce request.

Throttle rules within the instance can only be looked up when a request is decoded. One that meets such a debt is kept, and
counts as held memory; the next one of the connection waits for the same debt unread.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from dataplane.doors import Callback, Connection
from dataplane.handlers.context import BrokerRooms
from dataplane.handlers.groups.rows import stored_bytes
from dataplane.protocol.api import Api, ApiKey
from dataplane.protocol.headers import SIZE_BYTES, RequestHeader
from dataplane.requests.answers import NOTHING, Answers
from dataplane.tenancy.session import Session
from dataplane.throttle.debt_queue import Waiting, throttle_ms
from dataplane.throttle.tolls import (
    BYTES_IN,
    BYTES_OUT,
    GROUP_BYTES,
    HEARTBEATS,
    INTRODUCTIONS,
    LOOP_TIME,
    REQUEST_COUNT,
    Tolls,
)
from quota.contracts.namespace import ClusterNames
from quota.contracts.rows import REQUEST
from quota.core.bucket import TokenBucket
from quota.core.shares import EVERYBODY, Sender

if TYPE_CHECKING:
    from dataplane.tenancy.instance import Instance
    from dataplane.throttle.rules import InstanceRules

PRODUCE, FETCH = int(ApiKey.PRODUCE), int(ApiKey.FETCH)
_COMMITS = (int(ApiKey.OFFSET_COMMIT), int(ApiKey.TXN_OFFSET_COMMIT))
_CONSUMERS = int(ApiKey.CONSUMER_GROUP_HEARTBEAT)
STORED_BY_GROUPS = (*_COMMITS, int(ApiKey.JOIN_GROUP), int(ApiKey.SYNC_GROUP), _CONSUMERS)
_OF_MEMBERS = (int(ApiKey.JOIN_GROUP), int(ApiKey.SYNC_GROUP), int(ApiKey.HEARTBEAT), _CONSUMERS)
_PIPELINED = (PRODUCE, FETCH)
_COUNTED = (REQUEST_COUNT, HEARTBEATS)
LEAST_FETCH_BYTES = 64 * 2**10
"""So much credit a fetch needs to pass while others wait: nobody knows beforehand what it will bring."""


_STRANGER = Session(None, "", ClusterNames(), "", authenticated=False)


class Turnstile:
    """Lets the requests of one connection begin, or has them wait."""

    __slots__ = (
        "_answers",
        "_broker",
        "_clear_bytes",
        "_clear_key",
        "_clear_owed",
        "_connection",
        "_fetched_bytes",
        "_is_early",
        "_is_members",
        "_let_in",
        "_monotonic",
        "_ruled_by",
        "_session",
        "_waiting",
        "reads_nothing",
        "sender",
        "told_s",
    )

    def __init__(self, broker: BrokerRooms, connection: Connection, session: Session, answers: Answers) -> None:
        self._broker, self._connection = broker, connection
        # What somebody sends who has not logged in is charged to nobody's limits: it would be paid by those who have.
        self._session = session if session.authenticated else _STRANGER
        self._answers = answers
        self.sender: Sender = ("", session.peer)  # of the request that began last
        self._monotonic = broker.doors.clock.monotonic
        self._is_early = False  # a fetch is let in before its turn, for the sake of what is behind it
        self.reads_nothing = False  # so it was with the request that began last
        self.told_s = 0.0  # what the answer to the request that began last tells its sender to wait
        self._clear_key = self._clear_bytes = 0  # frames of this kind may begin unasked: so many bytes, with lengths
        self._clear_owed: tuple[TokenBucket, int] | None = (
            None  # the bucket that is owed for them, and what was clear at first
        )
        self._waiting: Waiting | None = None
        self._let_in: tuple[TokenBucket, ...] = ()  # by their lines
        self._fetched_bytes = 0  # by the last fetch
        self._is_members = False  # a member of a group speaks on it
        self._ruled_by: dict[int, TokenBucket] = {}  # by key: the rule that its last request had to wait for

    def let_in(self, session: Session) -> None:
        """It has logged in: from now on what it sends is its instance's."""
        self._session = session

    # --- before a request is read -------------------------------------------------------------------------------------

    def begins(self, key: int, size: int, behind: int = 0) -> bool:
        """Whether a request of this kind and size may be taken now; if not, reading goes on when it may.

        `behind`: bytes that were received with it and come next. A caller that says so calls `settle` when these are handed out.
        """
        if size < self._clear_bytes and key == self._clear_key:
            self._clear_bytes -= size + SIZE_BYTES
            return True
        instance = self._session.instance
        if instance is None:
            return True
        if self._clear_owed is not None:
            self.settle()
        self._clear_bytes = 0
        self.told_s = 0.0
        tolls = instance.tolls.get(key, instance.other_tolls)
        if not tolls:
            return True
        if key in _OF_MEMBERS:
            self._is_members = True
        now = self._monotonic()
        if self._ruled_by and not self._rule_allows(key, size, now):
            return False
        for bucket, kind in tolls:
            if (bucket.line is not None or bucket.paid_at > now) and not self._passes(bucket, kind, size, now):
                return False
        if self._let_in:
            self._let_in = ()
            self.reads_nothing, self._is_early = self._is_early, False
        elif self.reads_nothing:
            self.reads_nothing = False
        for bucket, kind in tolls:
            if kind == BYTES_IN:
                units = size + SIZE_BYTES
            elif kind in _COUNTED:
                units = REQUEST
            else:
                if kind == LOOP_TIME and bucket.paid_at > now:
                    self.told_s = max(self.told_s, bucket.delay(now))
                continue
            wait_s = bucket.charge(units, now)
            if wait_s or bucket.line is not None:  # nearly always neither: a call less on the hot path
                wait_s = self._broker.debt_queues.began(bucket, self.sender, units, wait_s, now)
                self.told_s = max(self.told_s, wait_s)
        if behind > 0 and key in _PIPELINED and not self.told_s:
            self._clear(key, tolls, behind, now)
        return True

    def _clear(self, key: int, tolls: Tolls, size: int, now: float) -> None:
        """Let what stands behind a request begin unasked, if all of it could be paid for and nobody waits."""
        owed = None
        for bucket, kind in tolls:
            if bucket.line is not None or bucket.paid_at > now or kind in _COUNTED:
                return
            if kind == BYTES_IN:
                if bucket.credit_bytes(now) < size:
                    return
                owed = (bucket, size)
        if not self._ruled_by:
            self._clear_key, self._clear_bytes, self._clear_owed = key, size, owed

    def settle(self) -> None:
        """What began unasked is charged, and nothing begins so any more; what comes next was not here yet."""
        self._answers.key = NOTHING
        left, self._clear_bytes = self._clear_bytes, 0
        if self._clear_owed is not None:
            (bucket, size), self._clear_owed = self._clear_owed, None
            if left < size:
                bucket.charge(size - left, self._monotonic())  # it suffices: nobody else was charged meanwhile

    def _passes(self, bucket: TokenBucket, kind: int, size: int, now: float) -> bool:
        if kind == HEARTBEATS or bucket in self._let_in:
            return True
        sender = self.sender
        if kind == BYTES_IN:
            asked = size + SIZE_BYTES
        elif kind == BYTES_OUT:
            asked = max(self._fetched_bytes, LEAST_FETCH_BYTES)
        elif kind == GROUP_BYTES:
            asked = size
        elif kind == REQUEST_COUNT:
            asked = REQUEST
        else:
            asked, sender = 0, EVERYBODY  # nobody knows what it will cost
        if self._broker.debt_queues.passes(bucket, sender, asked, now):
            return True
        self._stand_in_line(bucket, sender, asked, lambda: self._go_on(bucket), kind)
        return False

    def _rule_allows(self, key: int, size: int, now: float) -> bool:
        bucket = self._ruled_by.pop(key, None)
        if bucket is None or bucket in self._let_in or bucket.paid_at <= now:
            return True
        self._stand_in_line(bucket, EVERYBODY, size, lambda: self._go_on(bucket))
        return False

    def _stand_in_line(
        self, bucket: TokenBucket, sender: Sender, size: int, go_on: Callback, kind: int = LOOP_TIME
    ) -> None:
        """Read nothing until `go_on`, which comes sooner where a member speaks, but for Produce."""
        self._answers.is_parked = True
        self._connection.pause_for_limit()
        waiting = self._waiting = self._broker.debt_queues.join(bucket, sender, size, self.paid_for(go_on))
        if self._is_members and kind != BYTES_IN:
            patience_s = self._broker.config.settings.group_min_session_timeout_ms / 1000 / 2
            self._broker.doors.loop.call_later(
                patience_s, partial(self._time_is_up, waiting, is_fetch=kind == BYTES_OUT)
            )

    def _time_is_up(self, waiting: Waiting, *, is_fetch: bool) -> None:
        """In the account's time: a thousand connections that came together lose their patience together (27 ms in one turn)."""
        if self._waiting is waiting:
            lose = partial(self._lose_patience, waiting, is_fetch=is_fetch)
            self._broker.doors.loop.when_due(self._session.account, lose)

    def _lose_patience(self, waiting: Waiting, *, is_fetch: bool) -> None:
        """Let it in, unless its turn has come. A fetch is answered, and brings nothing: it is not its turn."""
        if self._waiting is waiting:
            self._is_early = self._is_early or is_fetch
            waiting.serve()

    def paid_for(self, serve: Callback) -> Callback:
        """As `serve`, which is called by a timer: what it costs the loop is the account's all the same."""
        loop, account = self._broker.doors.loop, self._session.account

        def served() -> None:
            began = loop.clock.monotonic()
            try:
                serve()
            finally:
                loop.worked_for(account, loop.clock.monotonic() - began)

        return served

    def _go_on(self, bucket: TokenBucket) -> None:
        self._waiting = None
        self._answers.is_parked = False
        if not self._answers.is_closed:
            self._let_in = (*self._let_in, bucket)
            if not self._answers.is_held:
                self._connection.resume_now()

    def give_up(self) -> None:
        """The connection is gone: nothing begins any more."""
        if self._waiting is not None:
            self._waiting.give_up()

    # --- when it is decoded -------------------------------------------------------------------------------------------

    def charge_groups(self, header: RequestHeader, request: Any, size: int) -> None:
        """A request to a group's coordinator, of this size on the wire: what it stores is the instance's."""
        instance = self._session.instance
        if instance is None or instance.group_bucket is None:
            return
        if header.api_key in _COMMITS:
            size += stored_bytes(request, header.api_version)
        self._broker.debt_queues.charge(instance.group_bucket, self.sender, size, self._broker.doors.clock.monotonic())

    def debt_of_rules(self, rules: InstanceRules, header: RequestHeader, request: Any) -> TokenBucket | None:
        """What this request has to wait for by the throttle rules that concern it."""
        session, client_id = self._session, header.client_id
        if header.api_key == PRODUCE:
            debt = rules.produce_debt(session, client_id, (topic.name for topic in request.topic_data))
        elif header.api_key == FETCH:
            debt = rules.fetch_debt(session, client_id)
        else:
            return None
        if debt is not None:
            self._ruled_by[header.api_key] = debt
        return debt

    def keep_until_paid(self, bucket: TokenBucket, size: int, serve: Callback) -> None:
        """Call `serve` when the bucket owes nothing, and read nothing until then. What is kept is memory of this size."""
        self._connection.hold(size)

        def paid() -> None:
            self._connection.hold(-size)
            self._waiting = None
            self._answers.is_parked = False
            if not self._answers.is_closed:
                serve()
                self.settle()  # what is read from now on was not here yet
                self._answers.read_on()

        self._stand_in_line(bucket, EVERYBODY, size, paid)

    # --- what its sender is told --------------------------------------------------------------------------------------

    def consumed(self, instance: Instance, size: int) -> float:
        """A fetch brings so many bytes; the seconds that its sender is told to wait before the next."""
        self._fetched_bytes = size
        bucket = instance.consume_bucket
        if bucket is None:
            return self.told_s
        now = self._monotonic()
        wait_s = bucket.charge(size, now)
        if not wait_s and bucket.line is None:
            return self.told_s
        self.settle()
        return max(self.told_s, self._broker.debt_queues.began(bucket, self.sender, size, wait_s, now))

    def with_wait(self, api: Api, told_s: float, answer: Any) -> Any:
        """A message that goes out now, saying what has to be waited for if it is longer than what it says already."""
        if not told_s or not api.tells_wait or api.key in INTRODUCTIONS:
            return answer
        wait_ms = throttle_ms(told_s)
        return replace(answer, throttle_time_ms=wait_ms) if wait_ms > answer.throttle_time_ms else answer
