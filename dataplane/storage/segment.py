"""One segment of a log: a file of batches whose first offset is its name, with its sparse indexes beside it.

    00000000000000001234.log   .index   .timeindex

Positions are bytes from the start of the file; a *boundary* is a position where a batch begins or the last one ends.
Reads are always whole batches. To find boundaries a segment has three means, the cheapest first:

    tail    the last few hundred batches appended, in arrays: what followers and caught-up consumers ask for
    index   an entry about every 4 KiB
    walk    reading headers one after the other, from an index entry on

Nothing below grows with the segment's size except the indexes, which are searched by bisection. A segment that nobody
uses is this one object: its file is opened, its indexes are mapped and its youngest timestamp is looked up when they are
needed, and `release` gives all of it back (`descriptors` says when).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import chain
from typing import TYPE_CHECKING

from dataplane.records.header import HEADER_SIZE, MAGIC, BatchHeader, read_header
from dataplane.storage.files import FileSlice
from dataplane.storage.index import ENTRY_BYTES, TIME_ENTRY_BYTES, SparseIndex, last_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dataplane.doors import Buffer, File, Files
    from dataplane.storage.descriptors import Descriptors

LOG, INDEX, TIME_INDEX = ".log", ".index", ".timeindex"
NO_TIMESTAMP = -1

_LOOKUP_BYTES = 4096
_SCAN_BYTES = 64 * 1024
_REBUILT_INTERVAL = 4096
_TAIL_KEPT, _TAIL_MAX = 256, 512
_NO_TAIL = array("q")  # of all segments without one; nobody appends to it
_SURELY_INDEXED_BYTES = 2**20  # a larger segment without any entry has lost its index

Note = tuple[int, int, int, int]
"""What appending a batch must remember: base offset, last offset, size, max timestamp."""


def note_of(header: BatchHeader) -> Note:
    """The note of a batch whose header holds its final offset. One that compaction has emptied has no time."""
    return header.base_offset, header.last_offset, header.size, header.max_timestamp if header.count else NO_TIMESTAMP


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


def _none_is_younger(headers: Iterable[BatchHeader], timestamp: int) -> bool:
    return all(note_of(header)[3] <= timestamp for header in headers)


class Segment:
    """One `.log` file and what is known of it. `size` counts only bytes that whole batches fill."""

    __slots__ = (
        "_descriptors",
        "_directory",
        "_file",
        "_files",
        "_index",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_saved_size",
        "_since_entry",
        "_tail_lasts",
        "_tail_positions",
        "_tail_start",
        "_void_saves",
        "base_offset",
        "size",
        "touched",
    )

    def __init__(self, files: Files, directory: str, base_offset: int, descriptors: Descriptors | None = None) -> None:
        self._files, self._descriptors = files, descriptors
        self._directory = directory
        self.base_offset = base_offset
        self.size = 0
        self.touched = False  # since `descriptors` last looked
        self._file: File | None = None
        self._index: SparseIndex | None = None
        self._void_saves = 0  # what was packed before this many changes under the files must not be written any more
        self._saved_size = 0  # of the segment, when its indexes were last in their files; -1: that cannot be said
        self.clear()

    @property
    def path(self) -> str:
        """The files' common part."""
        return f"{self._directory}/{self.base_offset:020d}"

    @property
    def file(self) -> File:
        """The log file, opened when first needed. Raises OSError."""
        self.touched = True
        if self._file is None:
            self._file = self._files.open(self.path + LOG, create=True)
            self._opened()
        return self._file

    def size_on_disk(self) -> int:
        """Bytes in the log file. Raises OSError."""
        return self._files.size(self.path + LOG)

    def _opened(self) -> None:
        if self._descriptors is not None:
            self._descriptors.opened(self)

    def clear(self) -> None:
        """Know nothing of the content: before the first batch, and before `note` is told all of it again."""
        self.size = 0
        self._max_timestamp: int | None = NO_TIMESTAMP
        self._max_timestamp_offset = self.base_offset
        self._index = SparseIndex()
        self._since_entry = self._saved_size = 0
        self._tail_start = self.base_offset
        self._tail_lasts = self._tail_positions = _NO_TAIL

    def trust(self, size: int) -> None:
        """The file holds whole batches up to here, and the indexes fit: after an orderly stop, or when it was sealed."""
        self.clear()
        self._index = None
        self.size = self._saved_size = size
        if size:
            self._max_timestamp = None
            self._tail_start = 2**63  # nothing is in the tail

    # --- writing ------------------------------------------------------------------------------------------------------

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Write; `note` has to follow. Raises OSError."""
        self.touched = True
        (self._file or self.file).append(buffers)

    def note(self, notes: Sequence[Note], index_interval: int) -> None:
        """Batches are in the file, directly behind what was noted before. Raises OSError."""
        if self._index is None:
            _ = self.index  # now and not in between: it may have to be built, and forgets the tail then
        position = self.size
        since = self._since_entry
        lasts, positions = self._tail_lasts, self._tail_positions
        if not lasts:
            lasts, positions = self._tail_lasts, self._tail_positions = array("q"), array("q")
            self._tail_start = notes[0][0] if position else self.base_offset
        youngest = self._max_timestamp
        if youngest is None:
            youngest = self.max_timestamp
        for base, last, size, timestamp in notes:
            if timestamp > youngest:
                youngest, self._max_timestamp_offset = timestamp, last
            if since > index_interval:
                self.index.add(
                    base - self.base_offset, position, youngest, self._max_timestamp_offset - self.base_offset
                )
                since = 0
            lasts.append(last)
            positions.append(position)
            position += size
            since += size
        self.size = position
        self._max_timestamp = youngest
        self._since_entry = since
        if len(lasts) > _TAIL_MAX:
            self._trim_tail(_TAIL_KEPT)

    def _trim_tail(self, keep: int) -> None:
        drop = len(self._tail_lasts) - keep
        if drop > 0:
            self._tail_start = self._tail_lasts[drop - 1] + 1
            if keep:
                del self._tail_lasts[:drop], self._tail_positions[:drop]
            else:
                self._tail_lasts = self._tail_positions = _NO_TAIL

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
        self._saved_size = -1

    def _resume(self, index: SparseIndex) -> None:
        """As it was when the last entry of `index` was about to be noted."""
        self.clear()
        self._index = index
        self.size = index.last_position()
        self._tail_start = self.base_offset + index.last_offset()
        self._know_youngest(*index.last_time())

    # --- reading ------------------------------------------------------------------------------------------------------

    @property
    def max_timestamp(self) -> int:
        """Of the youngest record; NO_TIMESTAMP when none has one. Raises OSError."""
        if self._max_timestamp is None:
            last = self._youngest_at_end()
            if last is None:
                _ = self.index
            else:
                self._know_youngest(*last)
            assert self._max_timestamp is not None
        return self._max_timestamp

    def youngest_ms(self) -> int:
        """What retention counts from: where no record has a time, when the file was last written. Raises OSError."""
        youngest = self.max_timestamp
        return youngest if youngest != NO_TIMESTAMP else self._files.modified_ms(self.path + LOG)

    def _youngest_at_end(self) -> tuple[int, int] | None:
        """Without mapping the index: retention asks every segment that is the oldest of its log. None: look there."""
        last = last_time(*self._ends_of(TIME_INDEX, TIME_ENTRY_BYTES))
        if last is None:
            return None
        tail = [header for header, _ in self.headers(self._last_stored_entry()[0])]
        is_there = any(self._is_time_of(last, header) for header in tail)
        return last if is_there and _none_is_younger(tail, last[0]) else None

    def _is_time_of(self, entry: tuple[int, int], header: BatchHeader) -> bool:
        return entry == (header.max_timestamp, header.last_offset - self.base_offset)

    def _last_stored_entry(self) -> tuple[int, int]:
        """Position and offset of the last batch in the index, likewise: every start asks the last segment of each log."""
        _, last, count = self._ends_of(INDEX, ENTRY_BYTES)
        if count:
            return int.from_bytes(last[4:]), self.base_offset + int.from_bytes(last[:4])
        if self.size <= _SURELY_INDEXED_BYTES:
            return 0, self.base_offset
        return self.index.last_position(), self.base_offset + self.index.last_offset()

    def _ends_of(self, suffix: str, width: int) -> tuple[bytes, bytes, int]:
        """First and last entry of an index file, and how many there are; 0 where it does not consist of entries."""
        try:
            file = self._files.open(self.path + suffix)
        except FileNotFoundError:
            return b"", b"", 0
        size = file.size()
        if not size or size % width:
            return b"", b"", 0
        last = file.read(size - width, width)
        return last if size == width else file.read(0, width), last, size // width

    def _know_youngest(self, timestamp: int, time_offset: int) -> None:
        self._max_timestamp, self._max_timestamp_offset = timestamp, self.base_offset + time_offset

    def first_timestamp(self) -> int:
        """The youngest of the first batch; NO_TIMESTAMP where there is none. Raises OSError."""
        for header, _ in walk(self.file, 0, self.size):
            return header.max_timestamp
        return NO_TIMESTAMP

    def next_offset(self) -> int | None:
        """The offset behind the last batch, found from the last index entry on; None where the end is torn."""
        start, expected = self._last_stored_entry()
        end, offset = start, -1
        for header, position in self.headers(start):
            if position == start and header.base_offset != expected:
                return None
            end, offset = position + header.size, header.next_offset
        if end != self.size:
            return None
        self._tail_start = offset
        self._since_entry = self.size - start
        return offset

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
        return self._walked_boundary(start, limit, at_least_one=at_least_one)

    def _indexed_boundary(self, start: int, limit: int) -> int:
        base, boundary = self.index.entry_before(limit)
        if boundary > start and self.file.read(boundary, 8) != (self.base_offset + base).to_bytes(8):
            boundary = self._build_index().entry_before(limit)[1]
        return boundary

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
        entry = self.index.time_before(timestamp)
        if not self._has_time(self.index, entry):
            entry = self._build_index().time_before(timestamp)
        return self.position_of(self.base_offset + entry[1])

    def _has_time(self, index: SparseIndex, entry: tuple[int, int]) -> bool:
        """Whether an entry of the time index is of the batch that it names."""
        timestamp, relative = entry
        if timestamp == NO_TIMESTAMP:
            return True
        for header, _ in walk(self.file, index.entry_at(relative)[1], self.size):
            if header.last_offset >= self.base_offset + relative:
                return self._is_time_of(entry, header)
        return False

    # --- indexes ------------------------------------------------------------------------------------------------------

    @property
    def index(self) -> SparseIndex:
        """The indexes, mapped from their files or built from the log when they are not in memory. Raises OSError."""
        if self._index is None:
            index = self._open_index() if self.size else SparseIndex()
            if index is None:
                return self._build_index()
            if self._max_timestamp is None:
                self._know_youngest(*index.last_time())
            self._index = index
        return self._index

    def _open_index(self) -> SparseIndex | None:
        try:
            offsets, times = self._files.view(self.path + INDEX), self._files.view(self.path + TIME_INDEX)
        except FileNotFoundError:
            return None
        index = SparseIndex.stored(offsets, times, self.size)
        if index is None:
            return None
        self._opened()
        if not times and self.first_timestamp() != NO_TIMESTAMP:
            return None
        if not offsets and self.size > _SURELY_INDEXED_BYTES:
            return None
        return index if self._agrees(index) else None

    def _agrees(self, index: SparseIndex) -> bool:
        """Whether the last entries are of the batches they name, and no batch behind them is younger.

        A time index that lost its end would hide the youngest records from look-ups, and have retention delete them.
        """
        tail = [header for header, _ in self.headers(index.last_position())]
        if index.entries() and not (tail and tail[0].base_offset - self.base_offset == index.last_offset()):
            return False
        last = index.last_time()
        return _none_is_younger(tail, last[0]) and self._has_time(index, last)

    def _build_index(self) -> SparseIndex:
        size, headers = self.size, self.headers()
        self.clear()
        for header, _ in headers:
            self.note((note_of(header),), _REBUILT_INTERVAL)
        self._trim_tail(0)
        self.size, self._saved_size = size, -1
        assert self._index is not None
        return self._index

    def is_index_full(self, index_bytes: int) -> bool:
        """Whether an index has as many entries as `segment.index.bytes` allows. Raises OSError."""
        return self.index.is_full(index_bytes)

    def has_unsaved_index(self) -> bool:
        """Whether the index files lack something that memory has."""
        return self._index is not None and self._saved_size != self.size

    def packed_indexes(self) -> list[tuple[str, bytes]]:
        """Path and content of the index files, with the youngest timestamp as the last entry of the time index.

        They are to be written: from here on they count as saved.
        """
        index = self.index
        if self.max_timestamp != NO_TIMESTAMP:
            index.add_time(self.max_timestamp, self._max_timestamp_offset - self.base_offset)
        offsets, times = index.pack()
        self._saved_size = self.size
        return [(self.path + INDEX, offsets), (self.path + TIME_INDEX, times)]

    def index_saver(self) -> Callable[[], None]:
        """The same as work for the background, which may come after the log was cut or removed: then it does nothing."""
        contents, files, number = self.packed_indexes(), self._files, self._void_saves

        def save() -> None:
            if number == self._void_saves:
                for path, content in contents:
                    files.write_file(path, content)
                if number != self._void_saves:  # while we wrote: without its files an index is built from the log
                    for path, _ in contents:
                        files.remove(path)

        return save

    def index_not_saved(self) -> None:
        """The files could not be written."""
        self._saved_size = -1

    def forget_index(self) -> None:
        """Give the memory back; the files have what they need."""
        if self.has_unsaved_index():
            return
        self._index = None
        self._trim_tail(0)

    def release(self) -> None:
        """Give memory and descriptors back, as far as the files have it: all comes again when needed."""
        self._file = None
        self.forget_index()
        if self._index is not None:
            self._index.let_go()

    def remove_indexes(self) -> None:
        """Remove the files: the log is about to change under them."""
        self._void_saves += 1
        self._files.remove(self.path + INDEX)
        self._files.remove(self.path + TIME_INDEX)

    def close(self) -> None:
        """Let go of the file. It is opened again when it is needed again."""
        if self._descriptors is not None:
            self._descriptors.closed(self)
        file = self._file
        self.release()
        if file is not None:
            file.close()
