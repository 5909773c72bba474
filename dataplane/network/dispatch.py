"""From frames to handlers and back: one `ClientConnection` sits on every accepted connection.

It finds the row of the handler table, decodes, calls, and keeps answers in the order of their requests: a handler may
answer at once (a message) or later (a future or a coroutine); what is ready behind an answer that is not waits.

Throttling (KIP-219): the answer goes out at once and says how long; this side goes on reading. The first further request
of the throttled kind is parked until the debt is paid (`throttle.lines`), and from then on nothing is read; so heartbeats
and commits that were sent before it are never held. What the instance owes then because of other connections is waited
for as well, and a new connection begins with it: or whoever connects anew for every request would have no limit.

What a client may hold is bounded: frames of other requests than Produce, elements of a request, requests that wait for
an answer, and the time without any (`look`).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from types import CoroutineType
from typing import Any

from dataplane.doors import Buffer, Connection, FileRange
from dataplane.handlers.api_versions import unsupported_version
from dataplane.handlers.context import BrokerRooms, RequestContext, Session
from dataplane.handlers.fetch_shapes import FetchShapes
from dataplane.handlers.offsets import stored_bytes
from dataplane.handlers.outcome import CloseConnectionError, Encoded
from dataplane.handlers.produce_shapes import ProduceShapes
from dataplane.handlers.table import HANDLERS, Handler
from dataplane.network.slots import Parts, Slot
from dataplane.protocol.api import ApiKey
from dataplane.protocol.codec import decoder, limited_decoder
from dataplane.protocol.headers import RequestHeader, encode_frame, parse_request_header
from dataplane.protocol.primitives import DecodeError
from dataplane.tasks import Future, Task
from dataplane.throttle.lines import NOTHING_S, owed_s, waits_s
from dataplane.throttle.rules import InstanceRules
from quota.core.bucket import TokenBucket

MAX_REQUESTS_IN_FLIGHT = 1_000
"""Requests of one connection that wait for an answer; more than that is a client that will not stop."""
MAX_BYTES_IN_FLIGHT = 256 * 2**10
"""And so many bytes of them, Produce apart, whose bytes do not wait: decoded they cost ten times as much."""
MAX_OTHER_FRAME_BYTES = 2 * 2**20
"""Of a tenant's request that is not Produce."""
UNAUTHENTICATED_FRAME_BYTES = 64 * 2**10
AUTHENTICATION_WITHIN_S = 10.0

_log = logging.getLogger(__name__)

_BEFORE_AUTHENTICATION = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
_PRODUCE, _FETCH = int(ApiKey.PRODUCE), int(ApiKey.FETCH)
_COMMIT = int(ApiKey.OFFSET_COMMIT)
_STORED_BY_GROUPS = (_COMMIT, int(ApiKey.JOIN_GROUP), int(ApiKey.SYNC_GROUP))


