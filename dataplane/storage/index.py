"""The sparse indexes of one segment: where to begin looking for an offset, or for a time.

    .index      (relative offset int32, position int32): a batch that begins with this offset is at this position
    .timeindex  (timestamp int64, relative offset int32): up to this offset nothing is younger than this timestamp

Kafka's formats, big-endian, relative to the segment's base offset, both columns of both files growing. One entry about
every `index.interval.bytes`, so a look-up is a binary search and a walk over a few headers.

While a segment is in use its indexes are four arrays (12 to 20 bytes per entry); the files are written when it is
sealed or closed. The log is the truth: an index whose file is missing or does not fit is built again from the headers.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right

_SWAP = sys.byteorder == "little"


class SparseIndex:
    """Both indexes of a segment."""

    __slots__ = ("offsets", "positions", "time_offsets", "timestamps")

    def __init__(self) -> None:
        self.offsets = array("i")
        self.positions = array("i")
        self.timestamps = array("q")
        self.time_offsets = array("i")

    def add(self, relative_offset: int, position: int, timestamp: int, time_offset: int) -> None:
        """A batch begins here, and nothing up to `time_offset` is younger than `timestamp`. All grow, or stay."""
        self.offsets.append(relative_offset)
        self.positions.append(position)
        timestamps = self.timestamps
        if not timestamps or timestamp > timestamps[-1]:
            timestamps.append(timestamp)
            self.time_offsets.append(time_offset)

    def add_time(self, timestamp: int, relative_offset: int) -> None:
        """Nothing up to here is younger. Ignored unless it is more than was said before."""
        if not self.timestamps or timestamp > self.timestamps[-1]:
            self.timestamps.append(timestamp)
            self.time_offsets.append(relative_offset)

    def entry_at(self, relative_offset: int) -> tuple[int, int]:
        """(relative offset, position) of a batch that begins at or before the offset; (0, 0) is no entry."""
        found = bisect_right(self.offsets, relative_offset)
        return (self.offsets[found - 1], self.positions[found - 1]) if found else (0, 0)

    def boundary_at(self, position: int) -> int:
        """The last known batch boundary at or before the position."""
        found = bisect_right(self.positions, position)
        return self.positions[found - 1] if found else 0

    def offset_before(self, timestamp: int) -> int:
        """A relative offset before which nothing is as young as `timestamp`."""
        found = bisect_left(self.timestamps, timestamp)
        return self.time_offsets[found - 1] if found else 0

    def last_position(self) -> int:
        """Of the last entry; 0 without entries."""
        return self.positions[-1] if self.positions else 0

    def last_offset(self) -> int:
        """Relative, of the last entry; 0 without entries."""
        return self.offsets[-1] if self.offsets else 0

    def cut(self, position: int) -> None:
        """Forget what lies at or behind the position."""
        keep = bisect_left(self.positions, position)
        del self.offsets[keep:], self.positions[keep:]
        keep = bisect_left(self.time_offsets, self.last_offset())
        del self.timestamps[keep:], self.time_offsets[keep:]

    def pack(self) -> tuple[bytes, bytes]:
        """The contents of `.index` and `.timeindex`."""
        return _interleave(self.offsets, self.positions), _pack_times(self.timestamps, self.time_offsets)

    @classmethod
    def unpack(cls, offsets: bytes, times: bytes, size: int) -> SparseIndex | None:
        """From the two files of a segment of `size` bytes; None when they cannot belong to it."""
        if len(offsets) % 8 or len(times) % 12:
            return None
        index = cls()
        columns = _big_endian(offsets)
        index.offsets, index.positions = columns[0::2], columns[1::2]
        words = array("i", times)
        stamps = array("i", bytes(len(times) // 12 * 8))
        stamps[0::2], stamps[1::2] = words[0::3], words[1::3]
        index.timestamps = _swapped(array("q", stamps.tobytes()))
        index.time_offsets = _swapped(words[2::3])
        fits = (
            _grows(index.offsets)
            and _grows(index.positions)
            and _grows(index.timestamps)
            and _grows(index.time_offsets)
            and index.last_position() < max(size, 1)
        )
        return index if fits else None


def _grows(column: array[int]) -> bool:
    return (not column or column[0] >= 0) and all(map(int.__lt__, column, column[1:]))


def _swapped(column: array[int]) -> array[int]:
    if _SWAP:
        column.byteswap()
    return column


def _big_endian(data: bytes) -> array[int]:
    return _swapped(array("i", data))


def _interleave(first: array[int], second: array[int]) -> bytes:
    out = array("i", bytes(8 * len(first)))
    out[0::2], out[1::2] = first, second
    return _swapped(out).tobytes()


def _pack_times(timestamps: array[int], offsets: array[int]) -> bytes:
    stamps = array("i", _swapped(timestamps[:]).tobytes())
    out = array("i", bytes(12 * len(timestamps)))
    out[0::3], out[1::3] = stamps[0::2], stamps[1::2]
    out[2::3] = _swapped(offsets[:])
    return out.tobytes()
