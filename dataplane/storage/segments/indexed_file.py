"""A file of batches with what is remembered of them as they are noted, one after the other.

    tail      offsets and positions of the last few hundred batches appended, in arrays
    index     an entry about every 4 KiB, and the youngest timestamp up to there
    youngest  the timestamp of the youngest record, and its offset
    aborted   the transactions whose abort markers are in it (`aborted`)

Nothing here grows with the file's size except the indexes. Of a file that nobody uses all of it is forgotten: indexes are
mapped from their files when they are needed (`index_files` judges them), or built by noting the whole log again.
What indexes have in memory only is written when the segment is sealed, closed or left idle.
"""

from __future__ import annotations

from array import array
from functools import partial
from typing import TYPE_CHECKING

from dataplane.doors import NotInMemoryError
from dataplane.storage.segments import aborted, index_files
from dataplane.storage.segments.aborted import AbortedIndex
from dataplane.storage.segments.batch_file import (
    ABORTED_INDEX,
    INDEX,
    LOG,
    NO_TIMESTAMP,
    TIME_INDEX,
    BatchFile,
    note_of,
)
from dataplane.storage.segments.index import ENTRY_BYTES, TIME_ENTRY_BYTES, SparseIndex
from dataplane.storage.segments.saving import Saves

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dataplane.doors import Files
    from dataplane.storage.checkpoints.transactions import AbortedTransaction
    from dataplane.storage.segments.batch_file import Note

_REBUILT_INTERVAL = 4096
_TAIL_KEPT, _TAIL_MAX = 256, 512
_NO_TAIL = array("q")  # of all segments without one; nobody appends to it


