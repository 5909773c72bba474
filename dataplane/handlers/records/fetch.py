"""Fetch: batches as they lie in the log, for consumers up to the high watermark, for followers up to the end.

Answers are small headers around file ranges. A fetch that finds less than `min_bytes` waits on its partitions until there
is more or its time is up. What one partition says is `fetch_reading`'s; here is the fetch as a whole: with a session
(KIP-227, `dataplane.replication.serving.fetch_sessions`), or one that begins with it, or without.

Limits are Kafka's: an answer holds at most `max_bytes` (the smallest of the request's, the broker's, and what a limited
instance may read in about a second), each partition at most its own; but the first batch of the first partition that
has something comes whole, however large, or a consumer could not get past it.

A request that names very many partitions (`RequestContext.is_long`), or resumes a session in which very many may have
something to tell, looks at them in steps, and is told so. What a partition says is true of the moment of its own look; what
arrives at one of them while the others are being looked at is found by the next look, at the latest when `max_wait_ms` is
over, or in a session by this one.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from dataplane.handlers.context import RequestContext
from dataplane.handlers.outcome import CloseConnectionError, Encoded, Outcome, Reply
from dataplane.handlers.records.conversion import FIRST_NATIVE_FETCH, convert_answer, converted
from dataplane.handlers.records.fetch_reading import ConsumerReader
from dataplane.handlers.records.leader_hints import endpoints
from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.headers import encode_frame, encode_frame_in_steps
from dataplane.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResponseNodeEndpoint,
)
from dataplane.protocol.primitives import size_of
from dataplane.protocol.release import released
from dataplane.protocol.templates import with_field
from dataplane.records.steps import Pace, run_through
from dataplane.replication.serving.fetch_sessions import (
    INITIAL_EPOCH,
    NO_SESSION,
    FetchSession,
    Found,
    next_epoch,
)
from dataplane.replication.serving.follower_fetches import follower_of
from dataplane.replication.serving.session_cache import FIRST_VERSION_WITH_IDS, MOST_REMEMBERED
from dataplane.tasks import Future, Later
from dataplane.throttle.debt_queue import throttle_ms
from dataplane.throttle.fetching import WINDOW_S, TopicBudget

if TYPE_CHECKING:
    from dataplane.doors import Callback
    from dataplane.records.steps import Steps
    from dataplane.replication.replica.waiters import ReadWaiter
    from dataplane.replication.serving.session_cache import SessionPool
    from dataplane.throttle.rules import InstanceRules

_API = APIS[ApiKey.FETCH]
_FIRST_WITH_THROTTLE_TIME = 1
_NAME_US, _SIZE_US, _READ_US = 1, 1, 16
_SHORT = 64
"""Partitions of a session that are looked at in one go: a millisecond."""


def handle_fetch(ctx: RequestContext, request: FetchRequest) -> Reply:
    """A consumer's fetch, or on the internal listener a follower's."""
    if follower_of(request) >= 0:
        if not ctx.session.is_internal:
            raise CloseConnectionError("a replica's fetch on a tenant's listener")
        answer: Future[FetchResponse] = Future()
        ctx.broker.replica_fetches.serve(request, answer.resolve)
        return answer
    pool = pool_of(ctx)
    if ctx.is_long:
        return _handle_long(ctx, request, pool)
    session = pool.resume(request, principal_of(ctx), ctx.version)
    if isinstance(session, ErrorCode):
        return FetchResponse(error_code=session)
    if session is None:
        fetch: _Fetch = _FullFetch(ctx, request, pool)
    else:
        fetch = in_session = _SessionFetch(ctx, request, session)
        if in_session.is_long:
            return in_session.begin()
    fetch.start()
    return fetch.answer


def _handle_long(ctx: RequestContext, request: FetchRequest, pool: SessionPool) -> Steps[Outcome]:
    session = yield from pool.resume_in_steps(request, principal_of(ctx), ctx.version)
    if isinstance(session, ErrorCode):
        return FetchResponse(error_code=session)
    fetch = _LongFetch(ctx, request, pool) if session is None else _SessionFetch(ctx, request, session)
    return (yield from fetch.begin())


def pool_of(ctx: RequestContext) -> SessionPool:
    """Where the sessions of a client's instance are."""
    instance = ctx.session.instance
    return ctx.broker.fetch_sessions.pool("" if instance is None else instance.names.key)


