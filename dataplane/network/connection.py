"""One socket: bytes in, cut into frames; what goes out is `sending`'s.

`recvmsg_into` fills the rest of an incomplete frame first and the shared arena after it, in one call. Only an incomplete
frame owns memory (`incomplete`); an idle connection owns none. Requests that came pipelined are handed out for a slice of
time, or until their answers queue up; the rest waits in a backlog, so that one peer holds up nobody.
"""

from __future__ import annotations

import select
import socket
import struct
from typing import TYPE_CHECKING

from dataplane.doors import FrameProtocol
from dataplane.network.incomplete import IncompleteFrame, TooManyLargeFramesError
from dataplane.network.sending import STOP_READING_ABOVE_BYTES, Sender

if TYPE_CHECKING:
    from dataplane.network.loop import EpollLoop

DEFAULT_MAX_FRAME_BYTES = 100 * 2**20
SLICE_S = 0.01
"""So long the frames of one connection are handed out before others have their turn."""

_SIZE = struct.Struct(">i").unpack_from
_NONE = memoryview(b"")
_IN, _OUT = select.EPOLLIN, select.EPOLLOUT


class SocketConnection(Sender):
    """A connection as `doors.Connection` describes it."""

    __slots__ = (
        "_backlog",
        "_events",
        "_partial",
        "_paused",
        "_protocol",
        "_resuming",
        "_size_bytes",
        "_trusted",
        "local",
        "max_frame_bytes",
        "peer",
    )

    def __init__(self, loop: EpollLoop, sock: socket.socket, peer: tuple[str, int], *, trusted: bool = False) -> None:
        super().__init__(loop, sock)
        self.peer = peer
        self.local: tuple[str, int] = sock.getsockname()[:2]
        self.max_frame_bytes = DEFAULT_MAX_FRAME_BYTES
        self._protocol: FrameProtocol | None = None
        self._trusted = trusted  # we have chosen this peer
        self._partial: IncompleteFrame | None = None
        self._size_bytes = b""  # one to three bytes of a frame's length
        self._backlog = _NONE  # received and not handed out, in memory of its own: comes before anything received later
        self._paused = False
        self._resuming = False  # the backlog waits for its turn
        self._events = 0

    def start(self, protocol: FrameProtocol) -> None:
        """Begin to read for `protocol`."""
        self._protocol = protocol
        self._loop.watch(self._fd, _IN, self.ready)
        self._events = _IN

    def abandon(self) -> None:
        """Close a connection that was never started."""
        self._socket.close()
        self._fd = -1

    # --- receiving ----------------------------------------------------------------------------------------------------

    def ready(self, events: int) -> None:
        """What epoll calls."""
        if events & _OUT:
            self._waits_to_send = False
            self.flush()
        if events & ~_OUT and self._fd >= 0:
            self._receive()

    def _receive(self) -> None:
        arena = self._loop.arena
        if arena.is_full():
            self._loop.end_turn()
            if self._fd < 0:
                return
        partial = self._partial
        try:
            if partial is None:
                rest = received = self._socket.recv_into(arena.space())
            elif len(partial.memory) < partial.size:  # what follows is of this frame
                received = self._socket.recv_into(partial.memory[partial.filled :])
                rest = -1
            else:
                missing = partial.memory[partial.filled :]
                received = self._socket.recvmsg_into([missing, arena.space()])[0]
                rest = received - len(missing)
        except BlockingIOError:
            return
        except OSError as error:
            self._gone(error.strerror or "receive failed")
            return
        if received == 0:
            self._gone("closed by the peer")
            return
        if partial is not None:
            if rest < 0:
                self._fill(partial, received)
                return
            self._partial = None
            partial.free()
            self._deliver(partial.memory)
        if rest > 0:
            self._cut(arena.take(rest))

    def _begin(self, size: int, data: memoryview) -> None:
        """An incomplete frame of `size` bytes, of which `data` is here."""
        try:
            self._partial = IncompleteFrame(size, data, None if self._trusted else self._loop.large_frames)
        except TooManyLargeFramesError:
            self._gone("too many large frames at once")

    def _fill(self, partial: IncompleteFrame, received: int) -> None:
        partial.filled += received
        if partial.filled == len(partial.memory):
            try:
                partial.grow()
            except TooManyLargeFramesError:
                self._gone("too many large frames at once")

    def _deliver(self, frame: memoryview) -> None:
        if self._paused or self._resuming:
            self._append(len(frame).to_bytes(4) + frame)
        elif self._protocol is not None and not self._closing:
            self._protocol.frame(frame)

    def _append(self, data: bytes | memoryview) -> None:
        self._backlog = memoryview(bytearray(self._backlog) + data)

    def _cut(self, data: memoryview, *, is_backlog: bool = False) -> None:
        """Hand out the whole frames of `data` and keep the incomplete one."""
        if self._size_bytes:
            data = memoryview(bytearray(self._size_bytes) + data)
            self._size_bytes = b""
        position, end = 0, len(data)
        protocol = self._protocol
        clock = self._loop.clock.monotonic
        until = 0.0
        while end - position >= 4:
            if self._paused or self._resuming or self._closing:
                break
            if position and (self._queued > STOP_READING_ABOVE_BYTES or clock() > until):
                self._let_others_go_first()
                break
            size = _SIZE(data, position)[0]
            if size < 0 or size > self.max_frame_bytes:
                self._gone(f"a frame of {size} bytes")
                return
            after = position + 4 + size
            if after > end:
                self._begin(size, data[position + 4 :])
                return
            assert protocol is not None
            if not until and after < end:
                until = clock() + SLICE_S
            protocol.frame(data[position + 4 : after])
            if self._fd < 0:
                return
            position = after
        if self._closing:
            return
        if self._paused or self._resuming:
            if is_backlog:  # as it is: who is paused after every frame would have it copied each time
                self._backlog = data[position:]
            else:
                self._append(data[position:])
        elif position < end:
            self._size_bytes = bytes(data[position:])

    def _let_others_go_first(self) -> None:
        """This connection has had its slice, or its answers queue up: what was received waits in the backlog."""
        if self._queued > STOP_READING_ABOVE_BYTES:
            self._stuffed = True
        else:
            self._loop.call_soon(self._resume)
        self._resuming = True
        self._listen_for()

    def pause_reading(self) -> None:
        """No more frames until `resume_reading`."""
        if not self._paused:
            self._paused = True
            self._listen_for()

    def resume_reading(self) -> None:
        """Frames again, those that waited first."""
        if self._paused and self._fd >= 0:
            self._paused = False
            self._resuming = True  # until then nothing is received: it would overtake the backlog
            self._loop.call_soon(self._resume)

    def _resume(self) -> None:
        if self._fd < 0 or not self._resuming:
            return
        if self._queued > STOP_READING_ABOVE_BYTES:
            self._stuffed = True
            return
        self._resuming = False
        if self._paused:
            return
        backlog, self._backlog = self._backlog, _NONE
        try:
            if backlog:  # no frame is half received then: what came while paused went to the backlog as it was
                self._cut(backlog, is_backlog=True)
        except Exception:
            self.close()  # what lay behind in the backlog is lost
            raise
        if self._fd >= 0:
            self._listen_for()

    def _listen_for(self) -> None:
        """Tell epoll what we wait for now."""
        if self._fd < 0 or self._protocol is None:
            return
        too_much = self._queued > STOP_READING_ABOVE_BYTES
        events = (0 if self._paused or self._resuming or too_much else _IN) | (_OUT if self._waits_to_send else 0)
        if events != self._events:
            self._events = events
            self._loop.change(self._fd, events)

    # --- closing ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close now."""
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
        self._let_go()
        if self._partial is not None:
            self._partial.free()
            self._partial = None
        self._backlog = _NONE
        if self._marks:
            self._tell_of_the_rest()
        protocol = self._protocol
        if protocol is not None:
            self._loop.at_turn_end(lambda: protocol.closed(reason))
