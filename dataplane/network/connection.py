"""One socket: bytes in, cut into frames; what goes out is `sending`'s.

`recvmsg_into` fills the rest of an incomplete frame first and the shared arena after it, in one call. Only an incomplete
frame owns memory (`incomplete`); an idle connection owns none. What epoll reports is done when the time of the connection's
account comes (`accounts`). Requests that came pipelined are handed out for a slice of that time, or until their answers
queue up; the rest waits in a backlog, so that one peer holds up nobody.

Before a frame is begun its protocol is asked (`begins`), and may put it off: then the connection is paused. While others of
the account are put off, each frame's first bytes are looked at where they are, in the socket, and no more than that frame
is received: what has to wait is held by the peer's system, not by the broker.
"""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from dataplane.doors import FrameProtocol, TlsServer
from dataplane.network.incomplete import IncompleteFrame
from dataplane.network.sending import STOP_READING_ABOVE_BYTES, Sender

if TYPE_CHECKING:
    from dataplane.network.loop import EpollLoop

DEFAULT_MAX_FRAME_BYTES = 100 * 2**20
STARVED_ABOVE_BYTES = 16 * 2**10
"""A frame of at most this size may begin although its account holds much."""
HEAD_BYTES = 8
"""Of a frame, that say what it is: its length, and the key and version of the request."""

_SIZE = struct.Struct(">i").unpack_from
_NONE = memoryview(b"")
_IN, _OUT = select.EPOLLIN, select.EPOLLOUT
_HANGUP = select.EPOLLHUP | select.EPOLLERR
_NEWS_ONLY = select.EPOLLET
_NO_REQUEST = -1
_CLOSE_WAIT = 8  # of TCP's states, as Linux numbers them


def _nothing() -> None:
    """Of a protocol that is not asked before a frame begins."""


class SocketConnection(Sender):
    """A connection as `doors.Connection` describes it."""

    __slots__ = (
        "_backlog",
        "_backlog_bytes",
        "_begins",
        "_events",
        "_head",
        "_in_queue",
        "_is_limited",
        "_is_noted",
        "_is_readable",
        "_is_reset",
        "_is_starved",
        "_partial",
        "_paused",
        "_protocol",
        "_resuming",
        "_settle",
        "_trusted",
        "local",
        "max_frame_bytes",
        "peer",
        "received_bytes",
    )

    def __init__(self, loop: EpollLoop, sock: socket.socket, peer: tuple[str, int], *, trusted: bool = False) -> None:
        super().__init__(loop, sock)
        self.peer = peer
        self.local: tuple[str, int] = sock.getsockname()[:2]
        self.max_frame_bytes = DEFAULT_MAX_FRAME_BYTES
        self.received_bytes = 0
        self._protocol: FrameProtocol | None = None
        self._begins: Callable[..., bool] | None = None
        self._settle: Callable[[], None] = _nothing
        self._trusted = trusted  # we have chosen this peer
        self._partial: IncompleteFrame | None = None
        self._head = b""  # the first bytes of a frame, fewer than say what it is
        self._backlog = _NONE  # received and not handed out, in memory of its own: comes before anything received later
        self._backlog_bytes = 0  # of that memory
        self._paused = False
        self._resuming = False  # the backlog waits for its turn
        self._is_starved = False  # its account holds too much for another frame to begin
        self._is_limited = False  # paused because of a limit
        self._is_readable = False
        self._is_reset = False  # the peer has gone, and nobody reads
        self._in_queue = False  # of its account
        self._is_noted = False  # epoll tells of it no more until it is served, unless there is more to tell
        self._events = 0

    def start(self, protocol: FrameProtocol) -> None:
        """Begin to read for `protocol`."""
        self._speak(protocol)
        self._loop.watch(self._fd, _IN, self.ready)
        self._events = _IN

    def _speak(self, protocol: FrameProtocol) -> None:
        self._protocol = protocol
        self._begins = getattr(protocol, "begins", None)
        self._settle = getattr(protocol, "settle", _nothing)

    def secure(self, server: TlsServer, secured: Callable[[bytes | None], str | None]) -> None:
        """Only a connection to a listener of TLS can be."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Close a connection that was never started."""
        self._socket.close()
        self._fd = -1

    # --- when its time comes ------------------------------------------------------------------------------------------

    def ready(self, events: int) -> None:
        """What epoll calls."""
        if events & _OUT:
            self._may_flush = True
        if events & ~_OUT:
            if events & _HANGUP and not self._events & _IN:
                self._is_reset = True  # nobody reads: it is reported until it ends, in its account's time
            self._is_readable = True
        if not self._in_queue:
            self._queue_up()
        elif not self._is_noted:
            self._note()

    def _note(self) -> None:
        """It waits longer than a turn. Epoll would tell of it in each: a thousand of them would cost a turn by themselves."""
        self._is_noted = True
        self._loop.change(self._fd, self._events | _NEWS_ONLY)

    def _taken_up(self) -> None:
        """Its time has come."""
        self._in_queue = False
        if self._is_noted:
            self._listen(self._events)

    def _queue_up(self) -> None:
        if not self._in_queue:
            self._in_queue = True
            self._loop.accounts.ready(self.payer, self)

    def serve(self, until: float) -> None:
        """Send, hand out what waited, receive: whatever it is ready for."""
        self._taken_up()
        if self._is_reset:
            self._gone("reset by the peer")
        if self._may_flush and self._fd >= 0:
            self._waits_to_send = False
            self.flush()
        if self._fd < 0:
            return
        if self._resuming:
            self._resume(until)
        elif self._is_readable and not self._paused and not self._is_starved:
            self._is_readable = False
            self._receive(until)

    def too_large(self, size: int, limit: int) -> None:
        if self._fd >= 0:
            self._gone(self._loop.refusals.too_large(self.payer, self.peer, size, limit))

    def cut_off(self, reason: str) -> None:
        """End it: it holds too much."""
        self._gone(reason)

    # --- receiving ----------------------------------------------------------------------------------------------------

    def _receive(self, until: float) -> None:
        arena = self._loop.arena
        if arena.is_full():
            self._loop.end_turn()
            if self._fd < 0:
                return
        partial = self._partial
        singly = self._begins is not None and self.payer.reads_frame_by_frame
        if singly and partial is None:
            self._receive_one()
            return
        try:
            if partial is None:
                received = self._socket.recv_into(arena.space())
                rest = received
            elif singly or not partial.is_in_reach:  # what follows is of this frame
                received = self._socket.recv_into(partial.free_space())
                rest = 0
            else:
                received = self._socket.recvmsg_into([partial.free_space(), arena.space()])[0]
                rest = max(0, received - partial.missing)
        except BlockingIOError:
            return
        except OSError as error:
            self._gone(error.strerror or "receive failed")
            return
        if received == 0:
            self._gone("closed by the peer")
            return
        self.received_bytes += received
        if partial is not None:
            if not partial.received(received - rest, self._hold):
                return
            self._loop.accounts.brought(self.payer, partial.size)
            self._partial = None
            partial.free(self._hold)
            self._deliver(partial.memory)
        if rest > 0 and self._fd >= 0:
            self._cut(arena.take(rest), until)

    def _receive_one(self) -> None:
        """Look at the next frame where it is, and take it, and nothing behind it, if it may begin."""
        seen = self._look()
        if not seen or self._fd < 0:
            return
        head = self._head + seen
        size = _SIZE(head)[0] if len(head) >= 4 else HEAD_BYTES
        if len(head) < min(HEAD_BYTES, 4 + size):
            self._socket.recv(len(seen))
            self._head = head
            return
        if not self._is_possible(size) or not self._may_begin(
            head[4] << 8 | head[5] if size > 1 else _NO_REQUEST, size
        ):
            return
        missing = 4 + size - len(self._head)
        received = self._socket.recv_into(self._loop.arena.space()[:missing])  # what was seen is there
        data = self._loop.arena.take(received)
        self.received_bytes += received
        if self._head:
            data = memoryview(bytearray(self._head) + data)
            self._head = b""
        if received < missing:
            self._begin(size, data[4:])
        else:
            self._loop.accounts.brought(self.payer, len(data))
            self._deliver(data[4:])

    def _look(self) -> bytes:
        """What is missing of the first bytes of a frame, left where it is."""
        try:
            seen = self._socket.recv(HEAD_BYTES - len(self._head), socket.MSG_PEEK)
        except BlockingIOError:
            return b""
        except OSError as error:
            self._gone(error.strerror or "receive failed")
            return b""
        if not seen:
            self._gone("closed by the peer")
        return seen

    def _is_possible(self, size: int) -> bool:
        if 0 <= size <= self.max_frame_bytes:
            return True
        self.too_large(size, self.max_frame_bytes)
        return False

    def _may_begin(self, key: int, size: int) -> bool:
        """Whether the next frame may be taken now. If not, nothing is read until it may."""
        if self.payer.is_short and size > STARVED_ABOVE_BYTES and not self._trusted:
            self._is_starved = True
            self.payer.when_there_is_room(self._fed)
            self._listen_for()
            return False
        return self._begins is None or self._begins(key, size)

    def _fed(self) -> None:
        """There is room again."""
        if self._is_starved and self._fd >= 0:
            self._is_starved = False
            self._resuming = True
            self._queue_up()

    def _begin(self, size: int, data: memoryview) -> None:
        """An incomplete frame of `size` bytes, of which `data` is here."""
        partial = IncompleteFrame(size, data, self._hold, self._loop.large_memory, is_chosen=self._trusted)
        if self._fd >= 0:
            self._partial = partial

    def _hold(self, more: int) -> None:
        """So many bytes more are held for this connection. It may be cut off for it."""
        if self._fd >= 0 and not self._trusted:
            self._loop.accounts.hold(self.payer, self, more)

    def _deliver(self, frame: memoryview) -> None:
        if self._protocol is not None and not self._closing:
            self._protocol.frame(frame)
            self._settle()

    def _keep(self, backlog: memoryview) -> None:
        """It is memory of its own, all of which is held while any of it waits."""
        self._backlog = backlog or _NONE  # the empty end of it would keep all of it
        memory = backlog.obj if backlog else b""
        assert isinstance(memory, (bytes, bytearray))
        size = len(memory)
        if size != self._backlog_bytes:
            more, self._backlog_bytes = size - self._backlog_bytes, size
            self._hold(more)

    def _cut(self, data: memoryview, until: float, *, is_backlog: bool = False) -> None:
        """Hand out the whole frames of `data` and keep the incomplete one."""
        if self._head:
            data = memoryview(bytearray(self._head) + data)
            self._head = b""
        settle = self._settle  # when it is over the connection may be gone
        try:
            self._hand_out(data, until, is_backlog=is_backlog)
        finally:
            settle()

    def _hand_out(self, data: memoryview, until: float, *, is_backlog: bool) -> None:
        position, end = 0, len(data)
        protocol = self._protocol
        begins = self._begins
        clock, brought = self._loop.clock.monotonic, self._loop.accounts.brought
        while end - position >= 4:
            if self._paused or self._resuming or self._is_starved or self._closing:
                break
            if position and (self._queued > STOP_READING_ABOVE_BYTES or clock() > until):
                self._let_others_go_first()
                break
            size = _SIZE(data, position)[0]
            if size < 0 or size > self.max_frame_bytes:
                self.too_large(size, self.max_frame_bytes)
                return
            after = position + 4 + size
            if begins is not None:
                if end - position < HEAD_BYTES and after > end:
                    break
                key = data[position + 4] << 8 | data[position + 5] if size > 1 else _NO_REQUEST
                if not (begins(key, size, end - after) if size <= STARVED_ABOVE_BYTES else self._may_begin(key, size)):
                    break
            if after > end:
                self._keep(_NONE)
                self._begin(size, data[position + 4 :])
                return
            assert protocol is not None
            brought(self.payer, after - position)  # also out of the backlog: it is written at the end of this turn
            protocol.frame(data[position + 4 : after])
            if self._fd < 0:
                return
            position = after
        if self._closing or self._fd < 0:
            return
        if self._paused or self._resuming or self._is_starved:
            if is_backlog:  # as it is: a connection that is paused after every frame would have it copied each time
                self._keep(data[position:])
            else:
                self._keep(memoryview(bytearray(self._backlog) + data[position:]))
            return
        if is_backlog:
            self._keep(_NONE)
        if position < end:
            self._head = bytes(data[position:])

    def _let_others_go_first(self) -> None:
        """This connection has had its slice, or its answers queue up: what was received waits in the backlog."""
        if self._queued > STOP_READING_ABOVE_BYTES:
            self._stuffed = True
        else:
            self._queue_up()
        self._resuming = True
        self._listen_for()

    def pause_reading(self) -> None:
        """No more frames until `resume_reading`."""
        if not self._paused:
            self._paused = True
            self._listen_for()

    def resume_reading(self) -> None:
        """Frames again, those that waited first."""
        self._no_limit()
        if self._paused and self._fd >= 0:
            self._paused = False
            self._resuming = True  # until then nothing is received: it would overtake the backlog
            self._queue_up()

    def resume_now(self) -> None:
        """As `resume_reading`, and the first of what waits, if it is here, is handed out before this returns."""
        self._no_limit()
        if self._paused and self._fd >= 0:
            self._paused = False
            self._resuming = True
            self._resume(0.0)

    def pause_for_limit(self) -> None:
        """As `pause_reading`; until then others of the account are read frame by frame."""
        if not self._is_limited and self._fd >= 0:  # it may have been cut off just now
            self._is_limited = True
            self.payer.waiting += 1
        self.pause_reading()

    def _no_limit(self) -> None:
        if self._is_limited:
            self._is_limited = False
            self.payer.waiting -= 1

    def lasting(self, frame: memoryview) -> memoryview:
        """As `doors.Connection`.

        What came in parts is large and has memory of its own: to copy it would take milliseconds. The arena is far larger than
        what is received into it at once.
        """
        if not frame.readonly and 2 * frame.nbytes > memoryview(frame.obj).nbytes:
            return frame
        return memoryview(bytearray(frame))

    def hold(self, more: int) -> None:
        """So many bytes more are kept for this connection by its protocol."""
        self._hold(more)

    def peer_has_finished(self) -> bool:
        """Whether the peer has finished sending, which goes unnoticed while nothing is read."""
        if self._fd < 0:
            return True
        return self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _CLOSE_WAIT

    def resume(self) -> None:
        """Hand out what waited, when the account's time comes."""
        self._queue_up()

    def _resume(self, until: float) -> None:
        if self._queued > STOP_READING_ABOVE_BYTES:
            self._stuffed = True
            return
        self._resuming = False
        if self._paused or self._is_starved:
            return
        backlog = self._backlog
        try:
            if backlog:  # no frame is half received then: what came while paused went to the backlog as it was
                self._backlog = _NONE
                self._cut(backlog, until, is_backlog=True)
            elif not self._paused:
                self._receive(until)
        except Exception:
            self.close()  # what lay behind in the backlog is lost
            raise
        if self._fd >= 0:
            self._listen_for()

    def _listen_for(self) -> None:
        """Tell epoll what we wait for now."""
        if self._fd < 0 or self._protocol is None:
            return
        held_up = (
            self._paused
            or self._resuming
            or self._is_starved
            or self._queued > STOP_READING_ABOVE_BYTES
            or self._is_stopped
        )
        events = (0 if held_up else _IN) | (_OUT if self._waits_to_send else 0)
        if events != self._events:
            self._listen(events)

    def _listen(self, events: int) -> None:
        self._events, self._is_noted = events, False
        self._loop.change(self._fd, events)

    # --- closing ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        self._gone("closed here")

    def close_after_send(self) -> None:
        """Close once everything queued has left."""
        if self._out:
            self._closing = True
        else:
            self._gone("closed here")

    def _gone(self, reason: str) -> None:
        if self._fd < 0:
            return
        self._loop.forget(self._fd)
        self._socket.close()
        self._fd = -1
        self._is_noted = False
        self._no_limit()
        self._let_go()
        self._partial = None
        self._backlog = _NONE
        protocol, self._protocol = self._protocol, None
        self._begins, self._settle = None, _nothing  # nothing refers to itself any more (`garbage`)
        if protocol is not None:
            self._loop.accounts.ready(self.payer, lambda: protocol.closed(reason))  # a thousand may go at once
        accounts, account = self._loop.accounts, self.payer
        held = account.held_by(self)
        if held:
            accounts.hold(account, self, -held)
        if self._marks:
            self._tell_of_the_rest()  # last: whatever it raises, nothing is held by a connection that is gone
