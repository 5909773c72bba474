"""Connections that this broker opens to other brokers: authenticated, pipelined, with a timeout for every call.

A `Peer` is one broker's address. It connects when the first call comes and again, after a pause that doubles, when
calls come after a failure. It says who it is, as every connection to an internal listener must (over TLS by its certificate,
after it has seen the other's; else SASL/PLAIN with the credential of its identity), and then sends what it is asked to; answers
come in the order of the requests. When the connection ends,
or an answer is overdue, every call under way fails with PeerError: whether the other side did what was asked is then
unknown, and only the caller knows how to ask again.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from dataplane.protocol.api import APIS, Api, ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.headers import (
    correlation_id_of,
    decode_response,
    decode_response_in_steps,
    encode_request,
    encode_request_in_steps,
)
from dataplane.protocol.messages.security import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from dataplane.protocol.primitives import DecodeError
from dataplane.protocol.schema import message_info
from dataplane.tasks import Future, Hurried, Task, failed

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.doors import Connection, Loop, Timer, TlsClient

DEFAULT_TIMEOUT_S = 30.0
FIRST_BACKOFF_S = 0.05
LAST_BACKOFF_S = 1.0
LARGEST_ANSWER_BYTES = 2**31 - 1
"""The other side is one of us. With the limit of requests, a batch of just that size could not be replicated, and
nothing else from the same leader."""


def _in_plaintext() -> TlsClient | None:
    return None


class PeerError(Exception):
    """A call got no answer. It may have had its effect."""


class _Call(NamedTuple):
    """A request and where its answer goes."""

    api: Api
    version: int
    request: Any
    answer: Future[Any]
    deadline: float
    written: tuple[int, bytes] | None = None
    """The request as a frame, with its correlation id, where it was encoded before; so is the answer a frame."""


class Peer:
    """One connection to one address. Not used after `close`. `tls` is asked for each connection; None: in plaintext."""

    def __init__(
        self,
        loop: Loop,
        host: str,
        port: int,
        name: str,
        credential: str,
        tls: Callable[[], TlsClient | None] = _in_plaintext,
        hurried: Hurried | None = None,
    ) -> None:
        self._loop = loop
        self._hurried = hurried or Hurried(loop)
        self._tls = tls
        self._is_secured = False  # the connection, or the one that is being made
        self.address = (host, port)
        self._name = name
        self._credential = credential
        self._connection: Connection | None = None
        self._give_up: Callable[[], None] | None = None  # while connecting
        self._ready = False  # authenticated
        self._closed = False
        self._correlation_id = 0
        self._waiting: deque[_Call] = deque()  # for the connection
        self._sent: deque[tuple[int, _Call]] = deque()
        self._backoff_s = 0.0
        self._not_before = 0.0
        self._pause: Timer | None = None
        self._watchdog: Timer | None = None
        self._watchdog_at = 0.0

    def call(self, request: Any, version: int, timeout_s: float = DEFAULT_TIMEOUT_S) -> Future[Any]:
        """Send a request of one of our declarations. The future gets the answer or PeerError.

        Record bytes in an answer are valid until the end of the turn in which the future is resolved.
        """
        return self._begun(_Call(_api(request), version, request, Future(), self._loop.clock.monotonic() + timeout_s))

    def call_in_steps(self, request: Any, version: int, timeout_s: float = DEFAULT_TIMEOUT_S) -> Future[Any]:
        """The same where request and answer may be long: they are encoded and decoded with pauses, one turn after the other.

        What is called meanwhile may overtake it.
        """
        return Task(self._called_in_steps(request, version, timeout_s))

    async def _called_in_steps(self, request: Any, version: int, timeout_s: float) -> Any:
        api, number = _api(request), self._next_correlation_id()
        frame = await self._hurried.run(encode_request_in_steps(api, version, number, self._name, request))
        del request  # whoever called may let go of it in steps
        deadline = self._loop.clock.monotonic() + timeout_s
        answer = await self._begun(_Call(api, version, None, Future(), deadline, (number, frame)))
        del frame
        answered_by = self._connection
        try:
            return await self._hurried.run(decode_response_in_steps(api, version, answer))
        except DecodeError as error:
            if answered_by is not None and answered_by is self._connection:
                self._lost("an answer that cannot be read")
            raise PeerError(str(error)) from None

    def _begun(self, call: _Call) -> Future[Any]:
        if self._closed:
            return failed(PeerError("closed"))
        self._watch(call.deadline)
        if self._ready:
            self._send(call)
        else:
            self._waiting.append(call)
            self._connect()
        return call.answer

    def close(self) -> None:
        """Give up everything."""
        self._closed = True
        self._lost("closed")
        if self._pause is not None:
            self._pause.cancel()

    # --- connecting ---------------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        if self._closed or self._connection is not None or self._give_up is not None or self._pause is not None:
            return
        delay = self._not_before - self._loop.clock.monotonic()
        if delay > 0:
            self._pause = self._loop.call_later(delay, self._pause_over)
        else:
            tls = self._tls()
            self._is_secured = tls is not None
            self._give_up = self._loop.connect(*self.address, self._opened, self._lost, tls)

    def _pause_over(self) -> None:
        self._pause = None
        if self._waiting:
            self._connect()

    def _opened(self, connection: Connection) -> _Frames:
        self._give_up = None
        self._connection = connection
        connection.max_frame_bytes = LARGEST_ANSWER_BYTES
        if self._is_secured:
            self._begin()
        else:
            self._handshake(connection)
        return _Frames(self, connection)

    def _handshake(self, connection: Connection) -> None:
        deadline = self._loop.clock.monotonic() + DEFAULT_TIMEOUT_S
        self._watch(deadline)
        credentials = f"\0{self._name}\0{self._credential}".encode()

        def mechanisms(answer: Future[Any]) -> None:
            if answer.error is None and connection is self._connection:
                response: SaslHandshakeResponse = answer.result()
                if response.error_code != ErrorCode.NONE:
                    self._lost("the mechanism PLAIN is refused")
                    return
                request = SaslAuthenticateRequest(auth_bytes=credentials)
                self._send(_Call(APIS[ApiKey.SASL_AUTHENTICATE], 2, request, authenticated, deadline))

        def outcome(answer: Future[Any]) -> None:
            if answer.error is None and connection is self._connection:
                response: SaslAuthenticateResponse = answer.result()
                if response.error_code != ErrorCode.NONE:
                    self._lost("the credential is refused")
                else:
                    self._backoff_s = 0.0
                    self._begin()

        handshake: Future[Any] = Future()
        authenticated: Future[Any] = Future()
        handshake.then(mechanisms)
        authenticated.then(outcome)
        self._send(_Call(APIS[ApiKey.SASL_HANDSHAKE], 1, SaslHandshakeRequest(mechanism="PLAIN"), handshake, deadline))

    def _begin(self) -> None:
        self._ready = True
        while self._waiting and self._ready:
            self._send(self._waiting.popleft())

    # --- calls --------------------------------------------------------------------------------------------------------

    def _send(self, call: _Call) -> None:
        assert self._connection is not None
        if call.written is not None:
            number, frame = call.written
        else:
            number = self._next_correlation_id()
            frame = encode_request(call.api, call.version, number, self._name, call.request)
        self._sent.append((number, call))
        self._connection.send([frame])

    def _next_correlation_id(self) -> int:
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        return self._correlation_id

    def received(self, frame: memoryview) -> None:
        """The answer to the oldest call."""
        if not self._sent:
            self._lost("an answer to nothing")
            return
        if self._backoff_s and self._is_secured:
            self._backoff_s = 0.0  # only now is it known that our certificate was believed
        expected, call = self._sent.popleft()
        response: Any
        try:
            if call.written is not None:
                correlation_id, response = correlation_id_of(frame), bytes(frame)
            else:
                correlation_id, response = decode_response(call.api, call.version, frame)
        except DecodeError as error:
            call.answer.fail(PeerError(str(error)))
            self._lost("an answer that cannot be read")
            return
        if correlation_id != expected:
            call.answer.fail(PeerError("an answer to another request"))
            self._lost("an answer to another request")
            return
        call.answer.resolve(response)

    def _lost(self, reason: str) -> None:
        """The connection is over, or never came to be."""
        connection, self._connection = self._connection, None
        give_up, self._give_up = self._give_up, None
        if give_up is not None:
            give_up()
        self._ready = False
        self._backoff_s = min(max(FIRST_BACKOFF_S, self._backoff_s * 2), LAST_BACKOFF_S)
        self._not_before = self._loop.clock.monotonic() + self._backoff_s
        calls = [call for _, call in self._sent] + list(self._waiting)
        self._sent.clear()
        self._waiting.clear()
        if connection is not None:
            connection.close()
        for call in calls:
            call.answer.fail(PeerError(reason))

    def connection_closed(self, connection: Connection, reason: str) -> None:
        """A connection has ended; perhaps one that we have given up already."""
        if connection is self._connection:
            self._lost(reason)

    # --- timeouts -----------------------------------------------------------------------------------------------------
    # One timer for all calls, at the earliest deadline that was known when it was set.

    def _watch(self, deadline: float) -> None:
        if self._watchdog is not None:
            if self._watchdog_at <= deadline:
                return
            self._watchdog.cancel()
        self._watchdog_at = deadline
        delay = max(0.0, deadline - self._loop.clock.monotonic())
        self._watchdog = self._loop.call_later(delay, self._look)

    def _look(self) -> None:
        self._watchdog = None
        deadlines = [call.deadline for _, call in self._sent] + [call.deadline for call in self._waiting]
        if not deadlines:
            return
        if min(deadlines) <= self._loop.clock.monotonic():
            self._lost("no answer in time")
        else:
            self._watch(min(deadlines))


def _api(request: Any) -> Api:
    key = message_info(type(request)).api_key
    assert key is not None
    return APIS[key]


class _Frames:
    """What sits on a peer's connection."""

    def __init__(self, peer: Peer, connection: Connection) -> None:
        self._peer, self._connection = peer, connection

    def frame(self, frame: memoryview) -> None:
        self._peer.received(frame)

    def closed(self, reason: str) -> None:
        self._peer.connection_closed(self._connection, reason)


