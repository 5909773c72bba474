"""Reading from the disk what is not in the page cache, beside the loop: one tenant's old data must not hold up the others.

`sendfile` of a range that lies in the cache is a copy; of one that does not it is a wait for the disk, with the whole
broker waiting. So before a piece of a file is sent it is probed: the kernel is asked how many of its pages it has, and then
for the first and last byte, by reads that refuse to wait. In this order: a read of a page that is not there, even one
that refuses to wait, has the kernel read ahead, and allocating and queueing up to 8 MiB takes the loop's time. (For the
same reason files are opened so that nobody but us reads ahead in them.) A cold piece is read beside the loop, into
memory that nobody looks at, and sent from the cache after that; the connection waits meanwhile, and nobody else. Where a
look-up in indexes and headers would lead to the disk, it is the same (`doors.Files.at_once`, `replication.cold_lookups`).

Fairness: each account (an instance) has one read under way at a time; who waits is served in turn, account by account.
Reading takes a core, too, where memory is new to the system: so an account has no more, and those who read give way to
everybody else (`cold_reader`: processes; here are the threads that wait for them, and for nothing else). Two at once for
each on two cores: four times the neighbours' median.

(Rejected: sending what the thread has read, which copies it once more. Only `posix_fadvise`, which starts the reading and
does not say when it is done.)
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from dataplane.network.cold_reader import ColdReaders

if TYPE_CHECKING:
    from dataplane.doors import Background, Callback, File, FileRange

THREADS = max(2, min(4, (os.cpu_count() or 1) // 2))
AT_ONCE_EACH = 1
PIECE_BYTES = 2 * 2**20
"""What is read ahead at once, of a range that is as long."""

_PAGE = mmap.PAGESIZE
_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)
_HEADERS_BYTES = 8192  # behind a piece: where the look-up for the next fetch begins, which the loop does
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


class _Read(NamedTuple):
    file: File
    position: int
    size: int
    done: Callback


class ColdReads:
    """For one loop."""

    def __init__(self, background: Background, threads: int = THREADS) -> None:
        self._background, self._threads = background, threads
        self._probe = Probe()
        self._readers = ColdReaders()
        self._running: dict[str, int] = {}
        self._waiting: dict[str, deque[_Read]] = {}  # in the order in which accounts have their turn
        self._total = 0

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

    def bring(self, account: str, part: FileRange, done: Callback) -> int:
        """Read the first piece of a range from the disk, and call `done` on the loop; returns the size of the piece."""
        read = _Read(part.file, part.position, min(part.size, PIECE_BYTES), done)
        if self._total < self._threads and self._running.get(account, 0) < AT_ONCE_EACH:
            self._start(account, read)
        else:
            self._waiting.setdefault(account, deque()).append(read)
        return read.size

    def _start(self, account: str, read: _Read) -> None:
        self._total += 1
        self._running[account] = self._running.get(account, 0) + 1
        self._background.run(lambda: self._read(read)).then(lambda _: self._finished(account, read))

    def _read(self, read: _Read) -> None:
        self._readers.read(read.file.fileno(), read.position, read.size + _HEADERS_BYTES)

    def _finished(self, account: str, read: _Read) -> None:
        self._total -= 1
        left = self._running[account] - 1
        if left:
            self._running[account] = left
        else:
            del self._running[account]
        self._start_next()
        read.done()

    def _start_next(self) -> None:
        for account, reads in self._waiting.items():
            if self._running.get(account, 0) < AT_ONCE_EACH:
                del self._waiting[account]
                read = reads.popleft()
                if reads:
                    self._waiting[account] = reads  # behind the others
                self._start(account, read)
                return

    def close(self) -> None:
        """End what reads. Nothing may be under way."""
        self._readers.close()
