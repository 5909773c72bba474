"""A connection whose bytes are TLS: a handshake first (`tls_handshake`), then a connection as any other over `TlsSocket`.

A listener of TLS makes no others, so that nothing is served in the clear by mistake: without `secure` it ends at once.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from dataplane.doors import FileRange, FrameProtocol, TlsServer
from dataplane.network.connection import SocketConnection
from dataplane.network.sending import range_after, read_range
from dataplane.network.tls import MOST_SENT_BYTES, TlsSocket
from dataplane.network.tls_handshake import TlsHandshake
from dataplane.storage.cold import Brought

if TYPE_CHECKING:
    from dataplane.network.loop import EpollLoop

READ_BYTES = 256 * 2**10
"""Of a file, that are read and encrypted together."""

_IN, _OUT = select.EPOLLIN, select.EPOLLOUT


class TlsConnection(SocketConnection):
    """See the file's text."""

    __slots__ = ("_handshake", "_layer", "_layer_held")

    def __init__(self, loop: EpollLoop, sock: socket.socket, peer: tuple[str, int], *, trusted: bool = False) -> None:
        super().__init__(loop, sock, peer, trusted=trusted)
        self._layer: TlsSocket | None = None
        self._handshake: TlsHandshake | None = None  # None: it is over, or nobody has said how to secure it
        self._layer_held = 0  # so much of what the layer holds is told to the account

    # --- until the handshake is over (`tls_handshake.Shaking`) --------------------------------------------------------

    def secure(self, server: TlsServer, secured: Callable[[bytes | None], str | None]) -> None:
        """As `doors.Connection` says it."""
        self._layer = TlsSocket(self._socket, server.context, self._loop.scratch())
        self._handshake = TlsHandshake(self, self._loop, self._layer, server, secured)
        self._socket = cast("socket.socket", self._layer)  # it has those of its methods that are used

    def start(self, protocol: FrameProtocol) -> None:
        """Begin to read: a handshake, then frames for `protocol`."""
        super().start(protocol)
        if self._handshake is None:  # never in the clear what should not be
            self._gone("nobody has said how to secure it")
            return
        self._handshake.start(self._account)

    def serve(self, until: float) -> None:
        """As of any connection; before that, the handshake."""
        if self._handshake is None:
            super().serve(until)
            return
        self._in_queue = self._may_flush = self._waits_to_send = False
        if self._is_reset:
            self._gone("reset by the peer")
        if self._fd >= 0:
            self._handshake.serve()

    @property
    def is_here(self) -> bool:
        return self._fd >= 0

    def refuse(self, reason: str) -> None:
        if self._fd >= 0:
            self._gone(self._loop.refusals.insecure(self._account, self.peer, reason))

    def end(self, reason: str) -> None:
        self._gone(reason)

    def go_on(self) -> None:
        self._queue_up()

    def wait_for(self, *, to_read: bool, to_send: bool) -> None:
        events = _IN * to_read | _OUT * to_send
        if events != self._events:
            self._events = events
            self._loop.change(self._fd, events)

    def secure_now(self) -> None:
        self._forget_handshake()
        self._listen_for()

    def charge_since(self, began: float) -> None:
        self._loop.charge(self, began)

    def _forget_handshake(self) -> None:
        handshake, self._handshake = self._handshake, None
        if handshake is not None:
            handshake.stop()

    # --- as any connection --------------------------------------------------------------------------------------------

    def _listen_for(self) -> None:
        if self._handshake is not None:
            return  # it says what for
        super()._listen_for()
        layer = self._layer
        if layer is not None and layer.has_more and self._events & _IN and self._fd >= 0:
            self._is_readable = True  # epoll does not know of it
            self._queue_up()

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
        if layer is None or self._handshake is not None:
            raise BlockingIOError
        try:
            super()._send_some(min(until, self._departed + MOST_SENT_BYTES))
        finally:
            self._hold_layer(layer)

    def _send_range(self, part: FileRange) -> None:
        layer = self._layer
        assert layer is not None
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
        super()._gone(reason)
