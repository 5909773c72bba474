"""Reading from the disk what is not in the page cache, beside the loop: one tenant's old data must not hold up the others.

`sendfile` of a range that lies in the cache is a copy; of one that does not it is a wait for the disk, with the whole
broker waiting. So before a piece of a file is sent it is probed: the kernel is asked how many of its pages it has, and then
for the first and last byte, by reads that refuse to wait. In this order: a read of a page that is not there, even one
that refuses to wait, has the kernel read ahead, and allocating and queueing up to 8 MiB takes the loop's time. (For the
same reason files are opened so that nobody but us reads ahead in them.) The connection waits for what is cold, and nobody
else. Where a look-up in indexes and headers would lead to the disk, it is the same (`doors.Files.at_once`,
`replication.serving.cold_lookups`).

=============  =========================================================================================================
to be sent     `read`: past the page cache (O_DIRECT) into memory that is used again and again, and sent from there. A
               consumer that reads through old data throws nobody's new data out of the cache, and filling the cache costs
               six times the processor's time. What is read a second time soon is read through the cache: others may follow
to be looked   `bring`: into the page cache, a few pages
up
=============  =========================================================================================================

Fairness: each account (an instance) has one read under way at a time; who waits is served in turn, account by account.
What was read and has not left stays in memory; beyond `CROWDED_BYTES` of it, what a socket does not take is let go and
read once more when the socket has room, so that consumers which do not read their answers cost no memory.

(Rejected: reading into the page cache in a thread, or in processes that give way, and sending from there. Only
`posix_fadvise`, which starts the reading and does not say when it is done.)
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from dataplane.doors import Background, Callback, File, FileRange
    from dataplane.tasks import Future

THREADS = max(2, min(4, (os.cpu_count() or 1) // 2))
AT_ONCE_EACH = 1
PIECE_BYTES = 2**20
"""What is read at once, of a range that is as long."""
CROWDED_BYTES = 64 * 2**20

_PAGE = mmap.PAGESIZE
_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)
_DIRECT: int = getattr(os, "O_DIRECT", 0)
_HEADERS_BYTES = 8192  # behind what is sent: where the look-up for the next fetch begins, which the loop does
_REMEMBERED = 8192  # places of a MiB
_KEPT = 8  # pieces of memory that nobody uses
_CACHESTAT = 451  # the system call's number, since Linux 6.5


class _Range(ctypes.Structure):
    _fields_ = (("offset", ctypes.c_uint64), ("length", ctypes.c_uint64))


class _Statistics(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("cached", "dirty", "writeback", "evicted", "recent"))


class Probe:
    """Whether bytes of a file are in the page cache. What the system cannot say counts as being there."""

    def __init__(self) -> None:
        self._byte = [bytearray(1)]
        self._range, self._found = _Range(), _Statistics()
        self._range_at, self._found_at = ctypes.byref(self._range), ctypes.byref(self._found)
        self._syscall = ctypes.PyDLL(None).syscall  # it keeps the GIL: the call takes a microsecond
        self._can_count = True

    def is_warm(self, fd: int, position: int, size: int) -> bool:
        """All of the range, as far as can be told without reading it."""
        if not self._has_all(fd, position, size):
            return False
        try:
            os.preadv(fd, self._byte, position, _NOWAIT)
            if size > 1:  # and the last byte: a page that is still being read counts as being there
                os.preadv(fd, self._byte, position + size - 1, _NOWAIT)
            return True
        except BlockingIOError:
            return False
        except OSError:
            return True  # a file system in memory, or an error that sending will meet as well

    def _has_all(self, fd: int, position: int, size: int) -> bool:
        if not self._can_count:
            return True
        self._range.offset, self._range.length = position, size
        if self._syscall(_CACHESTAT, fd, self._range_at, self._found_at, 0) != 0:
            self._can_count = False
            return True
        cached = self._found.cached
        if cached < _pages(position, size):  # perhaps because it goes beyond the end of the file
            size = min(size, os.fstat(fd).st_size - position)
        return bool(cached >= _pages(position, size))


def _pages(position: int, size: int) -> int:
    """How many pages a range touches."""
    return (position + size - 1) // _PAGE - position // _PAGE + 1


class Brought:
    """A piece of a file in memory, to be sent and let go."""

    __slots__ = ("_memory", "_of", "file", "position", "view")

    def __init__(self, of: ColdReads, memory: mmap.mmap, file: File, position: int, view: memoryview) -> None:
        self._of, self._memory = of, memory
        self.file, self.position, self.view = file, position, view

    @property
    def size(self) -> int:
        """Bytes that have not left."""
        return len(self.view)

    def left(self, sent: int) -> None:
        """So many bytes were sent."""
        self.position += sent
        self.view = self.view[sent:]

    def let_go(self) -> None:
        """Its memory may be used for something else."""
        self.view.release()
        self._of.take_back(self._memory)


class _Read(NamedTuple):
    """What a thread does, and who waits for it."""

    work: Callable[[], Brought | None]
    done: Callable[[Future[Brought | None]], None]


class _Seen:
    """What was read past the cache lately: places of a MiB, and up to where somebody came in them."""

    def __init__(self) -> None:
        self._reached: dict[tuple[str, int], int] = {}  # the oldest first

    def again(self, file: File, position: int) -> bool:
        """Whether it is read again; remembered from now on."""
        place = (file.path, position // PIECE_BYTES)
        reached = self._reached.pop(place, -1)
        self._reached[place] = max(reached, position)
        if len(self._reached) > _REMEMBERED:
            del self._reached[next(iter(self._reached))]
        return position <= reached


class ColdReads:
    """For one loop."""

    def __init__(self, background: Background, threads: int = THREADS) -> None:
        self._background, self._threads = background, threads
        self._probe = Probe()
        self._running: dict[str, int] = {}
        self._waiting: dict[str, deque[_Read]] = {}  # in the order in which accounts have their turn
        self._total = 0
        self._memory: list[mmap.mmap] = []  # of pieces, used by nobody
        self._seen = _Seen()
        self._used = 0  # pieces that were read and are not sent yet

    def is_warm(self, fd: int, position: int, size: int) -> bool:
        """Whether a range of an open file can be read without waiting for the disk."""
        return self._probe.is_warm(fd, position, size)

    def read_warm(self, part: FileRange) -> bytes | bytearray | None:
        """A small range, whole; None where the disk would have to be waited for. Raises OSError."""
        data = bytearray(part.size)
        try:
            got = os.preadv(part.file.fileno(), [data], part.position, _NOWAIT)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
            return os.pread(part.file.fileno(), part.size, part.position)
        return data if got == part.size else None

    @property
    def is_crowded(self) -> bool:
        """Whether so much was read and not sent that it has to be let go."""
        return self._used * PIECE_BYTES > CROWDED_BYTES

    def read(self, account: str, part: FileRange, done: Callable[[Future[Brought | None]], None]) -> None:
        """Read the first piece of a range from the disk, and call `done` on the loop with what came of it, or an OSError."""
        file, position, size, is_all = part.file, part.position, min(part.size, PIECE_BYTES), part.size <= PIECE_BYTES
        flags = 0 if self._seen.again(file, position) else _DIRECT
        self._ask(account, _Read(lambda: self._read(file, position, size, flags, is_all=is_all), done))

    def bring(self, account: str, part: FileRange, done: Callback) -> None:
        """Have a small range in the page cache, and call `done` on the loop. Where it cannot be had, it is not there."""
        file, position, size = part.file, part.position, part.size
        self._ask(account, _Read(lambda: _bring(file, position, size), lambda _: done()))

    def take_back(self, memory: mmap.mmap) -> None:
        """What was read into it has been sent."""
        self._used -= 1
        if len(self._memory) < _KEPT:
            self._memory.append(memory)

    def _ask(self, account: str, read: _Read) -> None:
        if self._total < self._threads and self._running.get(account, 0) < AT_ONCE_EACH:
            self._start(account, read)
        else:
            self._waiting.setdefault(account, deque()).append(read)

    def _start(self, account: str, read: _Read) -> None:
        self._total += 1
        self._running[account] = self._running.get(account, 0) + 1
        self._background.run(read.work).then(lambda found: self._finished(account, read, found))

    def _read(self, file: File, position: int, size: int, flags: int, *, is_all: bool) -> Brought:
        """In a thread."""
        try:
            memory = self._memory.pop()
        except IndexError:
            memory = mmap.mmap(-1, PIECE_BYTES + 2 * _PAGE)
        view = _read(file.fileno(), flags, position, size, memory)
        if is_all:
            _bring(file, position + size, _HEADERS_BYTES)
        return Brought(self, memory, file, position, view)

    def _finished(self, account: str, read: _Read, found: Future[Brought | None]) -> None:
        self._total -= 1
        left = self._running[account] - 1
        if left:
            self._running[account] = left
        else:
            del self._running[account]
        if found.error is None and found.result() is not None:
            self._used += 1
        self._start_next()
        read.done(found)

    def _start_next(self) -> None:
        for account, reads in self._waiting.items():
            if self._running.get(account, 0) < AT_ONCE_EACH:
                del self._waiting[account]
                read = reads.popleft()
                if reads:
                    self._waiting[account] = reads  # behind the others
                self._start(account, read)
                return


def _bring(file: File, position: int, size: int) -> None:
    """Have a range in the page cache."""
    scratch = bytearray(min(size, PIECE_BYTES))
    try:
        while size > 0:
            got = os.preadv(file.fileno(), [memoryview(scratch)[: min(size, PIECE_BYTES)]], position)
            if not got:
                return
            position, size = position + got, size - got
    except OSError:
        pass  # the reader of the bytes meets the error, too


def _read(fd: int, flags: int, position: int, size: int, memory: mmap.mmap) -> memoryview:
    """A range of an open file, whole. Raises OSError."""
    try:
        return _read_whole_pages(fd, flags, position, size, memory)
    except OSError as error:
        if not flags or error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):  # of a file system that has no such reads
            raise
        return _read_whole_pages(fd, 0, position, size, memory)


def _read_whole_pages(fd: int, flags: int, position: int, size: int, memory: mmap.mmap) -> memoryview:
    before = position % _PAGE
    wanted, view = before + size, memoryview(memory)
    another = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | flags)  # whatever has become of the file's name
    try:
        if not flags:
            os.posix_fadvise(another, 0, 0, os.POSIX_FADV_RANDOM)  # only we read ahead, as in `storage.files`
        got = 0
        while got < wanted and got % _PAGE == 0:  # elsewhere than on a page's edge the file has ended
            more = os.preadv(another, [view[got : -(-wanted // _PAGE) * _PAGE]], position - before + got)
            if not more:
                break
            got += more
    finally:
        os.close(another)
    if got < wanted:
        raise OSError(0, "the file is shorter than the range to be sent")
    return view[before:wanted]