def principal_of(ctx: RequestContext) -> str:
    """Whose sessions share a limit, and find each other."""
    return f"{ctx.session.principal}@{ctx.session.peer}"


class _Answer(Later[Encoded]):
    """Of a fetch that may wait long: `stop` ends that, whatever it waits for at the time.

    With an answer that is converted the connection waits as well (`conversion`).
    """

    __slots__ = ("_version", "look", "stop")

    def __init__(self, version: int) -> None:
        super().__init__()
        self._version = version
        self.stop: Callback | None = None
        self.look: Callback | None = None

    @property
    def held_until(self) -> Future[Encoded] | None:
        """Until it is converted."""
        return self if self._version < FIRST_NATIVE_FETCH else None

    def give_up(self) -> None:
        """Wait no longer."""
        stop = self.stop
        self._let_go()
        if stop is not None and not self.done:
            stop()

    def look_again(self) -> None:
        """Wait no longer where it is refused now."""
        if self.look is not None and not self.done:
            self.look()

    def _wake(self) -> None:
        self._let_go()
        super()._wake()

    def _let_go(self) -> None:
        """Of the fetch, which has this: as a cycle all that was asked for would stay in memory (`garbage`)."""
        self.stop = self.look = None


class _Fetch:
    """A consumer's fetch until it is answered: look, perhaps wait and look again, answer."""

    def __init__(self, ctx: RequestContext, request: FetchRequest) -> None:
        self._ctx, self._request = ctx, request
        self._reader = ConsumerReader(ctx, request)
        self._access = ctx.session.access_generation  # no later than that of any look
        self.answer = _Answer(ctx.version)

    @property
    def _rules(self) -> InstanceRules | None:
        """Those of now: they may have come, or gone, while it waited."""
        instance = self._ctx.session.instance
        return None if instance is None else instance.rules

    def start(self) -> None:
        """Answer at once if there is enough, else wait."""
        request = self._request
        max_bytes = self._max_bytes()
        found = self._found(max_bytes, self.start)
        if found is None:
            return
        missing = min(request.min_bytes, max_bytes) - found.size
        if found.must_answer or missing <= 0 or request.max_wait_ms <= 0 or not self._may_wait(found):
            self._finish(found)
        else:
            self._wait(found, missing, self._timeout_s())

    def _timeout_s(self) -> float:
        timeout_s = self._request.max_wait_ms / 1000
        budget = self._reader.budget
        return timeout_s if budget is None or budget.delay_s is None else min(timeout_s, budget.delay_s)

    def _woken(self) -> None:
        found = self._found(self._max_bytes(), self._woken)
        if found is not None:
            self._finish(found)

    def _found(self, max_bytes: int, again: Callback) -> Found | None:
        """What a look has found; None: the disk is asked for what it missed, and then it begins `again`."""
        rules = self._rules
        self._reader.budget = None if rules is None else TopicBudget(rules)
        found, cold = self._look(max_bytes), self._reader.cold
        if cold.missing is None:
            return found
        self.answer.stop = cold.give_up
        cold.bring(again)
        return None

    def _max_bytes(self) -> int:
        """What an answer may hold: also the broker's limit, and for a limited instance about a second of its allocation."""
        limit = min(self._request.max_bytes, self._ctx.broker.config.settings.fetch_max_bytes)
        allowed = self._ctx.broker.gate.fetch_bytes(self._ctx.session.instance, WINDOW_S)
        limit = limit if allowed is None else min(limit, max(allowed, 1))
        rules = self._rules
        if rules is None:
            return limit
        allowed = rules.fetch_bytes(self._ctx.session, self._ctx.client_id, WINDOW_S)
        return limit if allowed is None else min(limit, max(allowed, 1))

    def _look(self, max_bytes: int) -> Found:
        raise NotImplementedError

    def _may_wait(self, found: Found) -> bool:
        """Whether anything could come of it."""
        raise NotImplementedError

    def _wait(self, found: Found, missing: int, timeout_s: float) -> None:
        raise NotImplementedError

    def _tell(self, found: Found) -> FetchResponse:
        """The answer, which goes out now."""
        raise NotImplementedError

    def _finish(self, found: Found) -> None:
        response = self._tell(found)
        if self._ctx.version >= FIRST_NATIVE_FETCH:
            self._send(response)
        else:
            convert_answer(self._ctx, self._request, response).then(self._converted)

    def _converted(self, future: Future[FetchResponse]) -> None:
        if future.error is None:
            self._send(future.result())
        else:
            self.answer.fail(future.error)

    def _send(self, response: FetchResponse) -> None:
        ctx = self._ctx
        sizes = run_through(self._sizes(response))
        self._charge(sizes, encode_frame(_API, ctx.version, ctx.correlation_id, response, ctx.session.names))

    def _charge(self, sizes: list[tuple[str, int]], parts: list[Any]) -> None:
        """Answer with what is encoded, when its size is known to be paid for. `sizes`: bytes of records by topic."""
        ctx = self._ctx
        size = sum(size_of(part) for part in parts)
        delay_s = ctx.broker.gate.charge_consume(ctx.session.instance, ctx.sender, size, ctx.told_s)
        if ctx.is_on_behalf:
            for topic, records in sizes:
                delay_s = max(delay_s, ctx.broker.gate.charge_consume(ctx.payer(topic), ctx.sender, records))
        rules = self._rules
        if rules is not None:
            delay_s = max(delay_s, rules.charge_consume(ctx.session, ctx.client_id, size, sizes))
        told_ms = throttle_ms(delay_s) if delay_s and ctx.version >= _FIRST_WITH_THROTTLE_TIME else 0
        if told_ms:
            # The size of the answer decides the delay that it reports.
            parts[0] = with_field(_API, ctx.version, parts[0], "throttle_time_ms", told_ms)
        self.answer.resolve(Encoded(parts, told_ms))

    def _sizes(self, response: FetchResponse) -> Steps[list[tuple[str, int]]]:
        """The bytes of records by topic, counted as what the client consumes, as errors are. Of what is nobody's: none."""
        ctx, pace = self._ctx, Pace()
        instance = ctx.session.instance
        if instance is not None and response.error_code:
            instance.figures.refused(ctx.api_key, (response.error_code,))
        found: list[tuple[str, int]] = []
        if ctx.session.instance is None and not ctx.is_on_behalf:
            return found
        for topic in response.responses:
            size = 0
            for data in topic.partitions:
                if pace.over(_SIZE_US):
                    yield None
                size += size_of(data.records)
                if data.error_code and instance is not None:
                    instance.figures.refused(ctx.api_key, (data.error_code,))
            name = topic.topic or ctx.broker.replicas.registry.topic_of_id(topic.topic_id)
            if name is not None:
                found.append((name, size))
                if size:
                    ctx.talk(name).consumed += size
        return found

    def _response(self, session_id: int, topics: tuple[FetchableTopicResponse, ...]) -> FetchResponse:
        hints = endpoints(self._ctx, self._reader.hinted, FetchResponseNodeEndpoint) if self._reader.hinted else ()
        return FetchResponse(session_id=session_id, responses=topics, node_endpoints=hints)


