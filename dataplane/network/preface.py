"""Connections that begin with a preface (a PROXY header): they wait here until it is read, and only then are accepted.

The bytes are looked at where they are, in the socket. While they are a part of a preface they are taken, and no byte behind
its last one is: what comes next, be it a frame or a TLS handshake, is for whoever sits on the connection. A connection whose
peer may not say a preface, that says something else, or that takes longer than its time is closed, and nothing answers.

Bounded: `MOST_WAITING` of a listener, each with as many bytes as a preface may have. When there are more, the oldest goes.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from dataplane.doors import Preface

if TYPE_CHECKING:
    from dataplane.network.loop import EpollLoop

MOST_WAITING = 500
SILENCE_S = 10.0
"""A listener says at most one line in this time of those that it has closed."""

Address = tuple[str, int]


class Prefaces:
    """Those of one listener. `accept` gets each socket with its client's address when the preface is read."""

    def __init__(
        self, loop: EpollLoop, preface: Preface, local: Address, accept: Callable[[socket.socket, Address], None]
    ) -> None:
        self.loop, self.preface = loop, preface
        self._local, self._accept = local, accept
        self._waiting: dict[_Waiting, None] = {}  # the oldest first
        self._closed = 0
        self._told: tuple[float, int] | None = None  # when, and how many had been closed

    def begin(self, sock: socket.socket, peer: Address) -> None:
        """A connection that has just been accepted."""
        if not self.preface.admits(peer[0]):
            sock.close()
            self._say(peer, "is not among the peers that may speak for others")
            return
        if len(self._waiting) >= MOST_WAITING:
            next(iter(self._waiting)).refuse("too many wait with it")
        sock.setblocking(False)
        one = _Waiting(self, sock, peer)
        self._waiting[one] = None
        one.start()

    def accepted(self, one: _Waiting, sock: socket.socket, client: Address) -> None:
        del self._waiting[one]
        self._accept(sock, client)

    def refused(self, one: _Waiting, peer: Address, why: str) -> None:
        del self._waiting[one]
        self._say(peer, why)

    def close(self) -> None:
        """The listener is closed: nobody is accepted any more."""
        for one in list(self._waiting):
            one.let_go()
            one.sock.close()
        self._waiting.clear()

    def _say(self, peer: Address, why: str) -> None:
        self._closed += 1
        now = self.loop.clock.monotonic()
        if self._told is not None and now - self._told[0] < SILENCE_S:
            return
        others = self._closed - (self._told[1] if self._told else 0) - 1
        self._told = (now, self._closed)
        more = f"; {others} more since the last such line" if others else ""
        self.loop.report(
            f"port {self._local[1]} expects a PROXY header: {peer[0]}:{peer[1]} {why}, closing connection{more}"
        )


class _Waiting:
    """One connection, and what has come of its preface."""

    __slots__ = ("_data", "_prefaces", "_timer", "peer", "sock")

    def __init__(self, prefaces: Prefaces, sock: socket.socket, peer: Address) -> None:
        self._prefaces = prefaces
        self.sock, self.peer = sock, peer
        self._data = b""
        self._timer = prefaces.loop.call_later(prefaces.preface.within_s, self._too_late)

    def start(self) -> None:
        self._prefaces.loop.watch(self.sock.fileno(), select.EPOLLIN, self.ready)

    def ready(self, _events: int) -> None:
        """What epoll calls."""
        preface = self._prefaces.preface
        try:
            seen = self.sock.recv(preface.most_bytes - len(self._data), socket.MSG_PEEK)
            if not seen:
                self.refuse("has closed before it was whole")
                return
            said = preface.read(self._data + seen)
            missing = len(seen) if said is None else said.size - len(self._data)
            self.sock.recv(missing)
        except BlockingIOError:
            return
        except (OSError, ValueError) as error:
            self.refuse(str(error))
            return
        if said is None:
            self._data += seen
        else:
            self.let_go()
            self._prefaces.accepted(self, self.sock, said.source or self.peer)

    def _too_late(self) -> None:
        self.refuse(f"has not said it within {self._prefaces.preface.within_s:g} s")

    def refuse(self, why: str) -> None:
        self.let_go()
        self.sock.close()
        self._prefaces.refused(self, self.peer, why)

    def let_go(self) -> None:
        """It waits no longer."""
        self._prefaces.loop.forget(self.sock.fileno())
        self._timer.cancel()
