"""One socket: bytes in, cut into frames; buffers and file ranges out.

Receiving: `recvmsg_into` fills the rest of an incomplete frame first and the shared arena after it, in one call. Only an
incomplete frame owns memory; an idle connection owns none. A large frame gets its memory as its bytes arrive, for what
four bytes announce nobody has paid yet, and large frames share a budget. Requests that came pipelined are handed out for
a slice of time, or until their answers queue up; the rest waits in a backlog, so that one peer holds up nobody.

Sending: consecutive buffers leave in one `sendmsg`; a small file range is read into a scratch buffer and joins them, a
large one goes by `sendfile` in chunks of 1 MiB. What is not in the page cache is read by a thread first (`cold`); what is
queued behind it waits, and other connections do not notice.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import select
import socket
import struct
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dataplane.doors import Buffer, File, FileRange, FrameProtocol

if TYPE_CHECKING:
    from dataplane.network.loop import EpollLoop

ARENA_BYTES = 4 * 2**20
RECEIVE_BYTES = 512 * 2**10
SENDFILE_BYTES = 2**20
COPY_BELOW_BYTES = 64 * 2**10
MAX_BUFFERS = 256
STOP_READING_ABOVE_BYTES = 16 * 2**20
"""A peer that sends requests and does not read answers is not read from while more than this is queued for it."""
DEFAULT_MAX_FRAME_BYTES = 100 * 2**20
WHOLE_BELOW_BYTES = 128 * 2**10
"""An incomplete frame of at most this size gets all its memory at once."""
LARGE_FRAMES_BYTES = 256 * 2**20
"""What incomplete frames above that may hold together, of all peers that connected to us."""
SLICE_S = 0.01
"""So long the frames of one connection are handed out before others have their turn."""

_SIZE = struct.Struct(">i").unpack_from
_IN, _OUT = select.EPOLLIN, select.EPOLLOUT


class Arena:
    """The memory into which all connections receive; freed as a whole at the end of a turn."""

    __slots__ = ("_memory", "_used")

    def __init__(self) -> None:
        memory = mmap.mmap(-1, ARENA_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with contextlib.suppress(OSError):  # a kernel without them
                memory.madvise(mmap.MADV_HUGEPAGE)  # all of it is read, checked and written in every turn
        self._memory = memoryview(memory)
        self._used = 0

    def space(self) -> memoryview:
        """Where the next bytes may go; less than RECEIVE_BYTES only when the turn has to end."""
        return self._memory[self._used : self._used + RECEIVE_BYTES]

    def is_full(self) -> bool:
        """Whether the turn has to end before more is received."""
        return self._used + RECEIVE_BYTES > ARENA_BYTES

    def take(self, size: int) -> memoryview:
        """The `size` bytes that were just received."""
        start, self._used = self._used, self._used + size
        return self._memory[start : self._used]

    def reset(self) -> None:
        """Everything is free again."""
        self._used = 0


class SocketConnection:
    """A connection as `doors.Connection` describes it."""

    __slots__ = (
        "_backlog",
        "_budgeted",
        "_closing",
        "_departed",
        "_events",
        "_fd",
        "_filled",
        "_loop",
        "_marks",
        "_out",
        "_partial",
        "_partial_bytes",
        "_paused",
        "_protocol",
        "_queued",
        "_resuming",
        "_scheduled",
        "_size_bytes",
        "_socket",
        "_stuffed",
        "_trusted",
        "_waits_for_disk",
        "_waits_to_send",
        "_warm",
        "account",
        "local",
        "max_frame_bytes",
        "peer",
    )

    def __init__(self, loop: EpollLoop, sock: socket.socket, peer: tuple[str, int], *, trusted: bool = False) -> None:
        self._loop, self._socket, self._fd = loop, sock, sock.fileno()
        self.peer = peer
        self.local: tuple[str, int] = sock.getsockname()[:2]
        self.max_frame_bytes = DEFAULT_MAX_FRAME_BYTES
        self._protocol: FrameProtocol | None = None
        self._trusted = trusted  # we have chosen this peer
        self._partial: memoryview | None = None  # an incomplete frame; a large one grows to its size
        self._partial_bytes = 0  # its size
        self._filled = 0
        self._budgeted = 0  # what it takes of the large frames' budget
        self._size_bytes = b""  # one to three bytes of a frame's length
        self._backlog = b""  # received and not handed out: comes before anything that is received later
        self._paused = False
        self._resuming = False  # the backlog waits for its turn
        self._stuffed = False  # and for answers to leave first
        self._out: deque[Buffer | FileRange] = deque()
        self._queued = 0
        self._departed = 0  # bytes, since the beginning
        self._marks: list[tuple[int, int, Callable[[int], None]]] = []  # who wants to know when a range has left
        self._scheduled = False
        self._waits_to_send = False
        self._waits_for_disk = False
        self._warm: tuple[File, int] | None = None  # a file that was just read for us, and up to where
        self.account = ""
        self._closing = False
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
        try:
            if self._partial is None:
                received = self._socket.recv_into(arena.space())
                rest = received
            elif len(self._partial) < self._partial_bytes:  # what follows is of this frame
                received = self._socket.recv_into(self._partial[self._filled :])
                rest = -1
            else:
                missing = self._partial[self._filled :]
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
        if self._partial is not None:
            if rest < 0:
                self._filled += received
                if self._filled == len(self._partial):
                    self._grow()
                return
            frame, self._partial = self._partial, None
            self._free_budget()
            self._deliver(frame)
        if rest > 0:
            self._cut(arena.take(rest))

    def _begin(self, size: int, data: memoryview) -> None:
        """An incomplete frame of `size` bytes, of which `data` is here."""
        self._filled = len(data)
        self._partial_bytes = size
        room = min(size, max(WHOLE_BELOW_BYTES, 4 * len(data)))
        if self._may_take(room):
            self._partial = memoryview(bytearray(room))
            self._partial[: len(data)] = data

    def _grow(self) -> None:
        """The memory of a large frame is full."""
        partial = self._partial
        assert partial is not None
        room = min(self._partial_bytes, 4 * len(partial))
        if self._may_take(room):
            self._partial = memoryview(bytearray(room))
            self._partial[: len(partial)] = partial

    def _may_take(self, room: int) -> bool:
        """Whether this frame may own so much memory; the connection is closed where it may not."""
        if room <= WHOLE_BELOW_BYTES or self._trusted:
            return True
        more = room - self._budgeted
        if self._loop.large_frames_bytes + more > LARGE_FRAMES_BYTES:
            self._gone("too many large frames at once")
            return False
        self._budgeted = room
        self._loop.large_frames_bytes += more
        return True

    def _free_budget(self) -> None:
        if self._budgeted:
            self._loop.large_frames_bytes -= self._budgeted
            self._budgeted = 0

    def _deliver(self, frame: memoryview) -> None:
        if self._paused or self._resuming:
            self._backlog += len(frame).to_bytes(4) + frame
        elif self._protocol is not None and not self._closing:
            self._protocol.frame(frame)

    def _cut(self, data: memoryview) -> None:
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
            self._backlog += bytes(data[position:])
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
        backlog, self._backlog = self._backlog, b""
        try:
            if backlog:  # no frame is half received then: what came while paused went to the backlog as it was
                self._cut(memoryview(bytearray(backlog)))
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

    # --- sending ------------------------------------------------------------------------------------------------------

    def send(self, parts: Sequence[Buffer | FileRange]) -> None:
        """Queue parts; they leave at the end of the turn."""
        if self._fd < 0 or self._closing:
            return
        self._out += parts
        for part in parts:
            if isinstance(part, (bytes, bytearray, memoryview)):
                self._queued += len(part)
            else:
                self._queued += part.size
                if part.sent is not None:
                    self._marks.append((self._departed + self._queued, part.size, part.sent))
        if not self._scheduled and not self._waits_to_send:
            self._scheduled = True
            self._loop.will_send(self)
        elif self._queued > STOP_READING_ABOVE_BYTES and self._events & _IN:
            self._listen_for()

    def queued_bytes(self) -> int:
        """What has not left yet."""
        return self._queued

    def flush(self) -> None:
        """Send as much as the socket takes."""
        self._scheduled = False
        if self._fd < 0:
            return
        try:
            self._send_some()
        except BlockingIOError:
            self._waits_to_send = True
        except OSError as error:
            self._gone(error.strerror or "send failed")
            return
        if not self._out:
            self._warm = None
        if not self._out and self._closing:
            self._gone("closed after the last answer")
            return
        if self._stuffed and self._queued <= STOP_READING_ABOVE_BYTES:
            self._stuffed = False
            self._loop.call_soon(self._resume)
        self._listen_for()

    def _send_some(self) -> None:
        out = self._out
        while out and not self._waits_for_disk:
            buffers: list[Buffer] = []
            gathered = 0
            while out and len(buffers) < MAX_BUFFERS and gathered < SENDFILE_BYTES:
                part = out[0]
                if not isinstance(part, (bytes, bytearray, memoryview)):
                    if part.size >= COPY_BELOW_BYTES:
                        break
                    data = self._read(part)
                    if data is None:
                        break
                    part = data
                buffers.append(part)
                gathered += len(part)
                out.popleft()
            if buffers:
                self._send_buffers(buffers, gathered, socket.MSG_MORE if out and not self._waits_for_disk else 0)
            elif not self._waits_for_disk:
                self._send_range(out[0])  # type: ignore[arg-type]

    def _send_buffers(self, buffers: list[Buffer], size: int, flags: int) -> None:
        try:
            sent = (
                self._socket.send(buffers[0], flags) if len(buffers) == 1 else self._socket.sendmsg(buffers, (), flags)
            )
        except BlockingIOError:
            self._out.extendleft(reversed(buffers))
            raise
        self._left(sent)
        if sent < size:
            rest = _after(buffers, sent)
            self._out.extendleft(reversed(rest))
            raise BlockingIOError

    def _send_range(self, part: FileRange) -> None:
        size, cold = min(part.size, SENDFILE_BYTES), self._loop.cold_reads
        if cold is not None and not self._was_brought(part) and not cold.is_warm(part, size):
            self._wait_for_disk(part)
            return
        sent = os.sendfile(self._fd, part.file.fileno(), part.position, size)
        if sent == 0:
            raise OSError(0, "the file is shorter than the range to be sent")
        self._left(sent)
        if sent == part.size:
            self._out.popleft()
        else:
            self._out[0] = _Rest(part.file, part.position + sent, part.size - sent)

    def _read(self, part: FileRange) -> Buffer | None:
        """A small range; None where it has to come from the disk first."""
        cold = self._loop.cold_reads
        if cold is None or self._was_brought(part):
            return _read(part)
        data = cold.read_warm(part)
        if data is None:
            self._wait_for_disk(part)
        return data

    def _was_brought(self, part: FileRange) -> bool:
        """Then it is sent in any case: the system may have thrown it out again, and this has to end."""
        return self._warm is not None and self._warm[0] is part.file and part.position < self._warm[1]

    def _wait_for_disk(self, part: FileRange) -> None:
        cold = self._loop.cold_reads
        assert cold is not None
        self._waits_for_disk = True
        size = cold.bring(self.account, part, self._brought)
        self._warm = (part.file, part.position + size)

    def _brought(self) -> None:
        self._waits_for_disk = False
        self.flush()

    def _left(self, sent: int) -> None:
        """So many bytes more are in the hands of the system."""
        self._queued -= sent
        self._departed += sent
        marks = self._marks
        if marks and marks[0][0] <= self._departed:
            gone = 1
            while gone < len(marks) and marks[gone][0] <= self._departed:
                gone += 1
            self._marks = marks[gone:]
            for _, size, tell in marks[:gone]:
                tell(size)

    def _tell_of_the_rest(self) -> None:
        """The end came: of the range that was being sent, some may have left."""
        marks, self._marks = self._marks, []
        for end, size, tell in marks:
            left = self._departed - (end - size)
            if left > 0:
                tell(left)

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
        self._out.clear()
        self._queued = 0
        self._partial = None
        self._backlog = b""
        self._free_budget()
        if self._marks:
            self._tell_of_the_rest()
        protocol = self._protocol
        if protocol is not None:
            self._loop.at_turn_end(lambda: protocol.closed(reason))


class _Rest:
    """What is left of a file range."""

    __slots__ = ("file", "position", "sent", "size")

    def __init__(self, file: File, position: int, size: int) -> None:
        self.file, self.position, self.size = file, position, size
        self.sent: Callable[[int], None] | None = None  # the mark was set when the whole range came


def _read(part: FileRange) -> bytes:
    data = os.pread(part.file.fileno(), part.size, part.position)
    if len(data) != part.size:
        raise OSError(0, "the file is shorter than the range to be sent")
    return data


def _after(buffers: list[Buffer], sent: int) -> list[Buffer]:
    """What is left of `buffers` when the first `sent` bytes have gone."""
    for index, buffer in enumerate(buffers):
        if sent < len(buffer):
            return [memoryview(buffer)[sent:], *buffers[index + 1 :]]
        sent -= len(buffer)
    return []
