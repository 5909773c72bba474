"""From frames to handlers and back: one `ClientConnection` sits on every accepted connection.

It finds the row of the handler table, decodes and calls; a handler may answer at once (a message), later (a future or a
coroutine), or in slices (a generator: `records.steps`), whose first step is made at once; the others, and the encoding
then, are `dataplane.slices`' affair. A request of many elements is copied, and decoded and handled in slices as well; the
connection is not read meanwhile.

It has two parts, which the short cuts use as well (`served`):

    answers      places in the order of requests, how many may be owed, and whether the connection is read
    turnstile    what may begin, and what waits unread

A connection that may not be any more is closed when its turn comes, or sooner: when it asks for something, or something that
it has waited for is there (`_must_close`).

What a client may hold is bounded: frames of other requests than Produce, elements of a request, requests that wait for
an answer, and the time without any (`look`).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, NoReturn

from dataplane.auditing.outcomes import AUDITED, VALIDATED
from dataplane.doors import Connection
from dataplane.handlers.context import BrokerRooms, RequestContext
from dataplane.handlers.discovery.api_versions import unsupported_version
from dataplane.handlers.outcome import CloseConnectionError, Encoded, Now, Outcome, Reply
from dataplane.handlers.table import HANDLERS, Handler
from dataplane.network.refusals import ended_because
from dataplane.protocol.api import ApiKey
from dataplane.protocol.codec import (
    MAX_ELEMENTS,
    ManyElementsError,
    decoder_in_steps,
    limited_decoder_in_steps,
)
from dataplane.protocol.error_codes import error_codes
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.headers import (
    SIZE_BYTES,
    RequestHeader,
    encode_frame,
    encode_frame_in_steps,
    key_of,
    parse_request_header,
)
from dataplane.protocol.primitives import DecodeError
from dataplane.protocol.release import released
from dataplane.records.steps import Pace, Steps, resumed
from dataplane.requests.answers import Answers
from dataplane.requests.codecs import decoder_of
from dataplane.requests.fastpath.fetch import FetchFastPath
from dataplane.requests.fastpath.permits import MUST_CLOSE
from dataplane.requests.fastpath.produce import ProduceFastPath
from dataplane.requests.introduction import Introduction
from dataplane.requests.slots import Parts, Slot
from dataplane.requests.tokens import RawTokens
from dataplane.requests.turnstile import (
    FETCH,
    PRODUCE,
    STORED_BY_GROUPS,
    Turnstile,
)
from dataplane.security.roles import claimed, may_claim, may_send
from dataplane.security.strangers import Strangers
from dataplane.tasks import CancelledError, Future, Later, Task
from dataplane.tenancy.access import NO_PERMIT
from dataplane.tenancy.recent import Counters, Readings
from dataplane.tenancy.refused_here import turned_away
from dataplane.tenancy.session import Session
from dataplane.tenancy.user_traffic import UserTraffic
from quota.contracts.refused import Refused
from quota.core.bucket import TokenBucket
from quota.core.shares import EVERYBODY

MAX_OTHER_FRAME_BYTES = 2 * 2**20
"""Of a tenant's request that is not Produce."""
DECODED_TIMES, ELEMENT_BYTES, LEAST_ELEMENT_BYTES = 4, 256, 12
"""Memory of a long request that is decoded: its bytes some times, and an object for each of its elements, of which there are no
more than its bytes have room for. A thousand that waited for ZooKeeper took a gigabyte and a half."""

_log = logging.getLogger(__name__)

OF_ANY_LENGTH = frozenset(
    {
        ApiKey.FETCH,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.ALTER_PARTITION,
    }
)
"""What brokers tell each other of all their partitions. Anything else has a stranger's number of elements on the internal
listener, too: some of it is handled in one turn, and 150,000 assignments of a group were one of 50 ms."""
_LONG_BYTES = 128 * 2**10
"""A request of many elements that is larger will not be done in a slice."""
_LONG_PRODUCE_BYTES = 2 * 2**20
"""Nor will records of more than this be written in one. What clients send by default has 1 MiB of them."""
_NOTHING_CAME = (0, 0, 0)
_LOOK_US = 1
"""At one code of an answer."""
_SASL = (int(ApiKey.SASL_HANDSHAKE), int(ApiKey.SASL_AUTHENTICATE))
_BEFORE_AUTHENTICATION = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)


