"""Large memory: what the process keeps of it, and what is no file's."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
from collections import deque

KEPT_BYTES = 32 * 2**20
"""Of freed memory, at the end of the heap."""
GIVEN_BACK_BYTES = 2**20
"""At once, of what is freed beyond that: to give 32 MiB back takes 3 to 10 ms, for which the loop stands still."""
MUCH_BYTES = 64 * 2**20
"""Of memory that is to go back. With more, new frames may come faster than one part a turn gives it back."""
PARTS_OF_MUCH = 4
FROM_HEAP_BYTES = 4 * 2**20
"""Larger buffers go back to the system by themselves: in the heap they would leave large holes."""
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3


def keep_freed_memory() -> bool:
    """Have the C library keep some of what is freed; whether it can.

    Otherwise each large frame and answer gets its pages from the system anew, which clears them: of 2 MiB that takes 2 ms on a
    virtual machine, for which the loop stands still, instead of 0.1.
    """
    try:
        set_option = ctypes.CDLL(None).mallopt
    except AttributeError:  # not glibc
        return False
    options = {
        _M_MMAP_THRESHOLD: FROM_HEAP_BYTES,
        _M_TRIM_THRESHOLD: KEPT_BYTES,
        _M_TOP_PAD: KEPT_BYTES - GIVEN_BACK_BYTES,
    }
    return all(set_option(name, value) for name, value in options.items())


class Mapped(mmap.mmap):
    """Memory that is all zeros, and takes none until it is touched; then page by page.

    `owner` takes it back once nobody has a view of it.
    """

    owner: LargeMemory

    def __del__(self) -> None:
        if not self.closed and len(self) > GIVEN_BACK_BYTES:
            self.owner.let_go(self)


class LargeMemory:
    """What one loop has mapped for large frames. It goes back to the system a part in each turn.

    In large pages it would all go back at once, and take less time to fill; but a large page is cleared in one piece, for which
    the loop stands still: 0.2 ms for 2 MiB, and 6 ms on a virtual machine whose host has to find it first.
    """

    def __init__(self) -> None:
        self._leaving: deque[Mapped] = deque()
        self._leaving_bytes = 0

    @property
    def is_leaving(self) -> bool:
        """Whether there is something to give back."""
        return bool(self._leaving)

    def mapped(self, size: int) -> Mapped:
        """New memory."""
        memory = Mapped(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.owner = self
        return memory

    def let_go(self, memory: Mapped) -> None:
        """Nobody has it any more. The last who had it may be a thread beside the loop: the sum is not exact then."""
        self._leaving.append(memory)
        self._leaving_bytes += len(memory)

    def give_back(self) -> None:
        """A part of what nobody has any more, 0.1 ms; some parts where that is much."""
        for _ in range(PARTS_OF_MUCH if self._leaving_bytes > MUCH_BYTES else 1):
            if self._leaving:
                self._give_back_part()
        if not self._leaving:
            self._leaving_bytes = 0

    def _give_back_part(self) -> None:
        memory = self._leaving[0]
        left = len(memory) - GIVEN_BACK_BYTES
        self._leaving_bytes -= min(len(memory), GIVEN_BACK_BYTES)
        if left > 0:
            memory.resize(left)
        else:
            self._leaving.popleft().close()


def kept(size: int) -> mmap.mmap:
    """Memory that stays, in large pages where the system has them: all of it is read and written over and over."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without them
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory
