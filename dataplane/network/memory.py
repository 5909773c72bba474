"""Large memory: what the process keeps of it, and what is no file's."""

from __future__ import annotations

import contextlib
import ctypes
import mmap

Mapped = mmap.mmap
KEPT_BYTES = 32 * 2**20
"""Of freed memory, at the end of the heap."""
FROM_HEAP_BYTES = 4 * 2**20
"""Larger buffers go back to the system by themselves: in the heap they would leave large holes."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> bool:
    """Have the C library keep some of what is freed; whether it can.

    Otherwise each large frame and answer gets its pages from the system anew, which clears them: of 2 MiB that takes 2 ms on a
    virtual machine, for which the loop stands still, instead of 0.1.
    """
    try:
        set_option = ctypes.CDLL(None).mallopt
    except AttributeError:  # not glibc
        return False
    return bool(set_option(_M_MMAP_THRESHOLD, FROM_HEAP_BYTES) and set_option(_M_TRIM_THRESHOLD, KEPT_BYTES))


def mapped(size: int) -> Mapped:
    """The system gives it in large pages, where it has them: a quarter of the time for 100 MiB, a tenth to give it back."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without them
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory
