"""Large memory: what the process keeps of it, and what is no file's."""

from __future__ import annotations

import contextlib
import ctypes
import mmap

Mapped = mmap.mmap
KEPT_BYTES = 32 * 2**20
"""Of freed memory, at the end of the heap."""
GIVEN_BACK_BYTES = 2**20
"""At once, of what is freed beyond that: to give 32 MiB back takes 3 to 10 ms, for which the loop stands still."""
LARGE_PAGES_FROM_BYTES = 4 * 2**20
"""Smaller memory is given page by page: a large page that nobody has touched yet is cleared in one piece (6 ms on a virtual
machine whose host has to find it first)."""
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


def mapped(size: int) -> Mapped:
    """Memory that is all zeros, and takes none until it is touched."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    _in_large_pages(memory, size)
    return memory


def grown(memory: Mapped, size: int) -> None:
    """Make it larger where it is: nothing is copied. No view of it may be left."""
    memory.resize(size)
    _in_large_pages(memory, size)


def _in_large_pages(memory: Mapped, size: int) -> None:
    """Where the system has them: a quarter of the time for 100 MiB, a tenth to give it back."""
    if size >= LARGE_PAGES_FROM_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without them
            memory.madvise(mmap.MADV_HUGEPAGE)
