"""One segment of a log: a file of batches whose first offset is its name, with its sparse indexes beside it.

    00000000000000001234.log   .index   .timeindex

Positions are bytes from the start of the file; a *boundary* is a position where a batch begins or the last one ends.
Reads are always whole batches. To find boundaries a segment has three means, the cheapest first:

    tail    the last few hundred batches appended, in arrays: what followers and caught-up consumers ask for
    index   an entry about every 4 KiB
    walk    reading headers one after the other, from an index entry on

Nothing below grows with the segment's size except the indexes, which are searched by bisection.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from dataplane.records.header import HEADER_SIZE, MAGIC, BatchHeader, read_header
from dataplane.storage.files import FileSlice
from dataplane.storage.index import SparseIndex

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dataplane.doors import Buffer, File, Files

LOG, INDEX, TIME_INDEX = ".log", ".index", ".timeindex"
NO_TIMESTAMP = -1

_LOOKUP_BYTES = 4096
_SCAN_BYTES = 64 * 1024
_REBUILT_INTERVAL = 4096
_TAIL_KEPT, _TAIL_MAX = 256, 512

Note = tuple[int, int, int, int]
"""What appending a batch must remember: base offset, last offset, size, max timestamp."""


def note_of(header: BatchHeader) -> Note:
    """The note of a batch whose header holds its final offset."""
    return header.base_offset, header.last_offset, header.size, header.max_timestamp


def segment_name(base_offset: int) -> str:
    """The file names' common part."""
    return f"{base_offset:020d}"


def walk(file: File, position: int, end: int, chunk_bytes: int = _LOOKUP_BYTES) -> Iterator[tuple[BatchHeader, int]]:
    """Headers with their positions, until `end` or the first that cannot be a header. Content is not checked."""
    chunk, chunk_at = b"", position
    while position + HEADER_SIZE <= end:
        at = position - chunk_at
        if at + HEADER_SIZE > len(chunk):
            chunk, chunk_at, at = file.read(position, chunk_bytes), position, 0
            if len(chunk) < HEADER_SIZE:
                return
        header = read_header(chunk, at)
        size = header.size
        if header.magic != MAGIC or size < HEADER_SIZE or position + size > end:
            return
        yield header, position
        position += size


