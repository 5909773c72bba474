"""A connection whose bytes are TLS: a handshake first, then a connection as any other over `TlsSocket`.

Until the handshake is over no byte reaches the protocol, and the connection has `HANDSHAKE_WITHIN_S`. It begins with the
client's first byte, which has to be a handshake's: anything else (a client without TLS) ends it at once, or is served without
TLS where the listener takes both. How many handshakes of an account begin in a second is limited (`handshakes`); one that may
not begin yet is left unread. A step of a handshake is taken in the account's own time where it is known to be quick, and beside
the loop where it is not.

A connection that we open (`greet`) goes the same way from the client's end, except that it begins at once and is not counted:
we have chosen to open it.
"""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

from dataplane.doors import Connection, FileRange, FrameProtocol, TlsClient, TlsServer
from dataplane.network.connection import SocketConnection
from dataplane.network.handshakes import Beside, Handshakes
from dataplane.network.refusals import HANDSHAKE_FAILED, NOT_TLS, TOO_MANY_HANDSHAKES
from dataplane.network.sending import range_after, read_range
from dataplane.network.tls import MOST_SENT_BYTES, TlsSocket
from dataplane.storage.cold import Brought

if TYPE_CHECKING:
    from dataplane.network.loop import EpollLoop
    from dataplane.tasks import Future

HANDSHAKE_WITHIN_S = 10.0
READ_BYTES = 256 * 2**10
"""Of a file, that are read and encrypted together."""

_IN, _OUT = select.EPOLLIN, select.EPOLLOUT


