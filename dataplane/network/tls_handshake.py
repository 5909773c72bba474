"""A connection's TLS handshake: from its first byte until it is over, one way or the other.

::

    nothing came --a handshake's first byte--> may it begin? --no--> unread, until its turn comes (`handshakes`)
         |                                         '---yes---> what came, a step, its answer, and again --> over
         '--anything else, or too late--> the connection ends

A step is taken in the account's own time where it is known to be quick, and beside the loop where it is not; meanwhile a
thread has the layer, and nothing of it is touched here. Until the handshake is over no byte reaches the protocol, and it has
`HANDSHAKE_WITHIN_S` from the accepting of its connection.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from dataplane.network.handshakes import Handshakes

if TYPE_CHECKING:
    from dataplane.doors import TlsServer
    from dataplane.network.accounts import Account
    from dataplane.network.loop import EpollLoop
    from dataplane.network.tls import TlsSocket
    from dataplane.tasks import Future

HANDSHAKE_WITHIN_S = 10.0


class Shaking(Protocol):
    """The connection."""

    peer: tuple[str, int]

    @property
    def is_here(self) -> bool:
        """Whether it has not ended."""
        ...

    def refuse(self, reason: str) -> None:
        """End it, and say why. Harmless when it has."""
        ...

    def end(self, reason: str) -> None:
        """The same without a word: its peer has gone."""
        ...

    def go_on(self) -> None:
        """Its handshake may: have it served."""
        ...

    def wait_for(self, *, to_read: bool, to_send: bool) -> None:
        """Be served when its socket can do this."""
        ...

    def secure_now(self) -> None:
        """Its handshake is over."""
        ...

    def charge_since(self, began: float) -> None:
        """The loop has worked for it since then, outside its turn."""
        ...


class TlsHandshake:
    """Of one connection. `secured` is told what the client has shown, and says why it may not stay, or None."""

    __slots__ = (
        "_began",
        "_connection",
        "_deadline",
        "_handshakes",
        "_is_lent",
        "_layer",
        "_loop",
        "_secured",
        "_server",
        "peer",
        "waits",
    )

    def __init__(
        self,
        connection: Shaking,
        loop: EpollLoop,
        layer: TlsSocket,
        server: TlsServer,
        secured: Callable[[bytes | None], str | None],
    ) -> None:
        self._connection, self._loop, self._layer, self.peer = connection, loop, layer, connection.peer
        self._server, self._secured = server, secured
        self._handshakes: Handshakes | None = None  # of its account, while it has a place there
        self._deadline: Callable[[], None] | None = None  # how to cancel it
        self._began = False
        self._is_lent = False  # a thread has the layer
        self.waits = False  # for its turn, unread

    def start(self, account: Account) -> None:
        """The connection reads from now on, if there is a place for it."""
        if account.handshakes is None:
            account.handshakes = Handshakes(self._loop, self._server.handshakes_per_s)
        account.handshakes.limit(self._server.handshakes_per_s)
        if not account.handshakes.came(self):
            self._connection.refuse("too many TLS handshakes wait")
            return
        self._handshakes = account.handshakes
        self._deadline = self._loop.call_later(HANDSHAKE_WITHIN_S, self._too_slow).cancel

    def stop(self) -> None:
        """It is over, or its connection. Harmless twice."""
        if self._deadline is not None:
            self._deadline()
            self._deadline = None
        if self._handshakes is not None:
            self._handshakes.went(self)
            self._handshakes = None

    def _too_slow(self) -> None:
        self._connection.end(f"the TLS handshake took longer than {HANDSHAKE_WITHIN_S:.0f} s")

    # --- its turn (`handshakes.Waiting`) ------------------------------------------------------------------------------

    def begin_handshake(self) -> bool:
        """Its turn has come, if it is still there."""
        if not self._connection.is_here or not self.waits:
            return False
        self.waits, self._began = False, True
        self._listen()
        self._connection.go_on()
        return True

    def make_room(self) -> None:
        """Its address has more handshakes under way than another, for which there is no place."""
        self._connection.refuse("others of this address wait for TLS handshakes as well, and another address has fewer")

    # --- under way ----------------------------------------------------------------------------------------------------

    def serve(self) -> None:
        """The connection is ready for something, and it is its turn."""
        if self._is_lent or self.waits:
            return
        try:
            if self._may_go_on():
                if not self._layer.waits_to_send:
                    self._layer.take_in()
                    self._step()
                    return
                self._layer.answer()
        except BlockingIOError:
            pass
        except EOFError:
            self._connection.end("closed by the peer")
            return
        except OSError as error:
            self._connection.end(error.strerror or "receive failed")
            return
        self._listen()

    def _may_go_on(self) -> bool:
        """Raises BlockingIOError, EOFError, OSError."""
        if self._began:
            return True
        if not self._layer.looks_like_tls():
            self._connection.refuse("what came is not TLS")
            return False
        assert self._handshakes is not None
        self._began = self._handshakes.may_begin(self)
        self.waits = not self._began
        return self._began

    def _step(self) -> None:
        if self._server.beside is None:
            try:
                is_over = self._layer.step()
            except ssl.SSLError as error:
                self._failed(error)
                return
            self._stepped(is_over=is_over)
            return
        assert self._handshakes is not None
        self._is_lent = True
        self._layer.lend()
        self._listen()
        self._handshakes.beside(self, self._server.beside, self._layer.step, self._came_back)

    def _came_back(self, step: Future[bool]) -> None:
        self._is_lent = False
        try:
            is_over = step.result()
        except Exception as error:  # noqa: BLE001 - whatever a thread had met
            self._layer.take_back(is_over=False)
            self._failed(error)
            return
        self._layer.take_back(is_over=is_over)
        if self._connection.is_here:
            began = self._loop.clock.monotonic()
            self._stepped(is_over=is_over)
            self._connection.charge_since(began)

    def _stepped(self, *, is_over: bool) -> None:
        self._layer.take_back(is_over=is_over)
        try:
            self._layer.answer()
        except OSError as error:
            self._connection.end(error.strerror or "send failed")
            return
        if not is_over:
            self._listen()
            return
        problem = self._secured(self._layer.peer_certificate())
        if problem is not None:
            self._connection.refuse(problem)
        elif self._connection.is_here:
            self._connection.secure_now()

    def _failed(self, error: Exception) -> None:
        reason = getattr(error, "reason", None) or type(error).__name__
        self._connection.refuse(f"TLS handshake failed ({str(reason).replace('_', ' ').lower()})")

    def _listen(self) -> None:
        if self._connection.is_here:
            is_ours = not (self.waits or self._is_lent)
            sends = self._layer.waits_to_send
            self._connection.wait_for(to_read=is_ours and not sends, to_send=is_ours and sends)