class _FullFetch(_Fetch):
    """All that is wanted is in the request. It may begin a session."""

    def __init__(self, ctx: RequestContext, request: FetchRequest, pool: SessionPool) -> None:
        super().__init__(ctx, request)
        self._pool = pool
        self._wanted = _distinct(request, ctx.version)

    def _look(self, max_bytes: int) -> Found:
        found = Found()
        read = self._reader.read
        for topic, wanted in self._wanted:
            reading = read(topic, wanted, max(0, max_bytes - found.size), found.size == 0)
            found.add(None, topic, reading)
        return found

    def _may_wait(self, found: Found) -> bool:
        return bool(found.rows)

    def _wait(self, found: Found, missing: int, timeout_s: float) -> None:
        waiting = self._ctx.broker.replicas.waiting
        waiter = waiting.for_bytes(found.places(), missing, timeout_s, self._woken, self._ctx.owner)
        self.answer.stop, self.answer.look = waiter.cancel, lambda: self._look_again(waiter)

    def _look_again(self, waiter: ReadWaiter) -> None:
        if any(self._reader.is_refused(topic) for topic in dict.fromkeys(topic for topic, _ in self._wanted)):
            waiter.lost()

    def _tell(self, found: Found) -> FetchResponse:
        return self._response(self._session_of(found), found.topics())

    def _session_of(self, found: Found) -> int:
        """The session that begins with this fetch, if one does."""
        session = self._begin() if self._request.session_epoch == INITIAL_EPOCH else None
        if session is None:
            return NO_SESSION
        session.begin(found, self._wanted, is_late=self._ctx.is_long)
        session.access = self._access
        self._pool.touch(session)
        return session.id

    def _begin(self) -> FetchSession | None:
        uses_topic_ids = self._ctx.version >= FIRST_VERSION_WITH_IDS
        return self._pool.create(principal_of(self._ctx), len(self._wanted), uses_topic_ids=uses_topic_ids)


