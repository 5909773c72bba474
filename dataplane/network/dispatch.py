"""From frames to handlers and back: one `ClientConnection` sits on every accepted connection.

It finds the row of the handler table, decodes, calls, and keeps answers in the order of their requests: a handler may
answer at once (a message) or later (a future or a coroutine); what is ready behind an answer that is not waits.

Throttling (KIP-219): the answer goes out at once and says how long; this side goes on reading. The first further request
of the throttled kind is parked until the time is up, and from then on nothing is read; so heartbeats and commits that
were sent before it are never held.
"""

from __future__ import annotations

from collections import deque
from types import CoroutineType
from typing import Any

from dataplane.doors import Connection
from dataplane.handlers.api_versions import unsupported_version
from dataplane.handlers.context import BrokerRooms, RequestContext, Session
from dataplane.handlers.outcome import CloseConnectionError, Encoded
from dataplane.handlers.produce_shapes import ProduceShapes
from dataplane.handlers.table import HANDLERS, Handler
from dataplane.network.slots import Parts, Slot
from dataplane.protocol.api import ApiKey
from dataplane.protocol.codec import decoder
from dataplane.protocol.headers import RequestHeader, encode_frame, parse_request_header
from dataplane.protocol.primitives import DecodeError
from dataplane.tasks import Future, Task
from quota.contracts.namespace import ForeignNameError

MAX_REQUESTS_IN_FLIGHT = 1_000
"""Requests of one connection that wait for an answer; more than that is a client that will not stop."""
UNAUTHENTICATED_FRAME_BYTES = 512 * 2**10

_BEFORE_AUTHENTICATION = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
_PRODUCE, _FETCH = int(ApiKey.PRODUCE), int(ApiKey.FETCH)


class ClientConnection:
    """The broker's side of one connection."""

    __slots__ = (
        "_closed",
        "_connection",
        "_muted_until",
        "_produce",
        "_slots",
        "broker",
        "session",
    )

    def __init__(self, broker: BrokerRooms, connection: Connection, session: Session) -> None:
        self.broker = broker
        self.session = session
        self._connection = connection
        self._slots: deque[Slot] = deque()
        self._produce = ProduceShapes(self)
        self._muted_until: dict[int, float] = {}
        self._closed = False

    # --- requests -----------------------------------------------------------------------------------------------------

    def frame(self, frame: memoryview) -> None:
        """One request."""
        if self._muted_until and len(frame) > 2 and self._is_parked(frame):
            return
        if len(frame) > 2 and frame[1] == _PRODUCE and frame[0] == 0 and self._produce.serve(frame):
            return
        try:
            self._serve(frame)
        except (DecodeError, CloseConnectionError):
            self._connection.close()
        except ForeignNameError:
            self._connection.close()
            raise

    def closed(self, _reason: str) -> None:
        """The connection is gone: nothing is answered any more."""
        self._closed = True
        self._slots.clear()
        if self.session.instance is not None:
            self.session.instance.disconnected(self)

    def close(self) -> None:
        """End it from this side: the whitelist has changed, or the instance is gone."""
        self._connection.close()

    def _serve(self, frame: memoryview) -> None:
        header = parse_request_header(frame)
        row = self._row(header)
        if row is None:
            return
        session = self.session
        request = decoder(row.api.request, header.api_version)(frame, header.position, session.names)[0]
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
        self._take(row, ctx, row.handle(ctx, request))
        if row.api.key == ApiKey.SASL_AUTHENTICATE:
            self._authenticated_or_gone()

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

    def _take(self, row: Handler, ctx: RequestContext, reply: Any) -> None:
        """Send a handler's reply, now or when it is there."""
        if type(reply) is CoroutineType:
            reply = Task(reply, row.api.key.name)
        if isinstance(reply, Future):
            slot = self.reserve()
            reply.then(lambda future: self._settle(row, ctx, slot, future))
        elif reply is not None:
            self.fill(self.reserve(), self._encode(row, ctx, reply))

    def _settle(self, row: Handler, ctx: RequestContext, slot: Slot, future: Future[Any]) -> None:
        if self._closed:
            return
        if future.error is not None:
            self._connection.close()
            if not isinstance(future.error, CloseConnectionError):
                raise future.error
            return
        try:
            self.fill(slot, self._encode(row, ctx, future.result()))
        except ForeignNameError:
            self._connection.close()
            raise

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
            self._connection.pause_reading()

    def fill(self, slot: Slot, parts: Parts) -> None:
        """The answer of a place; it leaves with all that are ready behind it."""
        slots = self._slots
        if not slots:  # closed
            return
        slot.parts = parts
        was_full = len(slots) > MAX_REQUESTS_IN_FLIGHT
        while slots and slots[0].parts is not None:
            self._connection.send(slots.popleft().parts or ())
        if was_full and len(slots) <= MAX_REQUESTS_IN_FLIGHT:
            self._connection.resume_reading()

    # --- throttling ---------------------------------------------------------------------------------------------------

    def mute_produce(self, delay_s: float) -> None:
        """Park the next produce request until `delay_s` from now."""
        self._mute(_PRODUCE, delay_s)

    def _mute(self, key: int, delay_s: float) -> None:
        until = self.broker.doors.clock.monotonic() + delay_s
        self._muted_until[key] = max(until, self._muted_until.get(key, 0.0))

    def _is_parked(self, frame: memoryview) -> bool:
        key = frame[0] << 8 | frame[1]
        until = self._muted_until.get(key)
        if until is None:
            return False
        left = until - self.broker.doors.clock.monotonic()
        if left <= 0:
            del self._muted_until[key]
            return False
        self._connection.pause_reading()
        kept = memoryview(bytearray(frame))  # the frame's own memory ends with this turn; a batch is changed in place

        def resume() -> None:
            if not self._closed:
                self.frame(kept)
                self._connection.resume_reading()

        self.broker.doors.loop.call_later(left, resume)
        return True
