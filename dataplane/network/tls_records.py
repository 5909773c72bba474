"""Where records of TLS end in what comes from the wire: only their heads are read, which are in the clear."""

from __future__ import annotations

from typing import NamedTuple

_HEAD_BYTES = 5  # kind, version, and in two bytes how many follow


class Some(NamedTuple):
    """A part of what has come."""

    size: int  # bytes
    ended: int  # records that end in it


class RecordEnds:
    """Of one direction of a connection. What is no TLS has ends too: whoever decrypts it finds out."""

    __slots__ = ("_head", "_missing")

    def __init__(self) -> None:
        self._head = b""  # of a record whose head is not here whole
        self._missing = 0  # of a record whose head was here

    def next(self, data: memoryview, most: int) -> Some:
        """What of `data`, which is behind what was asked about before, holds the ends of `most` records, or all of it."""
        position = ended = 0
        size = len(data)
        while position < size and ended < most:
            if self._missing:
                step = min(self._missing, size - position)
                position += step
                self._missing -= step
                ended += not self._missing
                continue
            step = min(_HEAD_BYTES - len(self._head), size - position)
            head = self._head + data[position : position + step]
            position += step
            if len(head) < _HEAD_BYTES:
                self._head = head
            else:
                self._head, self._missing = b"", head[3] << 8 | head[4]
                ended += not self._missing
        return Some(position, ended)