class TlsConnection(SocketConnection):
    """See the file's text. It does nothing without `secure` or `greet`."""

    __slots__ = (
        "_began",
        "_beside",
        "_deadline",
        "_is_counted",
        "_is_secure",
        "_layer",
        "_layer_held",
        "_secured",
        "_server",
        "_steps_beside",
        "_waits",
    )

    def __init__(self, loop: EpollLoop, sock: socket.socket, peer: tuple[str, int], *, trusted: bool = False) -> None:
        super().__init__(loop, sock, peer, trusted=trusted)
        self._layer: TlsSocket | None = None
        self._server: TlsServer | None = None
        self._beside: Beside | None = None  # runs steps of the handshake
        self._is_counted = False  # among the account's handshakes
        self._secured: Callable[[bytes | None], str | None] | None = None
        self._deadline: Callable[[], None] | None = None  # how to cancel it
        self._is_secure = False  # the handshake is over
        self._began = False  # the handshake
        self._waits = False  # for its turn, unread
        self._steps_beside = False  # a thread has it
        self._layer_held = 0  # so much of what the layer holds is told to the account

    # --- handshake ----------------------------------------------------------------------------------------------------

    def secure(self, server: TlsServer, secured: Callable[[bytes | None], str | None]) -> None:
        """As `doors.Connection` says it."""
        self._server, self._beside, self._secured = server, server.beside, secured
        self._put_on(TlsSocket(self._socket, server.context, self._loop.scratch()))

    def _put_on(self, layer: TlsSocket) -> None:
        self._layer = layer
        self._socket = cast("socket.socket", layer)  # it has those of its methods that are used

    def start(self, protocol: FrameProtocol) -> None:
        """Begin to read: a handshake, then frames for `protocol`."""
        super().start(protocol)
        server = self._server
        if server is None:  # never in the clear what should not be
            self._gone("nobody has said how to secure it")
            return
        if self.payer.handshakes is None:
            self.payer.handshakes = Handshakes(self._loop, server.handshakes_per_s)
        self.payer.handshakes.limit(server.handshakes_per_s)
        if not self.payer.handshakes.came(self):
            self._refuse(TOO_MANY_HANDSHAKES)
            return
        self._is_counted = True
        self._deadline = self._loop.call_later(HANDSHAKE_WITHIN_S, self._too_slow).cancel

    def greet(
        self, client: TlsClient, opened: Callable[[Connection], FrameProtocol], failed: Callable[[str], None]
    ) -> None:
        """Of a connection that we open: begin the handshake. `opened` or `failed` is called when it is over."""
        layer = TlsSocket(self._socket, client.context, self._loop.scratch(), is_server=False)
        self._put_on(layer)
        self._beside, self._began = client.beside, True

        def secured(certificate: bytes | None) -> str | None:
            problem = client.refusal(certificate)
            if problem is None:
                self._protocol = None
                self._is_secure = True
                self._speak(opened(self))
            return problem

        self._secured = secured
        super().start(_Greeting(failed))
        self._deadline = self._loop.call_later(HANDSHAKE_WITHIN_S, self._too_slow).cancel
        try:
            layer.begin()
            layer.answer()
        except OSError as error:  # of OpenSSL's as well
            self._gone(error.strerror or "TLS cannot begin")
            return
        self._listen_for()

    def _too_slow(self) -> None:
        if self._fd >= 0 and not self._is_secure:
            self._gone(f"the TLS handshake took longer than {HANDSHAKE_WITHIN_S:.0f} s")

    def serve(self, until: float) -> None:
        """As of any connection; before that, the handshake."""
        if self._is_secure:
            super().serve(until)
            return
        self._taken_up()
        self._may_flush = self._waits_to_send = False
        if self._is_reset:
            self._gone("reset by the peer")
        if self._fd >= 0 and not self._steps_beside and not self._waits:
            self._go_on()

    def make_room(self) -> None:
        """Its address has more handshakes under way than another, for which there is no place."""
        self._refuse("others of this address wait for TLS handshakes as well, and another address has fewer")

    def begin_handshake(self) -> bool:
        """Its turn has come, if it is still there."""
        if self._fd < 0 or not self._waits:
            return False
        self._waits, self._began = False, True
        self._listen_for()
        self._queue_up()
        return True

    def _go_on(self) -> None:
        layer, handshakes = self._layer, self.payer.handshakes
        assert layer is not None
        try:
            if not self._began:
                if not layer.looks_like_tls():
                    self._is_plain(layer)
                    return
                assert handshakes is not None
                self._began = handshakes.may_begin(self)
                self._waits = not self._began
                if self._waits:
                    self._listen_for()
                    return
            if not layer.waits_to_send:
                layer.take_in()
                self._step(layer, handshakes)
                return
            layer.answer()
        except BlockingIOError:
            pass
        except EOFError:
            self._gone("closed by the peer")
            return
        except OSError as error:
            self._gone(error.strerror or "receive failed")
            return
        self._listen_for()

    def _step(self, layer: TlsSocket, handshakes: Handshakes | None) -> None:
        if self._beside is None:
            try:
                is_over = layer.step()
            except ssl.SSLError as error:
                self._failed(error)
                return
            self._stepped(layer, is_over=is_over)
            return
        self._steps_beside = True
        layer.lend()
        self._listen_for()
        looks_at = None if self._server is None else self._server.looks_at
        step = layer.step if looks_at is None else partial(_step_and_look, layer, looks_at)
        if self._is_counted:
            assert handshakes is not None
            handshakes.beside(self, self._beside, step, self._came_back)
        else:
            self._beside(step).then(self._came_back)

    def _came_back(self, step: Future[bool]) -> None:
        layer = self._layer
        assert layer is not None
        self._steps_beside = False
        error = step.error
        if error is not None:  # whatever a thread had met
            assert isinstance(error, Exception)
            layer.take_back(is_over=False)
            if self._fd >= 0:
                self._failed(error)
            return
        is_over = step.result()
        layer.take_back(is_over=is_over)
        if self._fd >= 0:
            began = self._loop.clock.monotonic()
            self._stepped(layer, is_over=is_over)
            self._loop.charge(self, began)

    def _stepped(self, layer: TlsSocket, *, is_over: bool) -> None:
        layer.take_back(is_over=is_over)
        try:
            layer.answer()
        except OSError as error:
            self._gone(error.strerror or "send failed")
            return
        if is_over:
            self._is_over(layer)
        else:
            self._listen_for()

    def _is_over(self, layer: TlsSocket) -> None:
        secured, self._secured = self._secured, None
        assert secured is not None
        problem = secured(layer.peer_certificate())
        if problem is not None:
            self._refuse(problem)
            return
        if self._fd < 0:
            return
        self._is_secure = True
        self._forget_handshake()
        self._listen_for()

    def _is_plain(self, layer: TlsSocket) -> None:
        """The first byte is no handshake's."""
        if self._server is None or not self._server.takes_plaintext:
            self._refuse(NOT_TLS)
            return
        self._socket, self._layer = layer.given_up(), None
        self._is_secure, self._secured = True, None  # nothing more has to happen before requests
        self._forget_handshake()
        self._is_readable = True
        self._listen_for()
        self._queue_up()

    def _failed(self, error: Exception) -> None:
        reason = str(getattr(error, "reason", None) or type(error).__name__).replace("_", " ").lower()
        why = getattr(error, "verify_message", "")  # of a certificate: that it has expired, or whose it is not
        self._refuse(f"{HANDSHAKE_FAILED} ({reason}: {why})" if why else f"{HANDSHAKE_FAILED} ({reason})")

    def _refuse(self, reason: str) -> None:
        if self._fd >= 0:
            self._gone(self._loop.refusals.insecure(self.payer, self.peer, reason))

    def _forget_handshake(self) -> None:
        if self._deadline is not None:
            self._deadline()
            self._deadline = None
        handshakes = self.payer.handshakes
        if self._is_counted and handshakes is not None:
            self._is_counted = False
            handshakes.went(self)

    # --- as any connection --------------------------------------------------------------------------------------------

    def _listen_for(self) -> None:
        if self._is_secure:
            super()._listen_for()
            layer = self._layer
            if layer is not None and layer.has_more and self._events & _IN and self._fd >= 0:
                self._is_readable = True  # epoll does not know of it
                self._queue_up()
            return
        if self._fd < 0 or self._layer is None or self._protocol is None:
            return
        events = 0 if self._waits or self._steps_beside else _OUT if self._layer.waits_to_send else _IN
        if events != self._events:
            self._listen(events)

    def _receive(self, until: float) -> None:
        super()._receive(until)
        layer = self._layer
        if self._fd < 0 or layer is None:
            return
        if layer.has_more and self._events & _IN:
            self._is_readable = True
            self._queue_up()
        self._hold_layer(layer)

    def _hold_layer(self, layer: TlsSocket) -> None:
        more = layer.held_bytes - self._layer_held
        if more:
            self._layer_held += more
            self._hold(more)

    def _send_some(self, until: int) -> None:
        layer = self._layer
        if not self._is_secure:
            raise BlockingIOError
        if layer is None:
            super()._send_some(until)
            return
        try:
            super()._send_some(min(until, self._departed + MOST_SENT_BYTES))
        finally:
            self._hold_layer(layer)

    def _send_range(self, part: FileRange) -> None:
        layer = self._layer
        if layer is None:
            super()._send_range(part)
            return
        if isinstance(part, Brought):
            self._send_brought(part)
            return
        sent = layer.settled(part.size)
        if not sent:
            size, cold = min(part.size, READ_BYTES), self._loop.cold_reads
            if cold is not None and not cold.is_warm(part.file.fileno(), part.position, size):
                self._wait_for_disk(part)
                return
            sent = layer.send(read_range(part.file, part.position, size))
        self._left(sent)
        if sent == part.size:
            self._out.popleft()
        else:
            self._out[0] = range_after(part, sent)

    def _gone(self, reason: str) -> None:
        if self._fd >= 0:
            self._forget_handshake()
            self._secured = None
        super()._gone(reason)


def _step_and_look(layer: TlsSocket, looks_at: Callable[[bytes], object]) -> bool:
    """A step of a handshake; when it is over, what the client has shown is looked at."""
    is_over = layer.step()
    certificate = layer.peer_certificate() if is_over else None
    if certificate is not None:
        looks_at(certificate)
    return is_over


class _Greeting:
    """The protocol of a connection that we open, until its handshake is over."""

    def __init__(self, failed: Callable[[str], None]) -> None:
        self._failed = failed

    def frame(self, frame: memoryview) -> None:
        """None comes before that."""

    def closed(self, reason: str) -> None:
        self._failed(reason)
