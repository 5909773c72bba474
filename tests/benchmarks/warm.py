"""Warm pages: memory that the kernel has touched before and does not give back to the virtual machine's host.

Appending to pages that were never touched costs about 4 CPU-s/GB on a virtual machine whose freed memory goes back to its
host, whoever appends. Free memory goes back in large blocks only; so a file is written, and every second 64 KiB of it is
punched out: what becomes free is warm, and its neighbours, still in use, keep it from becoming a large block.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_PIECE = 64 * 2**10
_KEEP_SIZE, _PUNCH_HOLE = 1, 2


class WarmPages:
    """A file of twice the wanted size, half of it holes."""

    def __init__(self, directory: Path, size: int) -> None:
        self._path = directory / "warm"
        self._size = size

    def write(self) -> None:
        """Write and punch; the file stays until its directory is removed."""
        library = ctypes.CDLL(None, use_errno=True)
        library.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
        fd = os.open(self._path, os.O_CREAT | os.O_RDWR)
        try:
            block = bytes(2**20)
            for _ in range(2 * self._size // len(block)):
                os.write(fd, block)
            for start in range(0, 2 * self._size, 2 * _PIECE):
                if library.fallocate(fd, _KEEP_SIZE | _PUNCH_HOLE, start, _PIECE):
                    raise OSError(ctypes.get_errno(), "cannot punch holes here")
        finally:
            os.close(fd)
