"""The files door: the operating system's files. The only module that touches the file system.

A log file is opened once for reading and appending. Its descriptor lives as long as anything refers to the
`SystemFile`: `close` forbids writing, and the descriptor itself goes with the last reference, so a range that is still
being sent to a client outlives the segment it came from. (Rejected: closing at once, which sends another file's bytes
as soon as the number is reused.)
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import shutil
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dataplane.doors import NotInMemoryError
from dataplane.storage.unlisted import Unlisted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dataplane.doors import Buffer, Callback, File
    from dataplane.storage.cold import ColdReads

_IOV_MAX = 1024  # what one writev takes, on Linux
_MORE_BYTES = 64 * 1024
"""Brought in with what a look-up missed."""
_syncfs = ctypes.CDLL(None, use_errno=True).syncfs  # which Python's os does not have
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(slots=True)
class FileSlice:
    """Bytes of a file, sent without passing through this process. A `doors.FileRange`."""

    file: File
    position: int
    size: int
    sent: Callable[[int], None] | None = None

    def read(self) -> bytes:
        """The bytes, for callers that have to look at them after all."""
        return self.file.read(self.position, self.size)


class SystemFile:
    """An open file, appended to at its end whatever else was done with it."""

    __slots__ = ("_fd", "_patience", "_unlisted", "_writable", "path")

    def __init__(self, path: str, fd: int, unlisted: Unlisted, patience: _Patience) -> None:
        self.path = path
        self._fd = fd
        self._writable = True
        self._unlisted = unlisted
        self._patience = patience

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def append(self, buffers: Sequence[Buffer]) -> int:
        """Write all buffers at the end. Raises OSError, after which any part of them may be there."""
        self._check_writable()
        expected = sum(map(len, buffers))
        if len(buffers) <= _IOV_MAX:
            written = os.writev(self._fd, buffers)
            if written == expected:
                return written
            self._append_rest(memoryview(b"".join(buffers))[written:])
        else:
            for start in range(0, len(buffers), _IOV_MAX):
                self.append(buffers[start : start + _IOV_MAX])
        return expected

    def _append_rest(self, rest: memoryview) -> None:
        """The kernel took only part: the disk is filling up, so the next write says why."""
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes; fewer at the end of the file."""
        impatient = self._patience.without
        if impatient is not None and not impatient.is_warm(self._fd, position, size):
            raise NotInMemoryError(self, position, size)
        return os.pread(self._fd, size, position)

    def truncate(self, size: int) -> None:
        self._check_writable()
        os.ftruncate(self._fd, size)

    def sync(self) -> None:
        """Force the content to disk, and the first time the name."""
        os.fdatasync(self._fd)
        if self.path in self._unlisted:
            _sync_directory(self.path)
            self._unlisted.discard(self.path)

    def fileno(self) -> int:
        """For sendfile."""
        return self._fd

    def close(self) -> None:
        """No more writing. The descriptor goes with the last reference."""
        self._writable = False

    def _check_writable(self) -> None:
        if not self._writable:
            raise OSError(errno.EBADF, "the file was closed", self.path)

    def __del__(self) -> None:
        os.close(self._fd)


class _Lock:
    """Held as long as the object lives, and never longer than the process."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def __del__(self) -> None:
        if hasattr(self, "_fd"):
            os.close(self._fd)


class _Patience(threading.local):
    """Of each thread: nothing is said, and it waits for the disk; or who can say what is in memory."""

    without: ColdReads | None = None


class SystemFiles:
    """The operating system's file system. Without `cold_reads`, which the loop has, everything waits for the disk."""

    def __init__(self, cold_reads: ColdReads | None = None) -> None:
        self._cold_reads = cold_reads
        self._patience = _Patience()
        self._locks: dict[str, _Lock] = {}
        self._memory = ""
        self._unlisted = Unlisted()  # known here, since a file may be closed and opened again before it is synced

    def __reduce__(self) -> tuple[type[SystemFiles], tuple[()]]:
        """In another process it is a fresh one: locks, and the numbers of open files, mean something only here."""
        return SystemFiles, ()

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Inside of it this thread's reads raise NotInMemoryError where they would have to wait for the disk."""
        self._patience.without = self._cold_reads
        try:
            yield
        finally:
            self._patience.without = None

    def bring(self, account: str, missing: NotInMemoryError, done: Callback) -> None:
        """Read it beside the loop, with what lies behind it: look-ups go on from there."""
        assert self._cold_reads is not None, "then nothing is missing"
        self._cold_reads.bring(account, FileSlice(missing.file, missing.position, missing.size + _MORE_BYTES), done)

    def open(self, path: str, *, create: bool = False) -> SystemFile:
        """Open for reading and appending. Raises FileNotFoundError."""
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
        try:
            fd = os.open(path, flags)
        except FileNotFoundError:
            if not create:
                raise
            self._unlisted.add(path)
            fd = os.open(path, flags | os.O_CREAT, 0o644)
        if self._cold_reads is not None:  # what is to be read ahead, and by whom, is decided there
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
        return SystemFile(path, fd, self._unlisted, self._patience)

    def read_file(self, path: str) -> bytes:
        """A whole small file. Raises FileNotFoundError."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(fd).st_size
            data = os.read(fd, size)
            while len(data) < size and (more := os.read(fd, size - len(data))):
                data += more
            return data
        finally:
            os.close(fd)

    def size(self, path: str) -> int:
        """Bytes in a file. Raises FileNotFoundError."""
        return os.stat(path).st_size  # noqa: PTH116 - ten thousand of them at every start

    def modified_ms(self, path: str) -> int:
        """When a file's content was last changed, by the wall's clock. Raises FileNotFoundError."""
        return Path(path).stat().st_mtime_ns // 1_000_000

    def view(self, path: str) -> memoryview:
        """A whole file as memory that is only read. Raises FileNotFoundError."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(fd).st_size
            impatient = self._patience.without
            if impatient is not None and size and not impatient.is_warm(fd, 0, size):
                raise NotInMemoryError(self.open(path), 0, size)
            return memoryview(mmap.mmap(fd, size, mmap.MAP_SHARED, mmap.PROT_READ)) if size else memoryview(b"")
        finally:
            os.close(fd)

    def write_file(self, path: str, data: bytes) -> None:
        """Replace a small file atomically and durably."""
        beside = path + ".tmp"
        with Path(beside).open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(beside).replace(path)
        _sync_directory(path)

    def put_file(self, path: str, data: bytes) -> None:
        """Replace a small file; on disk some time."""
        beside = path + ".tmp"
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(fd, left) :]
        finally:
            os.close(fd)
        os.replace(beside, path)  # noqa: PTH105 - a file object and paths take twice the system calls and the time

    def sync_below(self, path: str) -> None:
        """Force everything below to disk: the whole file system, in one call instead of some for each file."""
        made_before = self._unlisted.below(path)
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if _syncfs(fd):
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), path)
        finally:
            os.close(fd)
        for directory, names in made_before:
            self._unlisted.forget(directory, names)

    def map(self, path: str, size: int) -> memoryview:
        """A file as memory that outlives this process. Raises OSError."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            # Not a hole: writing to a page that finds no room on the disk would kill the process (SIGBUS).
            os.posix_fallocate(fd, 0, size)
            return memoryview(mmap.mmap(fd, size, mmap.MAP_SHARED))
        finally:
            os.close(fd)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)  # noqa: PTH110 - half the time

    def list(self, path: str) -> list[str]:
        """Names in a directory, sorted; empty where there is none."""
        try:
            return sorted(os.listdir(path))  # noqa: PTH208 - names are wanted, not paths
        except FileNotFoundError:
            return []

    def space(self, path: str) -> tuple[int, int]:
        """Bytes of its disk, and how many are left for us."""
        found = os.statvfs(path)
        return found.f_frsize * found.f_blocks, found.f_frsize * found.f_bavail

    def make_directory(self, path: str) -> None:
        """With parents; harmless when it exists."""
        try:
            os.mkdir(path)  # noqa: PTH102 - half the time
        except FileExistsError:
            if not Path(path).is_dir():
                raise
        except FileNotFoundError:
            Path(path).mkdir(parents=True, exist_ok=True)

    def lock(self, path: str) -> None:
        """Hold a lock file. Raises BlockingIOError where another process does."""
        if path not in self._locks:
            self._locks[path] = _Lock(path)

    def unlock(self, path: str) -> None:
        """Let go of it."""
        self._locks.pop(path, None)

    def sync_directory(self, path: str) -> None:
        """Force its names to disk."""
        _sync_directory(f"{path}/")

    def rename(self, old: str, new: str) -> None:
        """Within one directory."""
        Path(old).rename(new)
        if self._unlisted:
            self._unlisted.move(old, new)

    def remove(self, path: str) -> None:
        """A file; harmless when it does not exist."""
        Path(path).unlink(missing_ok=True)
        self._unlisted.discard(path)

    def remove_tree(self, path: str) -> None:
        """A directory and all below it; harmless when it does not exist."""
        if not os.path.lexists(path):  # thousands of topics are created at once, and none of them is there before
            return
        shutil.rmtree(path, ignore_errors=True)
        self._unlisted.remove(path)

    def memory(self) -> str:
        """Named by the boot of the kernel."""
        if not self._memory:
            with suppress(OSError):
                self._memory = _BOOT_ID.read_text().strip()
        return self._memory


def _sync_directory(path: str) -> None:
    fd = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)  # noqa: PTH120
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