class ClientConnection:
    """The broker's side of one connection."""

    __slots__ = (
        "_bytes_in_flight",
        "_closed",
        "_connection",
        "_fetch",
        "_give_ups",
        "_is_held",
        "_is_parked",
        "_muted_until",
        "_produce",
        "_quiet",
        "_slots",
        "_will_send",
        "broker",
        "session",
    )

    def __init__(self, broker: BrokerRooms, connection: Connection, session: Session) -> None:
        self.broker = broker
        self.session = session
        self._connection = connection
        self._slots: deque[Slot] = deque()
        self._will_send = False  # at the end of this turn
        self._produce = ProduceShapes(self)
        self._fetch = FetchShapes(self)
        self._muted_until: dict[int, float] = {}
        self._is_parked = False  # a request waits for its time, and everything behind it
        self._is_held = False  # too much waits for an answer
        self._bytes_in_flight = 0
        self._give_ups: dict[Slot, Callable[[], None]] = {}  # what to stop when nobody waits for the answer any more
        self._quiet = 0  # how often it was looked at since it last sent anything
        self._closed = False

    # --- requests -----------------------------------------------------------------------------------------------------

    def frame(self, frame: memoryview) -> None:
        """One request."""
        self._quiet = 0
        try:
            if self._muted_until and len(frame) > 2 and self._parks(frame):
                return
            shapes = self._fetch if len(frame) > 1 and frame[1] == _FETCH else self._produce
            if not shapes.serve(frame):
                self._serve(frame)
        except (DecodeError, CloseConnectionError):
            self._connection.close()
        except Exception:
            self._connection.close()  # it may have been called by a timer: nobody else would
            raise

    def closed(self, _reason: str) -> None:
        """The connection is gone: nothing is answered any more."""
        self._closed = True
        self._slots.clear()
        give_ups, self._give_ups = self._give_ups, {}
        for give_up in give_ups.values():
            give_up()
        if self.session.instance is not None:
            self.session.instance.disconnected(self)

    def close(self) -> None:
        """End it from this side: the whitelist has changed, or the instance is gone."""
        self._connection.close()

    def look(self, patience: int) -> None:
        """Called every so often: a connection that sends nothing, `patience` times in a row, and waits for nothing ends."""
        self._quiet = 0 if self._slots or self._is_parked else self._quiet + 1
        if self._quiet > patience:
            self._connection.close()

    def look_for_authentication(self) -> None:
        """Its time is over."""
        if not self.session.authenticated:
            self._connection.close()

    def _serve(self, frame: memoryview, slot: Slot | None = None) -> None:
        """By the table of handlers; with a `slot`, what has its place already and was let in."""
        header = parse_request_header(frame)
        row = self._row(header)
        if row is None:
            return
        session = self.session
        trusted = session.is_internal and session.authenticated
        if not trusted and len(frame) > MAX_OTHER_FRAME_BYTES and header.api_key != _PRODUCE:
            raise CloseConnectionError("a large request that is not Produce")
        decode = (decoder if trusted else limited_decoder)(row.api.request, header.api_version)
        request = decode(frame, header.position, session.names)[0]
        if slot is None and session.instance is not None and session.instance.rules is not None:
            debt = self._debt_of_rules(session.instance.rules, header, request)
            if debt is not None:
                self._park(frame, debt)
                return
        ctx = RequestContext(
            self.broker,
            session,
            row.api.key,
            header.api_version,
            header.correlation_id,
            header.client_id,
            len(frame) + 4,
        )
        if header.api_key == _PRODUCE:
            self._produce.remember(ctx, request, frame)
        elif header.api_key == _FETCH:
            self._fetch.remember(ctx, request, frame)
        elif header.api_key in _STORED_BY_GROUPS:
            self._charge_groups(header, request, len(frame))
        self._take(row, ctx, row.handle(ctx, request), slot)
        if row.api.key == ApiKey.SASL_AUTHENTICATE:
            self._authenticated_or_gone()

    def _charge_groups(self, header: RequestHeader, request: Any, size: int) -> None:
        if header.api_key == _COMMIT:
            size += stored_bytes(request, header.api_version)
        delay_s = self.broker.gate.charge_groups(self.session.instance, size)
        if delay_s:
            self._mute(header.api_key, delay_s)

    def _authenticated_or_gone(self) -> None:
        if self.session.authenticated:
            self._connection.max_frame_bytes = self.broker.config.settings.socket_request_max_bytes
        else:
            self._connection.close_after_send()

    def _row(self, header: RequestHeader) -> Handler | None:
        """The handler, or None when the request is dealt with. Raises CloseConnectionError."""
        row = HANDLERS.get(header.api_key)
        session = self.session
        if row is None or not (row.internal if session.is_internal else row.tenant):
            raise CloseConnectionError("an API that this listener does not serve")
        if not session.authenticated and row.api.key not in _BEFORE_AUTHENTICATION:
            raise CloseConnectionError("a request before authentication")
        if row.serves(header.api_version):
            return row
        if row.api.key != ApiKey.API_VERSIONS:
            raise CloseConnectionError("a version that was not offered")
        answer = encode_frame(row.api, 0, header.correlation_id, unsupported_version())
        self.fill(self.reserve(), answer)  # type: ignore[arg-type]
        return None

    def _take(self, row: Handler, ctx: RequestContext, reply: Any, slot: Slot | None) -> None:
        """Send a handler's reply, now or when it is there."""
        if type(reply) is CoroutineType:
            reply = Task(reply, row.api.key.name)
        if isinstance(reply, Future):
            slot = slot or self.reserve()
            if not reply.done:
                self._wait_for(slot, ctx, reply)
                held_until = getattr(reply, "held_until", None)
                if held_until is not None and not held_until.done:
                    self._hold_until(held_until)
            reply.then(lambda future: self._settle(row, ctx, slot, future))
        elif reply is not None:
            self.fill(slot or self.reserve(), self._encode(row, ctx, reply))

    def _wait_for(self, slot: Slot, ctx: RequestContext, reply: Future[Any]) -> None:
        size = 0 if ctx.api_key == ApiKey.PRODUCE else ctx.size
        self.wait_at(slot, size, getattr(reply, "give_up", None))
        reply.then(lambda _: self._waited(slot, size))

    def wait_at(self, slot: Slot, size: int, give_up: Callable[[], None] | None) -> None:
        """A request of `size` bytes has its place and no answer yet."""
        self._bytes_in_flight += 0 if self.session.is_internal else size
        self._hold_if_full()
        if give_up is not None:
            self._give_ups[slot] = give_up

    def _waited(self, slot: Slot, size: int) -> None:
        self._bytes_in_flight -= 0 if self.session.is_internal else size
        self._give_ups.pop(slot, None)

    def go_on(self, slot: Slot, frame: bytes, answer: Callable[[], bool]) -> None:
        """The wait of a frame is over: it is answered, or served the slow way if `answer` says no. Never raises."""
        self._waited(slot, len(frame) + 4)
        try:
            if not answer():
                self._serve(memoryview(bytearray(frame)), slot)
        except CloseConnectionError:
            self._connection.close()
        except Exception:  # noqa: BLE001 - as in `_settle`
            self._connection.close()
            _log.exception("a fetch was not answered")

    def _hold_until(self, future: Future[Any]) -> None:
        """No more requests before this is done: what they ask must come after it."""
        self._is_parked = True
        self._connection.pause_reading()

        def go_on(_: Future[Any]) -> None:
            self._is_parked = False
            if not self._closed:
                self._read_on()

        future.then(go_on)

    def _settle(self, row: Handler, ctx: RequestContext, slot: Slot, future: Future[Any]) -> None:
        """Never raises: it runs on the stack of whoever resolved the future, who has others to tell."""
        if self._closed:
            return
        try:
            self.fill(slot, self._encode(row, ctx, future.result()))
        except CloseConnectionError:
            self._connection.close()
        except Exception:  # noqa: BLE001 - any bug ends this connection and nothing else
            self._connection.close()
            _log.exception("%s was not answered", row.api.key.name)

    def _encode(self, row: Handler, ctx: RequestContext, reply: Any) -> Parts:
        if isinstance(reply, Encoded):
            if reply.throttle_s:
                self._mute(ctx.api_key, reply.throttle_s)
            return reply.parts  # type: ignore[return-value]
        throttle_time_ms = getattr(reply, "throttle_time_ms", 0)
        if throttle_time_ms and ctx.api_key == ApiKey.PRODUCE:
            self.mute_produce(throttle_time_ms / 1000)
        return encode_frame(  # type: ignore[return-value]
            row.api, ctx.version, ctx.correlation_id, reply, self.session.names
        )

    # --- answers, in order --------------------------------------------------------------------------------------------

    def reserve(self) -> Slot:
        """The next place in the order of answers."""
        slot = Slot()
        self.append_slot(slot)
        return slot

    def append_slot(self, slot: Slot) -> None:
        """Give a slot the next place in the order of answers."""
        self._slots.append(slot)
        if len(self._slots) > MAX_REQUESTS_IN_FLIGHT:
            self._hold_if_full()

    def _hold_if_full(self) -> None:
        if len(self._slots) > MAX_REQUESTS_IN_FLIGHT or self._bytes_in_flight > MAX_BYTES_IN_FLIGHT:
            self._is_held = True
            self._connection.pause_reading()

    def _read_on(self) -> None:
        """Unless there is a reason left not to."""
        self._is_held = False
        self._hold_if_full()
        if not self._is_held and not self._is_parked:
            self._connection.resume_reading()

    def fill(self, slot: Slot, parts: Parts) -> None:
        """The answer of a place; it leaves with all that are ready behind it."""
        slots = self._slots
        if not slots:  # closed
            return
        slot.parts = parts
        if slots[0] is slot:
            self._send_ready()

    def fill_soon(self, slot: Slot, parts: Parts) -> None:
        """As `fill`, and what else is filled in this turn leaves with it: many small answers cost one call."""
        if self._closed:
            return
        slot.parts = parts
        if not self._will_send:
            self._will_send = True
            self.broker.doors.loop.at_turn_end(self._send_ready)

    def _send_ready(self) -> None:
        """Send the answers that nothing before them holds up."""
        self._will_send = False
        slots = self._slots
        ready: list[Buffer | FileRange] = []
        while slots and (parts := slots[0].parts) is not None:
            ready += parts
            slots.popleft()
        if ready:
            self._connection.send(ready)
        if self._is_held:
            self._read_on()

    # --- throttling ---------------------------------------------------------------------------------------------------

    def mute_produce(self, delay_s: float) -> None:
        """Park the next produce request until `delay_s` from now."""
        self._mute(_PRODUCE, delay_s)

    def mute_fetch(self, delay_s: float) -> None:
        """Park the next fetch until `delay_s` from now."""
        self._mute(_FETCH, delay_s)

    def _mute(self, key: int, delay_s: float) -> None:
        until = self.broker.doors.clock.monotonic() + delay_s
        self._muted_until[key] = max(until, self._muted_until.get(key, 0.0))

    def begin_in_debt(self) -> None:
        """A new connection of an instance waits for what the instance owes already."""
        now = self.broker.doors.clock.monotonic()
        for key in (_PRODUCE, _FETCH, *_STORED_BY_GROUPS):
            bucket = self._bucket(key)
            if bucket is not None and (left_s := owed_s(bucket, now)) > NOTHING_S:
                self._mute(key, left_s)

    def _bucket(self, key: int) -> TokenBucket | None:
        """What requests of this kind are charged to."""
        instance = self.session.instance
        if instance is None:
            return None
        if key == _PRODUCE:
            return instance.produce_bucket
        return instance.consume_bucket if key == _FETCH else instance.group_bucket

    def _parks(self, frame: memoryview) -> bool:
        """Whether this request is of a kind that has to wait; then it will be served at its time."""
        key = frame[0] << 8 | frame[1]
        told = self._muted_until.pop(key, None)
        bucket = None if told is None else self._bucket(key)
        if told is None or bucket is None or waits_s(bucket, told, self.broker.doors.clock.monotonic()) <= NOTHING_S:
            return False
        self._park(frame, bucket, told)
        return True

    def _debt_of_rules(self, rules: InstanceRules, header: RequestHeader, request: Any) -> TokenBucket | None:
        """What this request has to wait for by the throttle rules that concern it."""
        session, client_id = self.session, header.client_id
        if header.api_key == _PRODUCE:
            return rules.produce_debt(session, client_id, (topic.name for topic in request.topic_data))
        return rules.fetch_debt(session, client_id) if header.api_key == _FETCH else None

    def _park(self, frame: memoryview, bucket: TokenBucket, told: float = 0.0) -> None:
        """Serve this request when the bucket owes nothing, and read nothing until then."""
        self._is_parked = True
        self._connection.pause_reading()
        kept = memoryview(bytearray(frame))  # the frame's own memory ends with this turn; a batch is changed in place

        def resume() -> None:
            self._is_parked = False
            if not self._closed:
                self.frame(kept)
                self._read_on()

        self.broker.lines.join(bucket, told, resume)
