"""The sending half of a connection: buffers and file ranges out, in order.

Consecutive buffers leave in one `sendmsg`; a small file range is read into a buffer and joins them, a large one goes by
`sendfile` in chunks of 1 MiB. What is not in the page cache is read by a thread first (`cold`) and sent from its memory;
what is queued behind it waits, and other connections do not notice.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dataplane.doors import Buffer, File, FileRange
from dataplane.storage.cold import Brought

if TYPE_CHECKING:
    from dataplane.network.loop import EpollLoop
    from dataplane.tasks import Future

SENDFILE_BYTES = 2**20
MOST_AT_ONCE_BYTES = 512 * 2**10
"""What one connection sends before others have their turn: a peer that reads fast takes it as fast as it is sent."""
COPY_BELOW_BYTES = 64 * 2**10
MAX_BUFFERS = 256
STOP_READING_ABOVE_BYTES = 16 * 2**20
"""A peer that sends requests and does not read answers is not read from while more than this is queued for it."""


class Sender:
    """What is queued for one socket. Its other half (`connection`) reads, listens for events, and ends it."""

    __slots__ = (
        "_buffered",
        "_closing",
        "_departed",
        "_fd",
        "_held_buffers",
        "_is_stopped",
        "_loop",
        "_marks",
        "_may_flush",
        "_out",
        "_queued",
        "_scheduled",
        "_socket",
        "_stuffed",
        "_waits_for_disk",
        "_waits_to_send",
        "payer",
    )

    def __init__(self, loop: EpollLoop, sock: socket.socket) -> None:
        self._loop, self._socket, self._fd = loop, sock, sock.fileno()
        self._out: deque[Buffer | FileRange | Brought] = deque()
        self._queued = 0
        self._departed = 0  # bytes, since the beginning
        self._marks: list[tuple[int, int, Callable[[int], None]]] = []  # who wants to know when a range has left
        self._scheduled = False
        self._stuffed = False  # requests wait for answers to leave first
        self._waits_to_send = False
        self._waits_for_disk = False
        self._closing = False
        self.payer = loop.accounts.internal  # whose time it takes, and whose memory
        self._buffered = 0  # of what is queued, what is held in memory for this connection alone
        self._held_buffers = 0  # so much of it is told to the account: what the peer did not take at once
        self._is_stopped = False  # its account holds too much, and this connection does not read its answers
        self._may_flush = False

    @property
    def account(self) -> str:
        return self.payer.name

    @account.setter
    def account(self, name: str) -> None:
        self.payer = self._loop.accounts.of(name)

    def _listen_for(self) -> None:
        """Tell epoll what we wait for now."""
        raise NotImplementedError

    def resume(self) -> None:
        """Hand out the requests that waited."""
        raise NotImplementedError

    def _queue_up(self) -> None:
        """Have `serve` called when the account's time comes."""
        raise NotImplementedError

    def _hold(self, more: int) -> None:
        """Tell the account."""
        raise NotImplementedError

    def _gone(self, reason: str) -> None:
        """The end."""
        raise NotImplementedError

    def send(self, parts: Sequence[Buffer | FileRange]) -> None:
        """Queue parts; they leave at the end of the turn."""
        if self._fd < 0 or self._closing:
            return
        self._out += parts
        for part in parts:
            if isinstance(part, (bytes, bytearray, memoryview)):
                size = len(part)
                self._queued += size
                self._buffered += size
            else:
                self._queued += part.size
                if part.sent is not None:
                    self._marks.append((self._departed + self._queued, part.size, part.sent))
        if not self._scheduled and not self._waits_to_send:
            self._scheduled = True
            self._loop.will_send(self)
        elif self._queued > STOP_READING_ABOVE_BYTES:
            self._listen_for()

    @property
    def sent_bytes(self) -> int:
        """What has left, since it began."""
        return self._departed

    def queued_bytes(self) -> int:
        """What has not left yet."""
        return self._queued

    def flush(self) -> None:
        """Send as much as the socket takes."""
        self._scheduled = self._may_flush = False
        if self._fd < 0:
            return
        try:
            self._send_some(self._departed + MOST_AT_ONCE_BYTES)
        except BlockingIOError:
            self._waits_to_send = True
        except OSError as error:
            self._gone(error.strerror or "send failed")
            return
        if self._buffered or self._held_buffers:
            self._hold_what_is_left()
            if self._fd < 0:
                return
        if not self._out and self._closing:
            self._gone("closed after the last answer")
            return
        if self._stuffed and self._queued <= STOP_READING_ABOVE_BYTES:
            self._stuffed = False
            self.resume()
        self._listen_for()

    def put_off(self) -> None:
        """Not in this turn: send when the account's time comes."""
        self._scheduled = False
        if self._fd >= 0:
            self._may_flush = True
            self._queue_up()

    def _hold_what_is_left(self) -> None:
        """What the peer has not taken is held by the account; where that holds too much, nothing more is asked for here."""
        more, self._held_buffers = self._buffered - self._held_buffers, self._buffered
        if more:
            self._hold(more)
        was_stopped, self._is_stopped = self._is_stopped, self._held_buffers > 0 and self.payer.is_short
        if was_stopped and not self._is_stopped:
            self.resume()

    def _send_some(self, until: int) -> None:
        out = self._out
        while out and not self._waits_for_disk:
            if self._departed >= until:
                self._may_flush = True
                self._queue_up()
                return
            buffers: list[Buffer] = []
            gathered = 0
            room = until - self._departed
            while out and len(buffers) < MAX_BUFFERS and gathered < room:
                part = out[0]
                if not isinstance(part, (bytes, bytearray, memoryview)):
                    if part.size >= COPY_BELOW_BYTES or isinstance(part, Brought):
                        break
                    data = self._read(part)
                    if data is None:
                        break
                    part = data
                    self._buffered += len(data)
                if len(part) > room - gathered:  # a long answer: the rest of it in another turn
                    whole = memoryview(part)
                    part, out[0] = whole[: room - gathered], whole[room - gathered :]
                else:
                    out.popleft()
                buffers.append(part)
                gathered += len(part)
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
        self._buffered -= sent
        if sent < size:
            rest = _after(buffers, sent)
            self._out.extendleft(reversed(rest))
            raise BlockingIOError

    def _send_range(self, part: FileRange) -> None:
        if isinstance(part, Brought):
            self._send_brought(part)
            return
        size, cold = min(part.size, SENDFILE_BYTES), self._loop.cold_reads
        if cold is not None and not cold.is_warm(part.file.fileno(), part.position, size):
            self._wait_for_disk(part)
            return
        sent = os.sendfile(self._fd, part.file.fileno(), part.position, size)
        if sent == 0:
            raise OSError(0, "the file is shorter than the range to be sent")
        self._left(sent)
        if sent == part.size:
            self._out.popleft()
        else:
            self._out[0] = range_after(part, sent)

    def _read(self, part: FileRange) -> Buffer | None:
        """A small range; None where it has to come from the disk first."""
        cold = self._loop.cold_reads
        if cold is None:
            return read_range(part.file, part.position, part.size)
        data = cold.read_warm(part)
        if data is None:
            self._wait_for_disk(part)
        return data

    def _wait_for_disk(self, part: FileRange) -> None:
        cold = self._loop.cold_reads
        assert cold is not None
        self._waits_for_disk = True
        cold.read(self.account, part, lambda found: self._brought(part, found))

    def _brought(self, part: FileRange, found: Future[Brought | None]) -> None:
        self._waits_for_disk = False
        error = found.error
        if isinstance(error, OSError):
            self._gone(error.strerror or "reading from the disk failed")
            return
        piece = found.result()
        assert piece is not None
        if self._fd < 0:
            piece.let_go()
            return
        out = self._out
        place = next(place for place, each in enumerate(out) if each is part)  # behind what the socket did not take
        rest = part.size - piece.size
        out[place] = piece
        if rest:
            out.insert(place + 1, _Rest(part.file, part.position + piece.size, rest))
        self.flush()

    def _send_brought(self, part: Brought) -> None:
        cold = self._loop.cold_reads
        assert cold is not None
        try:
            sent = self._socket.send(part.view)
        except BlockingIOError:
            sent = 0
        size = part.size
        part.left(sent)
        if sent == size or cold.is_crowded:
            self._out.popleft()
            if sent < size:
                self._out.appendleft(_Rest(part.file, part.position, part.size))
            part.let_go()
        if sent:
            self._left(sent)
        if sent < size:
            raise BlockingIOError

    def _let_go(self) -> None:
        """Forget what is queued."""
        for part in self._out:
            if isinstance(part, Brought):
                part.let_go()
        self._out.clear()
        self._queued = self._buffered = self._held_buffers = 0

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


class _Rest:
    """What is left of a file range."""

    __slots__ = ("file", "position", "sent", "size")

    def __init__(self, file: File, position: int, size: int) -> None:
        self.file, self.position, self.size = file, position, size
        self.sent: Callable[[int], None] | None = None  # the mark was set when the whole range came


def range_after(part: FileRange, sent: int) -> FileRange:
    """What is left of a range when so many bytes of it have gone."""
    return _Rest(part.file, part.position + sent, part.size - sent)


def read_range(file: File, position: int, size: int) -> bytes:
    """Exactly these bytes of a file. Raises OSError."""
    data = os.pread(file.fileno(), size, position)
    if len(data) != size:
        raise OSError(0, "the file is shorter than the range to be sent")
    return data


def _after(buffers: list[Buffer], sent: int) -> list[Buffer]:
    """What is left of `buffers` when the first `sent` bytes have gone."""
    for index, buffer in enumerate(buffers):
        if sent < len(buffer):
            return [memoryview(buffer)[sent:], *buffers[index + 1 :]]
        sent -= len(buffer)
    return []