class _InSteps(_Fetch):
    """Of very many partitions: each look in slices, and the encoding."""

    def begin(self) -> Steps[Future[Encoded]]:
        """The first look; the answer comes when there is enough, or when the time is up."""
        yield from self._looked(is_last=False)
        return self.answer

    def _look_in_steps(self, max_bytes: int) -> Steps[Found]:
        """As `_look`; it ends once the disk is missed."""
        raise NotImplementedError

    def _tell_in_steps(self, found: Found) -> Steps[FetchResponse]:
        """As `_tell`."""
        raise NotImplementedError

    def _again(self, *, is_last: bool) -> None:
        look = self._ctx.broker.slices.run(self._ctx.owner, self._looked(is_last=is_last))
        if not look.done:
            self.answer.stop = look.give_up
        look.then(lambda done: None if done.error is None else self.answer.fail(done.error))

    def _looked(self, *, is_last: bool) -> Steps[None]:
        request, cold = self._request, self._reader.cold
        max_bytes = self._max_bytes()
        rules = self._rules
        self._reader.budget = None if rules is None else TopicBudget(rules)
        found = yield from self._look_in_steps(max_bytes)
        if cold.missing is not None:
            self.answer.stop = cold.give_up
            cold.bring(partial(self._again, is_last=is_last))
            return
        missing = min(request.min_bytes, max_bytes) - found.size
        if is_last or found.must_answer or missing <= 0 or request.max_wait_ms <= 0 or not self._may_wait(found):
            yield from self._told(found)
        else:
            self._wait(found, missing, self._timeout_s())

    def _told(self, found: Found) -> Steps[None]:
        ctx = self._ctx
        response = yield from self._tell_in_steps(found)
        if ctx.version < FIRST_NATIVE_FETCH:
            native = [response]
            response = yield from converted(ctx, self._request, response)
            yield from released(native)
        sizes = yield from self._sizes(response)
        parts = yield from encode_frame_in_steps(_API, ctx.version, ctx.correlation_id, response, ctx.session.names)
        self._charge(sizes, parts)
        messages: list[Any] = [response, self._request]
        del response, self._request  # nobody looks again
        yield from released(found.rows)
        yield from released(messages)


class _LongFetch(_InSteps, _FullFetch):
    """All that is wanted is in the request, and that is much."""

    def __init__(self, ctx: RequestContext, request: FetchRequest, pool: SessionPool) -> None:
        _Fetch.__init__(self, ctx, request)
        self._pool = pool
        self._wanted = []

    def begin(self) -> Steps[Future[Encoded]]:
        self._wanted = yield from _distinct_in_steps(self._request, self._ctx.version)
        return (yield from super().begin())

    def _look_in_steps(self, max_bytes: int) -> Steps[Found]:
        pace, found = Pace(), Found()
        for topic, wanted in self._wanted:
            if pace.over(_READ_US):
                yield None
            found.add(None, topic, self._reader.read(topic, wanted, max(0, max_bytes - found.size), found.size == 0))
            if self._reader.cold.missing is not None:
                break
        return found

    def _look_again(self, waiter: ReadWaiter) -> None:
        waiter.lost()  # it names so many topics that to ask for each would take long

    def _woken(self) -> None:
        self._again(is_last=True)

    def _tell_in_steps(self, found: Found) -> Steps[FetchResponse]:
        session_id = self._session_of(found)
        return self._response(session_id, (yield from found.topics_in_steps()))

    def _told(self, found: Found) -> Steps[None]:
        yield from super()._told(found)
        yield from released(self._wanted)

    def _begin(self) -> FetchSession | None:
        return super()._begin() if len(self._wanted) <= MOST_REMEMBERED else None


