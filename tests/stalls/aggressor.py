"""Who sends the requests: any number of connections, in one thread, that repeat frames which were encoded before.

Nothing is decoded while it runs: answers are counted by their lengths and thrown away (the first is kept to be looked at), so
that what the machine has is left to the broker. No client waits as an answer tells it to; what a broker does not enforce is
not enforced.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_IN, _OUT = select.EPOLLIN, select.EPOLLOUT
_PIECE_BYTES = 64 * 2**10
"""Of a send or a receive. A kernel that is not preemptible lets a system call run to its end, whoever waits for the processor:
two megabytes at once would hold up the broker on this machine, which another machine's could not."""
_SEND_BUFFERS_BYTES = 256 * 2**20
"""What may lie in the kernel to be sent, of all connections together (the kernel takes twice as much for it). A thousand that
each had what it takes by itself, two megabytes, were more than this machine's kernel has for TCP: it drops what arrives then, and
everybody's, where a client's buffers are on another machine."""
_FIRST_BYTES = 128 * 2**20
_EVENTS = 256
_LOOK_EVERY_S = 0.1
_PATIENCE_S, _PATIENCE_FOR_THE_FIRST_S = 2.0, 30.0
_AT_ONCE = struct.pack("ii", 1, 0)
_FEW = 64
"""Connections whose buffers the kernel may choose."""
_REFUSALS = 10
"""After so many, no more connections are tried: each may take its time to fail."""

Connect = Callable[[], socket.socket]


@dataclass
class Done:
    """What came of it."""

    sent_bytes: int = 0
    answers: int = 0
    answered_bytes: int = 0
    closed: int = 0  # connections that the broker ended
    refused: int = 0  # that did not come about at all
    first: bytes = b""  # answer, without its length
    first_ms: float = 0.0
    ended_s: float = 0.0  # the moment from which nothing was sent any more


class Crowd:
    """The connections. `depth`: requests of each that wait for answers.

    `reads` is False for those who do not take answers, `resets` for those who go in order.
    """

    def __init__(
        self, connect: Connect, connections: int, depth: int, *, reads: bool = True, resets: bool = True
    ) -> None:
        self.done = Done()
        self.depth, self.reads, self.resets = depth, reads, resets
        self._scratch = bytearray(_PIECE_BYTES)
        self._send_buffer = _SEND_BUFFERS_BYTES // connections if connections > _FEW else None
        self._epoll = select.epoll()
        self._peers: dict[int, _Peer] = {}
        self._connect = connect
        for _ in range(connections):
            if self.done.refused < _REFUSALS:
                self._join()

    def _join(self) -> None:
        try:
            sock = self._connect()
        except OSError:
            self.done.refused += 1
            return
        sock.setblocking(False)
        if self._send_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer)
        self._peers[sock.fileno()] = _Peer(self, sock)
        self._epoll.register(sock.fileno(), _IN if self.reads else 0)

    def run(self, frames: Sequence[bytes], seconds: float, enough: Callable[[], bool] = lambda: False) -> Done:
        """Send until the time is over, or until it is `enough`. When all connections were closed, one is made again."""
        self._frames = [memoryview(frame) for frame in frames]
        self.began = time.monotonic()
        ends = self.began + seconds
        for peer in list(self._peers.values()):
            self._step(peer, _OUT)
        look = self.began
        while (left_s := ends - (now := time.monotonic())) > 0:
            if now > look + _LOOK_EVERY_S:
                if enough():
                    break
                look = now
            if not self._peers:
                time.sleep(min(0.05, left_s))
                self._join()
                for peer in list(self._peers.values()):
                    self._step(peer, _OUT)
            for fd, events in self._epoll.poll(min(left_s, _LOOK_EVERY_S), _EVENTS):
                self._step(self._peers[fd], events)
        self.done.ended_s = time.monotonic()
        self._see_to_the_end()
        return self.done

    def _see_to_the_end(self) -> None:
        """What was asked in time is answered, if that does not take too long: nothing is sent meanwhile."""
        self.depth = 0
        while self.reads and any(peer.outstanding for peer in self._peers.values()):
            patience_s = _PATIENCE_S if self.done.answers else _PATIENCE_FOR_THE_FIRST_S
            if time.monotonic() > self.done.ended_s + patience_s:
                return
            for fd, events in self._epoll.poll(_LOOK_EVERY_S, _EVENTS):
                self._step(self._peers[fd], events)

    def _step(self, peer: _Peer, events: int) -> None:
        try:
            if events & ~_OUT:
                peer.receive(self._scratch)
            waits = peer.send(self._frames)
        except OSError:
            self._leave(peer)
            return
        if waits != peer.waits_to_send:
            peer.waits_to_send = waits
            self._epoll.modify(peer.fd, (_IN if self.reads else 0) | (_OUT if waits else 0))

    def _leave(self, peer: _Peer) -> None:
        self.done.closed += 1
        self._epoll.unregister(peer.fd)
        del self._peers[peer.fd]
        peer.socket.close()

    def close(self) -> None:
        """At once, whatever is under way, and by a reset: the broker learns that nobody waits any more.

        Of one that was closed in order it does not learn while it reads nothing from it, and so works on for nobody, for a
        minute after a crowd: that would be felt in the rows behind. A row of its own says what that costs.
        """
        for peer in self._peers.values():
            if self.resets:
                peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            peer.socket.close()
        self._peers.clear()
        self._epoll.close()


class _Peer:
    """One connection."""

    __slots__ = (
        "_crowd",
        "_first",
        "_head",
        "_left",
        "_next",
        "_sending",
        "fd",
        "outstanding",
        "socket",
        "waits_to_send",
    )

    def __init__(self, crowd: Crowd, sock: socket.socket) -> None:
        self._crowd, self.socket, self.fd = crowd, sock, sock.fileno()
        self._sending = memoryview(b"")
        self.outstanding = self._next = 0
        self._head = b""  # up to four bytes of an answer's length
        self._left = 0  # bytes of the answer that are still to come
        self._first: bytearray | None = None if crowd.done.first else bytearray()
        self.waits_to_send = False

    def send(self, frames: Sequence[memoryview]) -> bool:
        """As much as goes; whether more would go if there were room."""
        while True:
            if not self._sending:
                if self.outstanding >= self._crowd.depth:
                    return False
                self._sending = frames[self._next % len(frames)]
                self._next += 1
                self.outstanding += 1
            try:
                sent = self.socket.send(self._sending[:_PIECE_BYTES])
            except BlockingIOError:
                return True
            self._crowd.done.sent_bytes += sent
            self._sending = self._sending[sent:]

    def receive(self, scratch: bytearray) -> None:
        """Count what has come. Raises OSError at the end of the connection."""
        try:
            size = self.socket.recv_into(scratch)
        except BlockingIOError:
            return
        if not size:
            raise ConnectionResetError
        self._crowd.done.answered_bytes += size
        at, view = 0, memoryview(scratch)
        while at < size:
            if self._left:
                taken = min(self._left, size - at)
                self._keep(view[at : at + taken])
                self._left -= taken
                at += taken
            else:
                need = 4 - len(self._head)
                part = view[at : min(at + need, size)]
                self._head += part
                at += len(part)
                if len(self._head) < 4:
                    return
                self._left, self._head = int.from_bytes(self._head), b""
            if not self._left:
                self._whole()

    def _keep(self, part: memoryview) -> None:
        if self._first is not None and len(self._first) < _FIRST_BYTES:
            self._first += part

    def _whole(self) -> None:
        done = self._crowd.done
        done.answers += 1
        self.outstanding -= 1
        if self._first is not None and not done.first:
            done.first, done.first_ms = bytes(self._first), (time.monotonic() - self._crowd.began) * 1000
        self._first = None