class ClientConnection:
    """The broker's side of one connection."""

    __slots__ = (
        "_connection",
        "_fetch",
        "_generation",
        "_introduction",
        "_monotonic",
        "_paying",
        "_produce",
        "_quiet",
        "_readings",
        "_requests",
        "_seen",
        "_traffic_told",
        "_user",
        "answers",
        "broker",
        "opened_s",
        "session",
        "turnstile",
    )

    def __init__(self, broker: BrokerRooms, connection: Connection, session: Session) -> None:
        self.broker, self.session = broker, session
        self._connection = connection
        self.answers = Answers(broker.doors.loop, connection, session)
        self.turnstile = Turnstile(broker, connection, session, self.answers)
        self._produce: ProduceFastPath | RawTokens = ProduceFastPath(self)
        self._fetch: FetchFastPath | RawTokens = FetchFastPath(self)
        self._paying: Future[None] | None = None  # what a long request waits for that met the debt of a rule
        self._generation = (
            NO_PERMIT.generation
        )  # of the instance's access, in which it was asked whether it may be open
        self._requests = self._seen = 0  # so many frames came; had come when it was last looked at
        self._quiet = 0  # how often it was looked at since it last sent anything
        self._monotonic = broker.doors.clock.monotonic
        self.opened_s = self._monotonic()
        self._readings = Readings(self.opened_s, _NOTHING_CAME)
        self._traffic_told = _NOTHING_CAME
        self._user: UserTraffic | None = None  # where it counts, once it is known who has signed in
        self._introduction: Introduction | None = None  # where it has to log in

    # --- requests -----------------------------------------------------------------------------------------------------

    @property
    def begins(self) -> Callable[..., bool]:
        """The turnstile's, which a connection asks before each frame: got once, and called without a call between."""
        return self.turnstile.begins

    @property
    def settle(self) -> Callable[[], None]:
        """Likewise, for what is to be done when all that came at once was handed out."""
        return self.turnstile.settle

    def frame(self, frame: memoryview) -> None:
        """One request, that was let begin. From here on its time counts (`answers`)."""
        self._requests += 1
        key = key_of(frame)
        answers = self.answers
        if key != answers.key:  # as `begin`, without a call
            answers.key, answers.asked = key, (key, self._monotonic())
        try:
            shapes = self._fetch if key == FETCH else self._produce
            if not shapes.serve(frame):
                self._serve(frame)
        except (DecodeError, CloseConnectionError):
            self._connection.close()
        except Exception:
            self._connection.close()  # it may have been called by a timer: nobody else would
            raise

    def closed(self, reason: str) -> None:
        """The connection is gone: nothing is answered any more."""
        self.answers.drop()
        self.turnstile.give_up()
        if self._paying is not None:
            self._paying.resolve(None)
        if self.session.instance is not None:
            self.tell_traffic()
            if self._user is not None:
                self.session.instance.user_traffic.went(self._user)
            self.session.instance.disconnected(self)
            why = None if self._requests else ended_because(reason)
            if why is not None:
                turned_away(self.session, why, self.broker.doors.clock.now_ms())
        if self._introduction is not None:
            self._introduction.gone()
        del (
            self._produce,
            self._fetch,
            self._introduction,
        )  # they refer to this, which would be garbage that nobody looks for (`garbage`)

    def close(self) -> None:
        """End it from this side: the whitelist has changed, or the instance is gone."""
        self._connection.close()

    def look_again(self) -> None:
        """Who may do what has changed: a fetch that waits, and is refused now, is answered."""
        self.answers.look_again()

    def look(self, patience: int) -> None:
        """Called every so often: a connection that sends nothing, `patience` times in a row, and waits for nothing ends.

        So does one that waits for its turn, which may never come, where its client has gone meanwhile.
        """
        self.tell_traffic()
        waits = (self.answers.owes or self.answers.is_parked) and not self._connection.peer_has_finished()
        if self._seen != self._requests:
            self._seen, self._quiet = self._requests, 0
        self._quiet = 0 if waits else self._quiet + 1
        if self._quiet > patience:
            self._connection.close()

    # --- what is told of it -------------------------------------------------------------------------------------------

    @property
    def client_id(self) -> str:
        """As its requests say, which need not all say the same; empty where none has."""
        return self.turnstile.sender[0]

    def lately(self, now_s: float) -> tuple[float, Counters]:
        """Over how many seconds, and the bytes that came and went in them and the requests (`tenancy.recent`)."""
        connection = self._connection
        return self._readings.look(now_s, (connection.received_bytes, connection.sent_bytes, self._requests))

    def tell_traffic(self) -> None:
        """Add to what instance and user have moved whatever came and went since the last time.

        That is when it is looked at, and at its end. What came before somebody had signed in counts with what comes after.
        """
        instance = self.session.instance
        if instance is None:
            return
        connection, told = self._connection, self._traffic_told
        now = (connection.received_bytes, connection.sent_bytes, self._requests)
        if now == told:
            return
        self._traffic_told = now
        received, sent, requests = now[0] - told[0], now[1] - told[1], now[2] - told[2]
        traffic, users = instance.traffic, instance.user_traffic
        traffic.received_bytes += received
        traffic.sent_bytes += sent
        traffic.requests += requests
        if self._user is None and self.session.signed_in is not None:
            self._user = users.came(self.session.signed_in)
        users.add(self._user or users.nobody, received, sent, requests)

    # --- requests, the slow way ---------------------------------------------------------------------------------------

    def _serve(self, frame: memoryview, slot: Slot | None = None) -> None:
        """By the table of handlers; with a `slot`, what has its place already and was let in."""
        header = parse_request_header(frame)
        row = self._row(header)
        if row is None:
            return
        session = self.session
        if header.api_key == FETCH:  # it may make a debt, of which only `consumed` would tell what was let in with it
            self.turnstile.settle()
        if header.client_id != self.turnstile.sender[0]:
            self.turnstile.sender = (header.client_id or "", session.peer)
        trusted = session.is_internal and session.authenticated
        if not trusted and len(frame) > MAX_OTHER_FRAME_BYTES and header.api_key != PRODUCE:
            self._connection.too_large(len(frame), MAX_OTHER_FRAME_BYTES)
            return
        if header.api_key == PRODUCE and len(frame) > _LONG_PRODUCE_BYTES:
            self._serve_long(row, header, frame, slot)
            return
        try:
            request = decoder_of(row, header.api_version)(frame, header.position, session.names)[0]
        except ManyElementsError:
            self._serve_long(row, header, frame, slot)
            return
        debt = None if slot is not None else self._debt(header, request)
        if debt is not None:
            again = memoryview(bytearray(frame))  # a batch is changed in place
            self.turnstile.keep_until_paid(debt, len(again), lambda: self._again(again, header.api_key))
            return
        ctx = self._context(row, header, len(frame), is_long=False)
        if header.api_key == PRODUCE:
            self._produce.remember(ctx, request, frame)
        elif header.api_key == FETCH:
            self._fetch.remember(ctx, request, frame)
        elif header.api_key in STORED_BY_GROUPS:
            self.turnstile.charge_groups(header, request, len(frame))
        reply = self._handled(row, ctx, request)
        introduction = self._introduction if header.api_key in _SASL else None
        if introduction is not None and header.api_key == ApiKey.SASL_AUTHENTICATE:
            reply = introduction.told(reply)
        self._take(row, ctx, reply, slot)
        if introduction is not None and (header.api_key == ApiKey.SASL_AUTHENTICATE or not session.is_internal):
            introduction.look_after(reply)

    def _again(self, frame: memoryview, api_key: int) -> None:
        """What was kept until it was paid: it came in another turn, and is written in this one unless it has to be kept again."""
        self.frame(frame)
        if api_key == PRODUCE and not self.answers.is_parked:
            self.broker.doors.loop.will_write(self.session.account, len(frame))

    def _serve_long(self, row: Handler, header: RequestHeader, frame: memoryview, slot: Slot | None) -> None:
        ctx = self._context(row, header, len(frame), is_long=True)
        kept = self._connection.lasting(frame)
        self._connection.hold(len(kept))
        steps = self._long(row, ctx, header, kept, is_let_in=slot is not None)
        size = self._decoded_bytes(header, len(kept))
        run, at_once = self.broker.slices.run, len(kept) < _LONG_BYTES
        begun = self.broker.decoded.begin(ctx.owner, size, lambda: run(ctx.owner, steps, at_once=at_once))
        self._take(row, ctx, begun, slot)

    def _context(self, row: Handler, header: RequestHeader, size: int, *, is_long: bool) -> RequestContext:
        return RequestContext(
            self.broker,
            self.session,
            row.api.key,
            header.api_version,
            header.correlation_id,
            header.client_id,
            size + SIZE_BYTES,
            is_long,
            self.turnstile.told_s,
            self.turnstile.reads_nothing,
        )

    def _debt(self, header: RequestHeader, request: Any) -> TokenBucket | None:
        instance = self.session.instance
        if instance is None or instance.rules is None:
            return None
        return self.turnstile.debt_of_rules(instance.rules, header, request)

    def _handled(self, row: Handler, ctx: RequestContext, request: Any) -> Reply:
        """What the handler replies. Raises CloseConnectionError for what one of the cluster says in another's name."""
        session = self.session
        if self._must_close():
            raise CloseConnectionError(MUST_CLOSE)
        if session.is_internal and session.authenticated and not may_claim(session.identity, request):
            self._refused(f"{row.api.key.name} in the name of broker {claimed(request)}")
        if row.api.key in VALIDATED and request.validate_only:
            ctx.only_asks()
        return row.handle(ctx, request)

    def _must_close(self) -> bool:
        """Whether it may not be open any more, and its turn to be closed has not come: asked once a generation of access."""
        instance = self.session.instance
        if instance is None or self._generation == instance.permit.generation:
            return False
        if instance.ends(self.session):
            return True
        self._generation = instance.permit.generation
        return False

    def _refused(self, what: str) -> NoReturn:
        session = self.session
        name = "nobody" if session.identity is None else session.identity.name
        _log.warning("refused at the internal listener: %s by %s from %s", what, name, session.peer)
        raise CloseConnectionError(what)

    def _row(self, header: RequestHeader) -> Handler | None:
        """The handler, or None when the request is dealt with. Raises CloseConnectionError."""
        session = self.session
        row = HANDLERS.get(header.api_key)
        if row is not None and not session.is_internal:
            row = row.of_tenants if row.tenant else None
        if row is None:
            raise CloseConnectionError("an API that this listener does not serve")
        if not session.authenticated:
            if row.api.key not in _BEFORE_AUTHENTICATION:
                if session.mechanism is None:
                    now_ms = self.broker.doors.clock.now_ms()
                    turned_away(session, Refused.NO_LOGIN, now_ms, client_id=header.client_id or "")
                raise CloseConnectionError("a request before authentication")
            if self._introduction is not None:
                self._introduction.one_more()
        elif session.is_internal and not may_send(session.identity, row.api.key):
            self._refused(row.api.key.name)
        if row.serves(header.api_version):
            return row
        if row.api.key != ApiKey.API_VERSIONS:
            raise CloseConnectionError("a version that was not offered")
        answer = encode_frame(row.api, 0, header.correlation_id, unsupported_version(row))
        self.answers.refused(row.api.key, (ErrorCode.UNSUPPORTED_VERSION,))
        self.answers.fill(self.answers.reserve(), answer)  # type: ignore[arg-type]
        return None

    # --- who it is ----------------------------------------------------------------------------------------------------

    def wait_for_login(self, strangers: Strangers | None = None) -> None:
        """Nobody knows yet who it is (`introduction`). `strangers`: the internal listener's."""
        self._introduction = Introduction(self, self._connection, strangers)

    def let_in(self) -> None:
        """Who it is has been proved by a certificate, and stands in the session."""
        if self._introduction is not None:
            self._introduction.let_in()

    def take_tokens(self, tokens: RawTokens | None) -> None:
        """As `introduction.Introduced`."""
        if tokens is not None:
            self._produce = self._fetch = tokens
        elif isinstance(self._produce, RawTokens):
            self._produce, self._fetch = ProduceFastPath(self), FetchFastPath(self)

    def forget_shapes(self) -> None:
        """As `introduction.Introduced`."""
        if not isinstance(self._produce, RawTokens):
            self._produce, self._fetch = ProduceFastPath(self), FetchFastPath(self)

    # --- long requests and answers ------------------------------------------------------------------------------------

    def _may_be_of_any_length(self, header: RequestHeader) -> bool:
        session = self.session
        return session.is_internal and session.authenticated and header.api_key in OF_ANY_LENGTH

    def _decoded_bytes(self, header: RequestHeader, size: int) -> int:
        if header.api_key == PRODUCE:  # records stay in the frame, which counts as held
            return ELEMENT_BYTES * min(MAX_ELEMENTS, size // LEAST_ELEMENT_BYTES)
        return decoded_bytes(size, size if self._may_be_of_any_length(header) else MAX_ELEMENTS)

    def _long(
        self, row: Handler, ctx: RequestContext, header: RequestHeader, frame: memoryview, *, is_let_in: bool
    ) -> Steps[Outcome]:
        """A request of many elements: decoded, and then as `_serve` does.

        Its copy counts as held until then, or until what is taken from it no longer needs it (`Later.held_until`).
        """
        names, size = self.session.names, len(frame)
        answer: Outcome | None = None
        make = decoder_in_steps if self._may_be_of_any_length(header) else limited_decoder_in_steps
        try:
            request = (yield from make(row.api.request, header.api_version)(frame, header.position, names))[0]
            debt = None if is_let_in else self._debt(header, request)
            if debt is not None:
                return self._when_paid(row, ctx, request, debt, self._decoded_bytes(header, size), size)
            if header.api_key in STORED_BY_GROUPS:
                self.turnstile.charge_groups(header, request, len(frame))
            # no name here for what it lets go
            answer = yield from self._answered(row, ctx, self._handled(row, ctx, request))
            held = [request]
            del request
            if isinstance(answer, Coroutine):
                return self._until_released(ctx, answer, held, self._decoded_bytes(header, len(frame)))
            try:
                yield from released(held)
            except GeneratorExit:  # the connection has gone, and has not heard of what it would give up
                _give_up(answer)
                raise
            return answer
        finally:
            self._let_go_of(size, answer)

    def _let_go_of(self, size: int, answer: Outcome | None) -> None:
        """A frame is held no longer than this answer needs it."""
        until = _held_until(answer)
        if until is None or until.done:
            self._connection.hold(-size)
        else:
            until.then(lambda _: self._connection.hold(-size))

    async def _until_released(self, ctx: RequestContext, reply: Awaitable[Now], request: list[Any], size: int) -> Now:
        """What a handler says that waits for others, the request taking its room for so long.

        The handler has let go of the request when it is done: it is freed here, and not whole.
        """
        self.broker.decoded.take(ctx.owner, size)
        try:
            answer = await reply
            await self.broker.slices.run(ctx.owner, released(request))
            return answer
        finally:
            self.broker.decoded.give_back(ctx.owner, size)

    async def _when_paid(
        self, row: Handler, ctx: RequestContext, request: Any, debt: TokenBucket, size: int, frame_bytes: int
    ) -> Any:
        """As `turnstile.keep_until_paid`: what is kept takes room of this size until then, or the connection is gone."""
        paid: Future[None] = Future()
        answer: Outcome | None = None
        self._connection.hold(frame_bytes)
        self.broker.decoded.take(ctx.owner, size)
        try:
            waiting = self.broker.debt_queues.join(
                debt, EVERYBODY, ctx.size, self.turnstile.paid_for(lambda: paid.resolve(None))
            )
            self._paying = paid
            try:
                await paid  # or the connection has ended
                if self.answers.is_closed:
                    raise CancelledError
            finally:
                self._paying = None
                waiting.give_up()
            answer = await self.broker.slices.run(ctx.owner, self._answered(row, ctx, self._handled(row, ctx, request)))
            return answer
        finally:
            self.broker.decoded.give_back(ctx.owner, size)
            self._let_go_of(frame_bytes, answer)

    def _first_step(self, row: Handler, ctx: RequestContext, steps: Steps[Outcome]) -> Outcome:
        """Of a handler in steps: what is over with it is an answer like any other, what is not goes on in slices."""
        try:
            work = next(steps)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        return self.broker.slices.run(ctx.owner, self._answered(row, ctx, resumed(steps, work)))

    def _answered(self, row: Handler, ctx: RequestContext, reply: Reply) -> Steps[Outcome]:
        """A handler's reply, encoded if it is there."""
        if isinstance(reply, Generator):
            reply = yield from reply
        if isinstance(reply, (Future, Coroutine, Encoded)):
            return reply
        self._tell_of(ctx, reply)
        yield from self._count_errors(ctx, reply)
        answer = self.turnstile.with_wait(row.api, ctx.told_s, reply)
        told_ms = _told_ms(row, answer)
        del reply
        frame = yield from encode_frame_in_steps(row.api, ctx.version, ctx.correlation_id, answer, self.session.names)
        held = [answer]
        del answer
        yield from released(held)
        return Encoded(frame, told_ms)

    def _count_errors(self, ctx: RequestContext, answer: Now) -> Steps[None]:
        """Of a long answer."""
        instance, pace = self.session.instance, Pace()
        if instance is None:
            return
        for code in error_codes(answer):
            if code:
                instance.figures.refused(ctx.api_key, (code,))
            if pace.over(_LOOK_US):
                yield None

    def _tell_of(self, ctx: RequestContext, answer: Now) -> None:
        """What has changed something is told to the audit of an instance that has one, and of all where the broker is to."""
        instance = ctx.session.instance
        if instance is None or ctx.api_key not in AUDITED or ctx.changes_nothing:
            return
        auditing = self.broker.auditing
        if instance.spec.audit or auditing.tells_changes:
            auditing.answered(ctx.session, ctx.api_key, ctx.client_id, answer)

    # --- answers ------------------------------------------------------------------------------------------------------

    def _take(self, row: Handler, ctx: RequestContext, reply: Reply, slot: Slot | None) -> None:
        """Send a handler's reply, now or when it is there."""
        if isinstance(reply, Generator):
            reply = self._first_step(row, ctx, reply)
        if isinstance(reply, Coroutine):
            task = Task(reply, row.api.key.name)
            self._take_later(row, ctx, task, slot, task if ctx.is_long else None)  # much waits with it: one at a time
        elif isinstance(reply, Future):
            self._take_later(row, ctx, reply, slot, _held_until(reply))
        else:
            self._fill(slot or self.answers.reserve(), row, ctx, reply)

    def _take_later(
        self, row: Handler, ctx: RequestContext, reply: Future[Any], slot: Slot | None, held_until: Future[Any] | None
    ) -> None:
        place = slot or self.answers.reserve()
        if not reply.done:
            self._wait_for(place, ctx, reply)
            if held_until is not None and not held_until.done:
                self.answers.hold_until(held_until)
        reply.then(lambda future: self._settle(row, ctx, place, future))

    def _wait_for(self, slot: Slot, ctx: RequestContext, reply: Future[Any]) -> None:
        size = 0 if ctx.api_key == ApiKey.PRODUCE else ctx.size
        self.answers.wait_at(slot, size, reply if isinstance(reply, Later) else None)
        began_s = self._monotonic()
        reply.then(lambda done: self._waited(slot, size, done, began_s))

    def _waited(self, slot: Slot, size: int, reply: Future[Any], began_s: float) -> None:
        self.answers.waited(slot, size)
        now_s = self._monotonic()
        slot.waited(reply.waited_s(began_s, now_s) if isinstance(reply, Later) else now_s - began_s)

    def go_on(self, slot: Slot, frame: bytes, told_s: float, answer: Callable[[], bool]) -> None:
        """The wait of a frame is over: it is answered, or served the slow way if `answer` says no. Never raises.

        `told_s` is what its sender is told to wait, as it was known when the frame began: others have begun since.
        """
        if self.answers.is_closed:
            return
        self.answers.waited(slot, len(frame) + SIZE_BYTES)
        slot.waited_until(self._monotonic())
        turnstile = self.turnstile
        of_the_last = turnstile.told_s, turnstile.reads_nothing
        turnstile.told_s, turnstile.reads_nothing = told_s, False
        try:
            if not answer():
                self._serve(memoryview(bytearray(frame)), slot)
        except CloseConnectionError:
            self._connection.close()
        except Exception:  # noqa: BLE001 - as in `_settle`
            self._connection.close()
            _log.exception("a fetch was not answered")
        finally:
            turnstile.told_s, turnstile.reads_nothing = of_the_last

    def _settle(self, row: Handler, ctx: RequestContext, slot: Slot, future: Future[Any]) -> None:
        """Never raises: it runs on the stack of the code that resolved the future, which has others to tell."""
        if self.answers.is_closed or self._must_close():
            if not self.answers.is_closed:
                self._connection.close()
            if future.error is None:
                _give_up(future.result())
            return
        error = future.error
        if error is not None:
            self._connection.close()
            if not isinstance(error, (DecodeError, CloseConnectionError)):
                _log.error("%s was not answered", row.api.key.name, exc_info=error)
            return
        try:
            reply: Outcome = future.result()
            if isinstance(reply, (Future, Coroutine)):  # of a long request that is decoded
                self._take(row, ctx, reply, slot)
            elif ctx.is_long and not isinstance(reply, Encoded):
                self._take(row, ctx, self._answered(row, ctx, reply), slot)
            else:
                self._fill(slot, row, ctx, reply)
        except (DecodeError, CloseConnectionError):
            self._connection.close()
        except Exception:  # noqa: BLE001 - any bug ends this connection and nothing else
            self._connection.close()
            _log.exception("%s was not answered", row.api.key.name)

    def _fill(self, slot: Slot, row: Handler, ctx: RequestContext, answer: Now) -> None:
        """Answer in its place; what it says of errors and of waiting is counted."""
        if not isinstance(answer, Encoded):
            self._tell_of(ctx, answer)
            self.answers.refused(ctx.api_key, error_codes(answer))
            answer = self.turnstile.with_wait(row.api, ctx.told_s, answer)
            frame = encode_frame(row.api, ctx.version, ctx.correlation_id, answer, self.session.names)
            answer = Encoded(frame, _told_ms(row, answer))
        if answer.told_ms:
            slot.told(answer.told_ms / 1000)
        parts: Parts = answer.parts  # type: ignore[assignment]
        self.answers.fill(slot, parts)


def _told_ms(row: Handler, answer: Any) -> int:
    """What an answer tells its client to wait."""
    return answer.throttle_time_ms if row.api.tells_wait else 0


def decoded_bytes(size: int, most_elements: int = MAX_ELEMENTS) -> int:
    """What a long request of `size` bytes takes in memory when it is decoded, about, and rather more."""
    return DECODED_TIMES * size + ELEMENT_BYTES * min(most_elements, size // LEAST_ELEMENT_BYTES)


def _held_until(reply: Outcome | None) -> Future[Any] | None:
    return reply.held_until if isinstance(reply, Later) else None


def _give_up(reply: Outcome) -> None:
    """A reply that came when its client had gone: what it waits for need not be."""
    if isinstance(reply, Later):
        reply.give_up()
    elif isinstance(reply, Coroutine):
        reply.close()