class IndexedFile(BatchFile):
    """Knows what was noted."""

    __slots__ = (
        "_aborted",
        "_index",
        "_is_left",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_saved_size",
        "_saves",
        "_since_entry",
        "_tail_lasts",
        "_tail_positions",
        "has_aborted",
        "tail_start",
    )

    def __init__(self, files: Files, directory: str, base_offset: int) -> None:
        super().__init__(files, directory, base_offset)
        self._index: SparseIndex | None = None
        self._saves: Saves | None = None  # made when something is saved: of most segments nothing is
        self._is_left = False  # nothing is saved any more
        self._saved_size = 0  # of the segment, when its indexes were last in their files; -1: that cannot be said
        self.has_aborted = False  # a transaction
        self._aborted: AbortedIndex | None = None  # None where there is none, or where only the file has them
        self.clear()

    def clear(self) -> None:
        """Know nothing of the content: before the first batch, and before `note` is told all of it again."""
        self.size = 0
        self._max_timestamp: int | None = NO_TIMESTAMP
        self._max_timestamp_offset = self.base_offset
        self._index = SparseIndex()
        self._since_entry = self._saved_size = 0
        self.tail_start = self.base_offset
        self._tail_lasts = self._tail_positions = _NO_TAIL

    def trust(self, size: int) -> None:
        """The file holds whole batches up to here, and the indexes fit: after an orderly stop, or when it was sealed."""
        self.clear()
        self._index = None
        self.size = self._saved_size = size
        if size:
            self._max_timestamp = None
            self.tail_start = 2**63  # nothing is in the tail

    def next_offset(self) -> int | None:
        """The offset behind the last batch, found from the last index entry on; None where the end is torn."""
        start, expected = self._last_entry()
        end, offset = start, -1
        for header, position in self.headers(start):
            if position == start and header.base_offset != expected:
                return None
            end, offset = position + header.size, header.next_offset
        if end != self.size:
            return None
        self.tail_start = offset
        self._since_entry = self.size - start
        return offset

    def _last_entry(self) -> tuple[int, int]:
        """Position and offset of the last batch in the index: every start asks the last segment of each log."""
        found = index_files.last_entry(self._files, self)
        if found is None:
            found = self.index.last_offset(), self.index.last_position()
        return found[1], self.base_offset + found[0]

    # --- noting -------------------------------------------------------------------------------------------------------

    def note(self, notes: Sequence[Note], index_interval: int) -> None:
        """Batches are in the file, directly behind what was noted before. Raises OSError."""
        if self._index is None:
            _ = self.index  # now and not in between: it may have to be built, and forgets the tail then
        position = self.size
        since = self._since_entry
        lasts, positions = self._tail_lasts, self._tail_positions
        if not lasts:
            lasts, positions = self._tail_lasts, self._tail_positions = array("q"), array("q")
            self.tail_start = notes[0][0] if position else self.base_offset
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
            self.tail_start = self._tail_lasts[drop - 1] + 1
            if keep:
                del self._tail_lasts[:drop], self._tail_positions[:drop]
            else:
                self._tail_lasts = self._tail_positions = _NO_TAIL

    def truncate(self, position: int, *, sync: bool = True) -> None:
        """Cut at a boundary, on disk when this returns; or when the file is synced. Raises OSError."""
        index = self.index
        self.remove_indexes()
        self.file.truncate(position)
        if sync:
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
        self.tail_start = self.base_offset + index.last_offset()
        self._know_youngest(*index.last_time())

    # --- the youngest record ------------------------------------------------------------------------------------------

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
        last = index_files.last_time_entry(self._files, self)
        if last is None or not index_files.is_youngest(last, self, self._last_entry()[0]):
            return None
        return last

    def _know_youngest(self, timestamp: int, time_offset: int) -> None:
        self._max_timestamp, self._max_timestamp_offset = timestamp, self.base_offset + time_offset

    # --- indexes ------------------------------------------------------------------------------------------------------

    @property
    def index(self) -> SparseIndex:
        """The indexes, mapped from their files or built from the log when they are not in memory. Raises OSError."""
        if self._index is None:
            index = self._mapped_index() if self.size else SparseIndex()
            if index is None:
                return self._build_index()
            if self._max_timestamp is None:
                self._know_youngest(*index.last_time())
            self._index = index
        return self._index

    def _mapped_index(self) -> SparseIndex | None:
        index = index_files.mapped(self._files, self)
        if index is None:
            return None
        self._opened()
        return index if index_files.fits(index, self) else None

    def _build_index(self) -> SparseIndex:
        size, headers = self.size, self.headers()
        self.clear()
        try:
            for header, _ in headers:
                self.note((note_of(header),), _REBUILT_INTERVAL)
        except NotInMemoryError:
            self.trust(size)  # whoever comes next builds it
            self._saved_size = -1
            raise
        self._trim_tail(0)
        self.size, self._saved_size = size, -1
        assert self._index is not None
        return self._index

    def is_index_full(self, index_bytes: int) -> bool:
        """Whether an index has as many entries as `segment.index.bytes` allows. Raises OSError."""
        return self.index.is_full(index_bytes)

    def has_unsaved_index(self) -> bool:
        """Whether the index files lack something that memory has.

        Of an empty segment none are written: when it is written to, `_saved_size` would not say that they are there.
        """
        if self._aborted is not None and not self._aborted.is_saved:
            return True
        return self._index is not None and self._saved_size != self.size and self.size > 0

    def index_bytes(self) -> int:
        """What the index of offsets and times takes in memory or in its files, about; 0: it is not in memory."""
        return 0 if self._index is None else self._index.entries() * (ENTRY_BYTES + TIME_ENTRY_BYTES)

    def packed_indexes(self) -> list[tuple[str, bytes]]:
        """Path and content of the index files, with the youngest timestamp as the last entry of the time index.

        They are to be written: from here on they count as saved.
        """
        index = self.index
        if self.max_timestamp != NO_TIMESTAMP:
            index.add_time(self.max_timestamp, self._max_timestamp_offset - self.base_offset)
        offsets, times = index.pack()
        self._saved_size = self.size
        found = [(self.path + INDEX, offsets), (self.path + TIME_INDEX, times)]
        if self._aborted is not None and not self._aborted.is_saved:
            found.insert(0, (self.path + ABORTED_INDEX, self._aborted.pack()))  # first: see `aborted`
        return found

    def index_saver(self, write: Callable[[str, bytes], None] | None = None) -> Callable[[], bool]:
        """The same as work, which may come after the log was cut, removed or closed: then it does nothing (`Saves.saver`).

        `write`: how; durably if nothing is said.
        """
        if self._is_left:
            return lambda: False
        return self._made_saves().saver(self.packed_indexes(), write or self._files.write_file, self._files.remove)

    def removal_settler(self) -> Callable[[], None] | None:
        """Work for the background after which no power cut brings index files back that were removed; None: there are none."""
        saves = self._saves
        if saves is None or saves.void == saves.void_on_disk:
            return None
        return partial(saves.settle, saves.void, partial(self._files.sync_directory, self.path.rpartition("/")[0]))

    def _made_saves(self) -> Saves:
        if self._saves is None:
            self._saves = Saves()
        return self._saves

    def comes_after(self, late: IndexedFile) -> None:
        """`late` had its name, and has left the log while an index of it was being written: that is waited for (see `Saves`)."""
        self._saves = Saves(late._made_saves())

    def end_saves(self, *, waits: bool = True) -> None:
        """Its log is closed: no index is written any more, whoever was about to (see `Saves.end`)."""
        self._is_left = True
        if self._saves is not None:
            self._saves.end(waits=waits)

    def drop_saves(self, *, waits: bool = True) -> bool:
        """As `end_saves`, where its files go. Whether anything is being written of them still (see `Saves.drop`)."""
        self._is_left = True
        return self._saves is not None and self._saves.drop(waits=waits)

    def is_being_saved(self) -> bool:
        """Whether some thread of the background is writing an index."""
        return self._saves is not None and self._saves.is_busy()

    def void_saves(self) -> bool:
        """Whoever is about to write its indexes does not. Whether some thread is at it, which removes what it has written."""
        if self._saves is None:
            return False
        self._saves.void += 1  # first: see `Saves.drop`
        self.index_not_saved()
        return self.is_being_saved()

    def index_not_saved(self) -> None:
        """The files could not be written."""
        self._saved_size = -1

    def forget_index(self) -> None:
        """Give the memory back; the files have what they need."""
        if self._aborted is not None:
            self._forget_aborted(self._aborted)
        if self.has_unsaved_index():
            return
        self._index = None
        self._trim_tail(0)

    def remove_indexes(self) -> None:
        """Remove the files: the log is about to change under them. What was aborted must be in memory, or go as well."""
        if self._saves is not None:
            self._saves.void += 1
        for kind in (INDEX, TIME_INDEX, ABORTED_INDEX):
            self._files.remove(self.path + kind)
        if self._aborted is not None:
            self._aborted.is_saved = False

    # --- aborted transactions -----------------------------------------------------------------------------------------

    def note_aborted(self, found: AbortedTransaction) -> None:
        """Its marker is in the file, behind all others. Raises OSError, AbortedIndexError.

        Index files of what was there before go: a start after a kill that finds them believes that nothing else was aborted.
        """
        index = self.aborted() if self.has_aborted else AbortedIndex()
        if self._saved_size:
            self._made_saves()  # which counts that they went
            self.remove_indexes()
            self._saved_size = 0
        index.add(found)
        self.has_aborted, self._aborted = True, index

    def aborted(self) -> AbortedIndex:
        """For a segment that `has_aborted`. Raises OSError and AbortedIndexError where the file is lost: see `log.aborting`."""
        if self._aborted is None:
            self._aborted = aborted.unpack(self._files.read_file(self.path + ABORTED_INDEX))
        return self._aborted

    def set_aborted(self, index: AbortedIndex | None) -> None:
        """What is in the file is not what was written, or has been cut."""
        self.has_aborted, self._aborted = index is not None and len(index) > 0, index or None

    def _forget_aborted(self, index: AbortedIndex) -> None:
        if not index.is_saved:
            if self.is_being_saved():  # what is there may be out of date, and about to be removed
                return
            try:
                index.is_saved = self._files.size(self.path + ABORTED_INDEX) == index.size
            except FileNotFoundError:
                return
        if index.is_saved:
            self._aborted = None