class _SessionFetch(_InSteps):
    """What is wanted is in the session, as the request has just changed it."""

    def __init__(self, ctx: RequestContext, request: FetchRequest, session: FetchSession) -> None:
        super().__init__(ctx, request)
        self._session = session
        self._next_epoch = next_epoch(request.session_epoch)
        self._has_asked = False  # which topics are refused now

    @property
    def is_long(self) -> bool:
        """Whether so much has to be looked at that it is done in steps."""
        session = self._session
        asks = not self._has_asked and session.access != self._access
        return len(session.due) > _SHORT or (asks and session.size > _SHORT)

    def start(self) -> None:
        if self.is_long:
            self._again(is_last=False)
        else:
            super().start()

    def _look(self, max_bytes: int) -> Found:
        session = self._session
        if not self._is_current():
            return Found()
        run_through(self._ask())
        return session.look(self._reader.read, max_bytes)

    def _ask(self) -> Steps[None]:
        if not self._has_asked:
            self._has_asked = True
            yield from self._session.allow_in_steps(self._access, self._reader.is_refused)

    def _look_in_steps(self, max_bytes: int) -> Steps[Found]:
        session, cold = self._session, self._reader.cold
        if not self._is_current():
            return Found()
        yield from self._ask()

        def is_over() -> bool:
            return cold.missing is not None or not self._is_current()

        return (yield from session.look_in_steps(self._reader.read, max_bytes, is_over))

    def _is_current(self) -> bool:
        return self._session.epoch == self._next_epoch

    def _may_wait(self, _found: Found) -> bool:
        return self._is_current() and not self._session.is_closed

    def _wait(self, found: Found, missing: int, timeout_s: float) -> None:
        session = self._session
        if session.has_stirred(found):
            self._again(is_last=False)
            return
        waiter = self._ctx.broker.replicas.waiting.for_session(missing, timeout_s, self._woken, self._ctx.owner)
        session.wait(waiter, found)
        self.answer.look = self._look_again

        def give_up() -> None:
            waiter.cancel()
            if session.waiter is waiter:
                session.waiter = None

        self.answer.stop = give_up

    def _look_again(self) -> None:
        """What is refused now is due, and has that to tell."""
        session, access = self._session, self._ctx.session.access_generation
        if not self._is_current() or session.waiter is None:
            return
        if session.size > _SHORT:  # it asks when it looks again
            self._access, self._has_asked = access, False
            session.wake()
        elif session.allow(access, self._reader.is_refused):
            session.wake()

    def _woken(self) -> None:
        if self._is_current():
            self._session.waiter = None
        if self.is_long:
            self._again(is_last=True)
        else:
            super()._woken()

    def _tell_in_steps(self, found: Found) -> Steps[FetchResponse]:
        session = self._session
        if not self._is_current():
            return self._overtaken()
        yield from session.tell_in_steps(found)
        return self._response(session.id, (yield from found.topics_in_steps()))

    def _tell(self, found: Found) -> FetchResponse:
        session = self._session
        if not self._is_current():  # the next request of the session has come meanwhile
            return self._overtaken()
        session.tell(found)
        return self._response(session.id, found.topics())

    def _overtaken(self) -> FetchResponse:
        return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=self._session.id)


_Wanted = list[tuple["str | UUID", FetchPartition]]


def _distinct_in_steps(request: FetchRequest, version: int) -> Steps[_Wanted]:
    """As `_distinct`."""
    pace = Pace()
    by_id = version >= FIRST_VERSION_WITH_IDS
    distinct: dict[tuple[str | UUID, int], tuple[str | UUID, FetchPartition]] = {}
    for t in request.topics:
        topic = t.topic_id if by_id else t.topic
        for wanted in t.partitions:
            if pace.over(_NAME_US):
                yield None
            distinct[topic, wanted.partition] = (topic, wanted)
    rows: _Wanted = []
    while distinct:
        if pace.over(_NAME_US):
            yield None
        rows.append(distinct.popitem()[1])
    rows.reverse()
    return rows


def _distinct(request: FetchRequest, version: int) -> list[tuple[str | UUID, FetchPartition]]:
    """(topic as the client names it, what is wanted), each partition once: what is said last of it holds."""
    by_id = version >= FIRST_VERSION_WITH_IDS
    rows = [(t.topic_id if by_id else t.topic, wanted) for t in request.topics for wanted in t.partitions]
    if len(rows) <= 1:
        return rows
    distinct = {(topic, wanted.partition): (topic, wanted) for topic, wanted in rows}
    return rows if len(distinct) == len(rows) else list(distinct.values())