class Segment:
    """One `.log` file and what is known of it. `size` counts only bytes that whole batches fill."""

    __slots__ = (
        "_file",
        "_files",
        "_index",
        "_since_entry",
        "_tail_lasts",
        "_tail_positions",
        "_tail_start",
        "base_offset",
        "max_timestamp",
        "max_timestamp_offset",
        "path",
        "size",
    )

    def __init__(self, files: Files, directory: str, base_offset: int) -> None:
        self._files = files
        self.path = f"{directory}/{segment_name(base_offset)}"
        self.base_offset = base_offset
        self.size = 0
        self._file: File | None = None
        self._index: SparseIndex | None = None
        self.clear()

    @property
    def file(self) -> File:
        """The log file, opened when first needed. Raises OSError."""
        if self._file is None:
            self._file = self._files.open(self.path + LOG, create=True)
        return self._file

    def clear(self) -> None:
        """Know nothing of the content: before the first batch, and before `note` is told all of it again."""
        self.size = 0
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = self.base_offset
        self._index = SparseIndex()
        self._since_entry = 0
        self._tail_start = self.base_offset
        self._tail_lasts = array("q")
        self._tail_positions = array("q")

    # --- writing ------------------------------------------------------------------------------------------------------

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Write; `note` has to follow. Raises OSError."""
        (self._file or self.file).append(buffers)

    def note(self, notes: Sequence[Note], index_interval: int) -> None:
        """Batches are in the file, directly behind what was noted before."""
        position = self.size
        since = self._since_entry
        lasts, positions = self._tail_lasts, self._tail_positions
        for base, last, size, timestamp in notes:
            if timestamp > self.max_timestamp:
                self.max_timestamp, self.max_timestamp_offset = timestamp, last
            if since > index_interval:
                time_offset = self.max_timestamp_offset - self.base_offset
                self.index.add(base - self.base_offset, position, self.max_timestamp, time_offset)
                since = 0
            lasts.append(last)
            positions.append(position)
            position += size
            since += size
        self.size = position
        self._since_entry = since
        if len(lasts) > _TAIL_MAX:
            self._trim_tail(_TAIL_KEPT)

    def _trim_tail(self, keep: int) -> None:
        drop = len(self._tail_lasts) - keep
        if drop > 0:
            self._tail_start = self._tail_lasts[drop - 1] + 1
            del self._tail_lasts[:drop], self._tail_positions[:drop]

    def truncate(self, position: int) -> None:
        """Cut at a boundary, on disk when this returns. Raises OSError."""
        index = self.index
        self.remove_indexes()
        self.file.truncate(position)
        self.file.sync()
        index.cut(position)
        self._resume(index)
        for header, _ in self.headers(self.size, position):
            self.note((note_of(header),), _REBUILT_INTERVAL)

    def _resume(self, index: SparseIndex) -> None:
        """As it was when the last entry of `index` was about to be noted."""
        self.clear()
        self._index = index
        self.size = index.last_position()
        self._tail_start = self.base_offset + index.last_offset()
        if index.timestamps:
            self.max_timestamp = index.timestamps[-1]
            self.max_timestamp_offset = self.base_offset + index.time_offsets[-1]

    # --- reading ------------------------------------------------------------------------------------------------------

    def position_of(self, offset: int) -> int:
        """Where the first batch with a record at or after `offset` begins; the size when there is none."""
        if offset >= self._tail_start:
            found = bisect_left(self._tail_lasts, offset)
            return self._tail_positions[found] if found < len(self._tail_lasts) else self.size
        for header, position in self._walk_from_index(offset):
            if header.last_offset >= offset:
                return position
        return self.size

    def _walk_from_index(self, offset: int) -> Iterator[tuple[BatchHeader, int]]:
        base, start = self.index.entry_at(offset - self.base_offset)
        if start:
            first = next(walk(self.file, start, self.size), None)
            if first is None or first[0].base_offset != self.base_offset + base:
                # The file passed for an index of this log, and is not: build it from the log.
                start = self._build_index().entry_at(offset - self.base_offset)[1]
        return walk(self.file, start, self.size)

    def slice(self, offset: int, bound: int | None, max_bytes: int, *, at_least_one: bool) -> FileSlice | None:
        """Whole batches from the one with `offset` on, none with a record at or after `bound` (None: all)."""
        start = self.position_of(offset)
        end = self.size if bound is None else self.position_of(bound)
        if end - start > max_bytes:
            end = self._boundary_within(start, start + max_bytes, at_least_one=at_least_one)
        return FileSlice(self.file, start, end - start) if end > start else None

    def _boundary_within(self, start: int, limit: int, *, at_least_one: bool) -> int:
        """The last boundary up to `limit`; if that is `start`, the end of the first batch, or `start`."""
        positions = self._tail_positions
        if positions and limit >= positions[0]:
            found = bisect_right(positions, limit)
            boundary = positions[found - 1]
            following = positions[found] if found < len(positions) else self.size
        else:
            boundary = self.index.boundary_at(limit)
            following = 0
        if boundary > start:
            return boundary
        if start == boundary and following:
            return following if at_least_one else start
        return self._walked_boundary(start, limit, at_least_one=at_least_one)

    def _walked_boundary(self, start: int, limit: int, *, at_least_one: bool) -> int:
        boundary = start
        for header, position in walk(self.file, start, self.size):
            if position + header.size > limit and (position > start or not at_least_one):
                break
            boundary = position + header.size
        return boundary

    def headers(self, position: int = 0, end: int | None = None) -> Iterator[tuple[BatchHeader, int]]:
        """All headers from a boundary on, up to `end` or what is the size now."""
        return walk(self.file, position, self.size if end is None else end, _SCAN_BYTES)

    def position_for_time(self, timestamp: int) -> int:
        """A boundary before which no record is as young as `timestamp`."""
        return self.position_of(self.base_offset + self.index.offset_before(timestamp))

    # --- indexes ------------------------------------------------------------------------------------------------------

    @property
    def index(self) -> SparseIndex:
        """The indexes, read from their files or built from the log when they are not in memory."""
        if self._index is None:
            self._index = self._read_index() or self._build_index()
        return self._index

    def _read_index(self) -> SparseIndex | None:
        try:
            offsets, times = self._files.read_file(self.path + INDEX), self._files.read_file(self.path + TIME_INDEX)
        except FileNotFoundError:
            return None
        index = SparseIndex.unpack(offsets, times, self.size)
        if index is None or not offsets:
            return index
        for header, _ in walk(self.file, index.last_position(), self.size):
            return index if header.base_offset - self.base_offset == index.offsets[-1] else None
        return None

    def _build_index(self) -> SparseIndex:
        headers = self.headers()
        self.clear()
        for header, _ in headers:
            self.note((note_of(header),), _REBUILT_INTERVAL)
        self._trim_tail(0)
        assert self._index is not None
        return self._index

    def packed_indexes(self) -> list[tuple[str, bytes]]:
        """Path and content of the index files, with the youngest timestamp as the last entry of the time index."""
        index = self.index
        if self.max_timestamp != NO_TIMESTAMP:
            index.add_time(self.max_timestamp, self.max_timestamp_offset - self.base_offset)
        offsets, times = index.pack()
        return [(self.path + INDEX, offsets), (self.path + TIME_INDEX, times)]

    def forget_index(self) -> None:
        """Give the memory back; the files have what they need."""
        self._index = None
        self._trim_tail(0)

    def release(self) -> None:
        """Give memory and descriptor back: both come again when needed."""
        self.forget_index()
        self._file = None

    def remove_indexes(self) -> None:
        """Remove the files: the log is about to change under them."""
        self._files.remove(self.path + INDEX)
        self._files.remove(self.path + TIME_INDEX)

    def close(self) -> None:
        """Let go of the file. It is opened again when it is needed again."""
        if self._file is not None:
            self._file.close()
            self._file = None
