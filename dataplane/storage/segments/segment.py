"""One segment of a log: finding in its file what is asked for, with the cheapest means that will do.

    tail    the last few hundred batches appended, in arrays: what followers and caught-up consumers ask for
    index   an entry about every 4 KiB, searched by bisection
    walk    reading headers one after the other, from an index entry on

Reads are always whole batches. An entry is used only after the header that it points at was seen to be the one it names;
where it is not, the index is built again from the log.

A segment that nobody uses is this one object: its file is opened, its indexes are mapped and its youngest timestamp is
looked up when they are needed, and `release` gives all of it back (`descriptors` says when).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import chain
from typing import TYPE_CHECKING

from dataplane.storage.files import FileSlice
from dataplane.storage.segments import index_files
from dataplane.storage.segments.batch_file import last_boundary, walk
from dataplane.storage.segments.indexed_file import IndexedFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dataplane.doors import Files
    from dataplane.records.header import BatchHeader
    from dataplane.storage.segments.descriptors import Descriptors


class Segment(IndexedFile):
    """One file of batches with its indexes: finds offsets and times in it."""

    __slots__ = ("_descriptors",)

    def __init__(self, files: Files, directory: str, base_offset: int, descriptors: Descriptors | None = None) -> None:
        super().__init__(files, directory, base_offset)
        self._descriptors = descriptors

    def position_of(self, offset: int) -> int:
        """Where the first batch with a record at or after `offset` begins; the size when there is none."""
        if offset >= self.tail_start:
            found = bisect_left(self._tail_lasts, offset)
            return self._tail_positions[found] if found < len(self._tail_lasts) else self.size
        for header, position in self._walk_from_index(offset):
            if header.last_offset >= offset:
                return position
        return self.size

    def _walk_from_index(self, offset: int) -> Iterator[tuple[BatchHeader, int]]:
        base, start = self.index.entry_at(offset - self.base_offset)
        headers = walk(self.file, start, self.size)
        if start:
            first = next(headers, None)
            if first is not None and first[0].base_offset == self.base_offset + base:
                return chain((first,), headers)
            # The file passed for an index of this log, and is not: build it from the log.
            start = self._build_index().entry_at(offset - self.base_offset)[1]
            return walk(self.file, start, self.size)
        return headers

    def slice(self, offset: int, bound: int | None, max_bytes: int, *, at_least_one: bool) -> FileSlice | None:
        """Whole batches from the one with `offset` on, none with a record at or after `bound` (None: all)."""
        start = self.position_of(offset)
        end = self.size if bound is None else self.position_of(bound)
        if end - start > max_bytes:
            end = self._boundary_within(start, start + max_bytes, at_least_one=at_least_one)
        return FileSlice(self.file, start, end - start) if end > start else None

    def holds(self, found: FileSlice) -> bool:
        """Whether a slice is of this file."""
        return found.file is self._file

    def offset_at(self, position: int) -> int:
        """The first offset of the batch that begins at this boundary."""
        return int.from_bytes(self.file.read(position, 8))

    def _boundary_within(self, start: int, limit: int, *, at_least_one: bool) -> int:
        """The last boundary up to `limit`; if that is `start`, the end of the first batch, or `start`."""
        positions = self._tail_positions
        if positions and limit >= positions[0]:
            found = bisect_right(positions, limit)
            boundary = positions[found - 1]
            following = positions[found] if found < len(positions) else self.size
        else:
            boundary = self._indexed_boundary(start, limit)
            following = 0
        if boundary > start:
            return boundary
        if start == boundary and following:
            return following if at_least_one else start
        return last_boundary(self.file, start, limit, self.size, at_least_one=at_least_one)

    def _indexed_boundary(self, start: int, limit: int) -> int:
        base, boundary = self.index.entry_before(limit)
        if boundary > start and self.file.read(boundary, 8) != (self.base_offset + base).to_bytes(8):
            boundary = self._build_index().entry_before(limit)[1]
        return boundary

    def position_for_time(self, timestamp: int) -> int:
        """A boundary before which no record is as young as `timestamp`."""
        entry = self.index.time_before(timestamp)
        if not index_files.has_time(self.index, entry, self):
            entry = self._build_index().time_before(timestamp)
        return self.position_of(self.base_offset + entry[1])

    # --- descriptors --------------------------------------------------------------------------------------------------

    def _opened(self) -> None:
        if self._descriptors is not None:
            self._descriptors.opened(self)

    def release(self) -> None:
        """Give memory and descriptors back, as far as the files have it: all comes again when needed."""
        self._file = None
        self.forget_index()
        if self._index is not None:
            self._index.let_go()

    def close(self) -> None:
        """Let go of the file. It is opened again when it is needed again."""
        if self._descriptors is not None:
            self._descriptors.closed(self)
        file = self._file
        self.release()
        if file is not None:
            file.close()
