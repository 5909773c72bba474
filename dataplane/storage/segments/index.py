"""The sparse indexes of one segment: where to begin looking for an offset, or for a time.

    .index      (relative offset int32, position int32): a batch that begins with this offset is at this position
    .timeindex  (timestamp int64, relative offset int32): up to this offset nothing is younger than this timestamp

Kafka's formats, big-endian, relative to the segment's base offset, both columns of both files growing. One entry about
every `index.interval.bytes`, so a look-up is a binary search and a walk over a few headers.

An index has two parts. What the files hold is *stored*: memory mapped from them, searched in place, so that opening the
index of a segment costs the same whatever its size. What came since is in four *arrays* (12 to 20 bytes per entry),
which the files take over when the segment is sealed, closed or left idle. They are packed for that block by block while
they grow: a segment of 1 GiB has a quarter of a million entries, too many for one turn. (Rejected: the active segment's
index mapped and preallocated, as Kafka does: see docs/subsystems/storage.md.)

The log is the truth. Here is judged what the files alone show (`stored`); whoever uses an entry compares it with the
header it points at, and has the index built again where they differ.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataplane.doors import Buffer

ENTRY_BYTES, TIME_ENTRY_BYTES = 8, 12

_SWAP = sys.byteorder == "little"
_entry = struct.Struct(">ii").unpack_from
_int = struct.Struct(">i").unpack_from
_time_entry = struct.Struct(">qi").unpack_from
_long = struct.Struct(">q").unpack_from
_NOTHING = memoryview(b"")
_BLOCK = 1024  # entries packed at a time


def entries_that_fit(index_bytes: int) -> int:
    """In both files of `segment.index.bytes`; the last time is written when the segment ends."""
    return max(0, min(index_bytes // ENTRY_BYTES, index_bytes // TIME_ENTRY_BYTES - 1))


class SparseIndex:
    """Both indexes of a segment."""

    __slots__ = (
        "_packed",
        "_packed_times",
        "_stored",
        "_stored_times",
        "offsets",
        "positions",
        "time_offsets",
        "timestamps",
    )

    def __init__(self) -> None:
        self._stored = self._stored_times = _NOTHING
        self.offsets = array("i")
        self.positions = array("i")
        self.timestamps = array("q")
        self.time_offsets = array("i")
        self._packed, self._packed_times = bytearray(), bytearray()  # of the first entries in the arrays

    # --- growing ------------------------------------------------------------------------------------------------------

    def add(self, relative_offset: int, position: int, timestamp: int, time_offset: int) -> None:
        """A batch begins here, and nothing up to `time_offset` is younger than `timestamp`. All grow, or stay."""
        self.offsets.append(relative_offset)
        self.positions.append(position)
        timestamps = self.timestamps
        if timestamps:
            if timestamp > timestamps[-1]:
                timestamps.append(timestamp)
                self.time_offsets.append(time_offset)
        else:
            self.add_time(timestamp, time_offset)
        if not len(self.offsets) % _BLOCK:
            self._pack_ahead()

    def _pack_ahead(self) -> None:
        done = len(self._packed) // ENTRY_BYTES
        self._packed += _interleave(self.offsets[done:], self.positions[done:])
        done = len(self._packed_times) // TIME_ENTRY_BYTES
        self._packed_times += _pack_times(self.timestamps[done:], self.time_offsets[done:])

    def add_time(self, timestamp: int, relative_offset: int) -> None:
        """Nothing up to here is younger. Ignored unless it is more than was said before."""
        if timestamp > self.last_time()[0]:
            self.timestamps.append(timestamp)
            self.time_offsets.append(relative_offset)

    def is_full(self, index_bytes: int) -> bool:
        """Whether the files would be larger than that: `segment.index.bytes`, where Kafka begins a new segment."""
        times = len(self._stored_times) // TIME_ENTRY_BYTES + len(self.timestamps)
        return self.entries() >= index_bytes // ENTRY_BYTES or times >= index_bytes // TIME_ENTRY_BYTES - 1

    def cut(self, position: int) -> None:
        """Forget what lies at or behind the position."""
        keep = bisect_left(self.positions, position)
        del self.offsets[keep:], self.positions[keep:], self._packed[keep * ENTRY_BYTES :]
        if not keep:
            count = bisect_left(range(len(self._stored) // ENTRY_BYTES), position, key=self._stored_position)
            self._stored = self._stored[: count * ENTRY_BYTES]
        last = self.last_offset()
        keep = bisect_left(self.time_offsets, last)
        del self.timestamps[keep:], self.time_offsets[keep:], self._packed_times[keep * TIME_ENTRY_BYTES :]
        if not keep:
            count = bisect_left(range(len(self._stored_times) // TIME_ENTRY_BYTES), last, key=self._stored_time_offset)
            self._stored_times = self._stored_times[: count * TIME_ENTRY_BYTES]

    # --- looking ------------------------------------------------------------------------------------------------------

    def entries(self) -> int:
        """How many offsets are in it."""
        return len(self._stored) // ENTRY_BYTES + len(self.offsets)

    def entry_at(self, relative_offset: int) -> tuple[int, int]:
        """(relative offset, position) of a batch that begins at or before the offset; (0, 0) is no entry."""
        offsets = self.offsets
        if offsets and offsets[0] <= relative_offset:
            found = bisect_right(offsets, relative_offset) - 1
            return offsets[found], self.positions[found]
        return self._stored_entry(
            bisect_right(range(len(self._stored) // ENTRY_BYTES), relative_offset, key=self._stored_offset)
        )

    def entry_before(self, position: int) -> tuple[int, int]:
        """(relative offset, position) of the last batch known to begin at or before the position; (0, 0) is none."""
        positions = self.positions
        if positions and positions[0] <= position:
            found = bisect_right(positions, position) - 1
            return self.offsets[found], positions[found]
        return self._stored_entry(
            bisect_right(range(len(self._stored) // ENTRY_BYTES), position, key=self._stored_position)
        )

    def time_before(self, timestamp: int) -> tuple[int, int]:
        """(timestamp, relative offset) of the last entry that is older; up to there nothing is as young. (-1, 0): none."""
        timestamps = self.timestamps
        if timestamps and timestamps[0] < timestamp:
            found = bisect_left(timestamps, timestamp) - 1
            return timestamps[found], self.time_offsets[found]
        stored = self._stored_times
        return self._stored_time(
            bisect_left(range(len(stored) // TIME_ENTRY_BYTES), timestamp, key=self._stored_timestamp)
        )

    def last_position(self) -> int:
        """Of the last entry; 0 without entries."""
        return self.positions[-1] if self.positions else self._stored_entry(len(self._stored) // ENTRY_BYTES)[1]

    def last_offset(self) -> int:
        """Relative, of the last entry; 0 without entries."""
        return self.offsets[-1] if self.offsets else self._stored_entry(len(self._stored) // ENTRY_BYTES)[0]

    def last_time(self) -> tuple[int, int]:
        """(timestamp, relative offset) of the last entry; (-1, 0) without entries."""
        if self.timestamps:
            return self.timestamps[-1], self.time_offsets[-1]
        return self._stored_time(len(self._stored_times) // TIME_ENTRY_BYTES)

    def _stored_time(self, number: int) -> tuple[int, int]:
        return _time_entry(self._stored_times, (number - 1) * TIME_ENTRY_BYTES) if number else (-1, 0)

    def _stored_entry(self, number: int) -> tuple[int, int]:
        return _entry(self._stored, (number - 1) * ENTRY_BYTES) if number else (0, 0)

    def _stored_offset(self, number: int) -> int:
        return _int(self._stored, number * ENTRY_BYTES)[0]  # type: ignore[no-any-return]

    def _stored_position(self, number: int) -> int:
        return _int(self._stored, number * ENTRY_BYTES + 4)[0]  # type: ignore[no-any-return]

    def _stored_timestamp(self, number: int) -> int:
        return _long(self._stored_times, number * TIME_ENTRY_BYTES)[0]  # type: ignore[no-any-return]

    def _stored_time_offset(self, number: int) -> int:
        return _int(self._stored_times, number * TIME_ENTRY_BYTES + 8)[0]  # type: ignore[no-any-return]

    # --- files --------------------------------------------------------------------------------------------------------

    def let_go(self) -> None:
        """Keep no mapping: what is stored is copied. For an index that cannot be dropped yet."""
        self._stored, self._stored_times = memoryview(bytes(self._stored)), memoryview(bytes(self._stored_times))

    def pack(self) -> tuple[bytes, bytes]:
        """The contents of `.index` and `.timeindex`."""
        self._pack_ahead()
        return b"".join((self._stored, self._packed)), b"".join((self._stored_times, self._packed_times))

    @classmethod
    def stored(cls, offsets: Buffer, times: Buffer, size: int) -> SparseIndex | None:
        """Over the two files of a segment of `size` bytes; None when they cannot belong to it.

        Looks at their lengths and at the first and last entries only: a file that Kafka preallocated and did not trim,
        one whose end is zeros, and one that is cut within an entry are recognised by that.
        """
        if len(offsets) % ENTRY_BYTES or len(times) % TIME_ENTRY_BYTES:
            return None
        index = cls()
        index._stored, index._stored_times = memoryview(offsets), memoryview(times)
        count, time_count = len(offsets) // ENTRY_BYTES, len(times) // TIME_ENTRY_BYTES
        if count:
            first, last = _entry(offsets, 0), _entry(offsets, len(offsets) - ENTRY_BYTES)
            if not (_grow(first, last, count) and last[1] < size):
                return None
        if time_count and not _grow(
            _time_entry(times, 0), _time_entry(times, len(times) - TIME_ENTRY_BYTES), time_count
        ):
            return None
        return index


def last_time(first: bytes, last: bytes, count: int) -> tuple[int, int] | None:
    """(timestamp, relative offset) of the last of `count` entries of a time index; None where they cannot be its ends."""
    if not count:
        return None
    found: tuple[int, int] = _time_entry(last)
    return found if _grow(_time_entry(first), found, count) else None


def _grow(first: tuple[int, ...], last: tuple[int, ...], count: int) -> bool:
    """Whether two columns of `count` values, all different and none negative, can begin and end so."""
    return all(a >= 0 and b >= a + count - 1 for a, b in zip(first, last, strict=True))


def _swapped(column: array[int]) -> array[int]:
    if _SWAP:
        column.byteswap()
    return column


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
