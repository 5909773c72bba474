"""Cutting a byte stream into frames: a 4-byte big-endian length, then that many bytes.

For connections that we open, and for tests; the loop cuts what it accepts by itself (`dataplane.network`). Bytes arrive
in pieces of any size; a frame leaves as soon as its last byte is here. A frame of no bytes is a frame.
"""

from __future__ import annotations

import struct

from dataplane.protocol.primitives import Buffer

_SIZE = struct.Struct(">i")


class FrameError(Exception):
    """A length that cannot be one. The stream cannot be followed any further; the connection is closed."""


class FrameSplitter:
    """The frames of one stream. Memory is bounded by `max_bytes`, since nothing is stored beyond one whole frame.

    After a FrameError it refuses everything.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._pending = bytearray()
        self._error: str | None = None

    def feed(self, data: Buffer) -> list[bytes]:
        """The frames that `data` completes, without their lengths. Raises FrameError.

        Frames that stood before a wrong length in the same piece are lost: the connection ends anyway.
        """
        if self._error is not None:
            raise FrameError(self._error)
        self._pending += data
        frames: list[bytes] = []
        position = 0
        while (size := self._size_at(position)) is not None and len(self._pending) >= position + 4 + size:
            frames.append(bytes(memoryview(self._pending)[position + 4 : position + 4 + size]))
            position += 4 + size
        if position:
            del self._pending[:position]
        return frames

    def pending_bytes(self) -> int:
        """Bytes of a frame that is not complete."""
        return len(self._pending)

    def _size_at(self, position: int) -> int | None:
        if len(self._pending) < position + 4:
            return None
        (size,) = _SIZE.unpack_from(self._pending, position)
        if 0 <= size <= self._max_bytes:
            return int(size)
        self._error = f"a frame of {size} bytes; at most {self._max_bytes} are allowed"
        self._pending.clear()
        raise FrameError(self._error)
