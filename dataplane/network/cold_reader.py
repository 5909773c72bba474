"""``python dataplane/network/cold_reader.py``: a process that reads pieces of a broker's files, for the page cache alone.

    broker                                      this process
    descriptor, position, size  -- stdin ---->  reads it into memory that nobody looks at
                                <- stdout ----  one byte: it was read, as far as it can be

The page cache belongs to the system, so it does not matter who reads. It is a process because it has to give way to
everybody else: memory that is new to the system costs a core (1 to 2 CPU-s/GB on a virtual machine). A thread that gives
way is sometimes not let run while it holds the broker's GIL, and then the loop does not run either.

It opens the broker's descriptor anew, whatever has become of the file's name, and reads ahead itself what it is told to;
the kernel does not do so for it. It ends with its input, so never outlives the broker.
"""

from __future__ import annotations

import mmap
import os
import signal
import struct
import subprocess
import sys

NICENESS = 10
REQUEST = struct.Struct("=iQI")
_AT_ONCE_BYTES = 2 * 2**20


class ColdReaders:
    """The broker's side: as many processes as threads ask at a time, started when they are needed."""

    def __init__(self) -> None:
        self._all: list[subprocess.Popen[bytes]] = []
        self._idle: list[subprocess.Popen[bytes]] = []

    def read(self, fd: int, position: int, size: int) -> None:
        """Have a range in the page cache; called in a thread. Where it cannot be had, it is not there."""
        try:
            reader = self._idle.pop()
        except IndexError:
            reader = self._start()
        assert reader.stdin is not None
        assert reader.stdout is not None
        try:
            reader.stdin.write(REQUEST.pack(fd, position, size))
            if os.read(reader.stdout.fileno(), 1):
                self._idle.append(reader)
        except BrokenPipeError:
            pass  # somebody has killed it: the next one asks another

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-I", "-S", __file__]
        reader = subprocess.Popen(command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 - ours
        self._all.append(reader)
        return reader

    def close(self) -> None:
        """End them."""
        for reader in self._all:
            with reader:  # closes the pipes and waits for its end
                pass


def main() -> int:
    """Read until nobody asks any more. The exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C is for the broker
    os.nice(NICENESS)
    broker, scratch = os.getppid(), memoryview(mmap.mmap(-1, _AT_ONCE_BYTES))
    while len(request := sys.stdin.buffer.read(REQUEST.size)) == REQUEST.size:
        descriptor, position, size = REQUEST.unpack(request)
        try:
            fd = os.open(f"/proc/{broker}/fd/{descriptor}", os.O_RDONLY)
            try:
                read(fd, position, size, scratch)
            finally:
                os.close(fd)
        except OSError:
            pass  # whoever wants the bytes meets the error, too
        os.write(1, b"\0")
    return 0


def read(fd: int, position: int, size: int, scratch: memoryview) -> None:
    """Have a range in the page cache. Raises OSError."""
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    os.posix_fadvise(fd, position, size, os.POSIX_FADV_WILLNEED)
    end = position + size
    while position < end:
        got = os.preadv(fd, [scratch[: end - position]], position)
        if not got:
            return
        position += got


if __name__ == "__main__":
    sys.exit(main())