class Peers:
    """The brokers of the cluster, by id. `name` is the identity that this one says, with its credential.

    `address_of` says where a broker is now; None: it is not registered. `tls_to` says how to secure a connection to one; None:
    in plaintext.
    """

    def __init__(
        self,
        loop: Loop,
        name: str,
        credential: str,
        address_of: Callable[[int], tuple[str, int] | None],
        tls_to: Callable[[int], TlsClient | None] = lambda _: None,
    ) -> None:
        self._loop = loop
        self._name = name
        self._credential = credential
        self._address_of = address_of
        self._tls_to = tls_to
        self._hurried = Hurried(loop)
        self._learned: dict[int, tuple[str, int]] = {}
        self._peers: dict[int, Peer] = {}

    def learn(self, broker_id: int, host: str, port: int) -> None:
        """LeaderAndIsr names the leaders' addresses, and may come before the metadata that do."""
        self._learned[broker_id] = (host, port)

    def address(self, broker_id: int) -> tuple[str, int] | None:
        return self._address_of(broker_id) or self._learned.get(broker_id)

    def call(
        self,
        broker_id: int,
        request: Any,
        version: int,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        *,
        is_long: bool = False,
    ) -> Future[Any]:
        """Call a broker over the connection that all short calls share; `is_long`: in steps."""
        peer = self._peers.get(broker_id)
        address = self.address(broker_id)
        if address is None:
            return failed(PeerError(f"broker {broker_id} has no address"))
        if peer is None or peer.address != address:
            if peer is not None:
                peer.close()
            peer = self._peers[broker_id] = self._new(broker_id, address)
        return (peer.call_in_steps if is_long else peer.call)(request, version, timeout_s)

    def dedicated(self, broker_id: int) -> Peer | None:
        """A connection of one's own, for calls that take their time (fetches). The caller closes it."""
        address = self.address(broker_id)
        return None if address is None else self._new(broker_id, address)

    def close(self) -> None:
        """Give up all calls."""
        peers, self._peers = self._peers, {}
        for peer in peers.values():
            peer.close()

    def _new(self, broker_id: int, address: tuple[str, int]) -> Peer:
        tls = partial(self._tls_to, broker_id)
        return Peer(self._loop, *address, self._name, self._credential, tls, self._hurried)
