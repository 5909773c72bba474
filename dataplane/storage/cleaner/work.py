"""A round of compaction in one log: the part that reads and writes. Runs in a child process (`Background.run_apart`).

    1. read the dirty section, from where the last round ended, and remember the last offset of every key; records of aborted
       transactions do not count
    2. rewrite every segment up to there without the records that a later one replaces, small neighbours merged into one
    3. leave the new segments, synced and indexed, beside them as `.cleaned`; the broker swaps them in

Memory is bounded by the number of keys: when the map is full the round ends there, and the next one goes on. Nothing of
the old segments is changed here, and nothing of the broker's is shared: a job that dies has done nothing.

`pace` is called with every byte count read or written, and sleeps as `log.cleaner.io.max.bytes.per.second` demands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from dataplane.records.control import read_marker
from dataplane.records.header import BatchHeader, Buffer, CorruptBatchError, check_stored, read_header
from dataplane.storage.checkpoints.transactions import AbortedTransaction
from dataplane.storage.cleaner.batches import KeyMap, Rules, cleaned, cleaned_marker, cleaned_of_aborted, entries_of
from dataplane.storage.cleaner.swap import CLEANED, drop_cleaned, write_synced
from dataplane.storage.cleaner.transactions import CleanedTransactions
from dataplane.storage.segments.aborted import AbortedIndex
from dataplane.storage.segments.batch_file import (
    ABORTED_INDEX,
    INDEX,
    LOG,
    NO_TIMESTAMP,
    TIME_INDEX,
    note_of,
    segment_name,
)
from dataplane.storage.segments.index import SparseIndex
from dataplane.storage.startup.recovery import read_batches

if TYPE_CHECKING:
    from dataplane.doors import File, Files

Pace = Callable[[int], None]

KEY_BYTES = 200
"""What a key costs in the map, in this process: digest, offset and their places in a dictionary that has just grown."""
_MAX_RELATIVE = 2**31 - 1
_WRITE_BYTES = 2**20
_INDEX_ENTRY_BYTES = 12  # of the larger of the two


class OldSegment(NamedTuple):
    """A segment as it is."""

    base_offset: int
    size: int
    end_offset: int  # where the next one begins


@dataclass(frozen=True, slots=True)
class CleaningPlan:
    """What to do, as values: it goes to another process."""

    directory: str
    segments: tuple[OldSegment, ...]  # all that may be rewritten, oldest first
    first_dirty: int
    rules: Rules
    most_keys: int
    segment_bytes: int
    index_bytes: int
    index_interval: int
    producers: Mapping[int, int]
    """The last batch's offset of each producer that is remembered."""
    aborted: tuple[AbortedTransaction, ...] = ()
    """Those that have records in the segments."""


class NewSegment(NamedTuple):
    """What takes the place of some old segments."""

    base_offset: int
    replaced: tuple[OldSegment, ...]
    size: int
    end_offset: int  # behind its last batch
    max_timestamp: int
    max_timestamp_offset: int
    has_aborted: bool = False


class Outcome(NamedTuple):
    """What a round has done."""

    first_dirty: int  # where the next one begins
    segments: tuple[NewSegment, ...]  # those that differ from what was there, oldest first
    bytes_read: int
    keys: int


def clean(files: Files, plan: CleaningPlan, pace: Pace) -> Outcome:
    """One round. Raises OSError, CorruptBatchError."""
    drop_cleaned(files, plan.directory, files.list(plan.directory))
    reader = _Reader(files, plan.directory, pace)
    keys, end = keys_of(plan, reader)
    rewriting = _Rewriting(files, plan, keys, reader, pace)
    for old in plan.segments:
        if old.base_offset < end:
            rewriting.take(old)
    rewriting.finish()
    segments = rewriting.segments
    return Outcome(end, tuple(segments), reader.bytes_read, len(keys))


class _Reader:
    """Whole batches of old segments, checked."""

    def __init__(self, files: Files, directory: str, pace: Pace) -> None:
        self._files, self._directory, self._pace = files, directory, pace
        self.bytes_read = 0

    def batches(self, old: OldSegment) -> Iterator[tuple[BatchHeader, memoryview]]:
        """All of a segment. Raises CorruptBatchError where it is not what the broker wrote."""
        position = 0
        if not old.size:
            return
        file = self._files.open(f"{self._directory}/{segment_name(old.base_offset)}{LOG}")
        for header, batch in read_batches(file, old.size):
            check_stored(batch, header)
            self._pace(header.size)
            self.bytes_read += header.size
            yield header, batch
            position += header.size
        if position != old.size:
            raise CorruptBatchError(f"segment {old.base_offset} cannot be read behind position {position}")


def keys_of(plan: CleaningPlan, reader: _Reader) -> tuple[KeyMap, int]:
    """The keys of the dirty section, and the offset up to which they are known."""
    keys = KeyMap(max(1, plan.most_keys))
    transactions = CleanedTransactions(plan.aborted)
    for old in plan.segments:
        if old.end_offset <= plan.first_dirty:
            continue
        for header, batch in reader.batches(old):
            if header.last_offset < plan.first_dirty:
                continue
            is_left_out = header.is_control or transactions.is_aborted(header)
            if not is_left_out and not _remember(keys, header, batch, plan.first_dirty):
                return keys, keys.latest_offset + 1
            keys.latest_offset = header.last_offset
    end = plan.segments[-1].end_offset if plan.segments else plan.first_dirty
    keys.latest_offset = max(keys.latest_offset, end - 1)
    return keys, end


def _remember(keys: KeyMap, header: BatchHeader, batch: memoryview, first_dirty: int) -> bool:
    """False: the map is full before the end of the batch."""
    found = entries_of(batch, header)
    for entry in found[1] if found is not None else ():
        offset = header.base_offset + entry.offset_delta
        if entry.key is not None and offset >= first_dirty and not keys.put(entry.key, offset):
            return False
    return True


class _Rewriting:
    """Turns old segments into new ones, as few as there may be."""

    def __init__(self, files: Files, plan: CleaningPlan, keys: KeyMap, reader: _Reader, pace: Pace) -> None:
        self._files, self._plan, self._keys, self._reader, self._pace = files, plan, keys, reader, pace
        self._transactions = CleanedTransactions(plan.aborted)
        self._group: list[OldSegment] = []
        self._writer: _Writer | None = None
        self._changed = False
        index_room = plan.index_bytes // _INDEX_ENTRY_BYTES * max(plan.index_interval, 1)
        self._room = min(plan.segment_bytes, index_room)
        self.segments: list[NewSegment] = []

    def take(self, old: OldSegment) -> None:
        """Rewrite one more, into the same new segment if it fits there by size, index and 32-bit offsets."""
        if self._writer is not None:
            too_far = old.end_offset - 1 - self._group[0].base_offset > _MAX_RELATIVE
            if too_far or self._writer.size + old.size > self._room:
                self.finish()
        writer = self._writer
        if writer is None:
            path = self._path(old.base_offset)
            file = self._files.open(path + LOG + CLEANED, create=True)
            writer = self._writer = _Writer(file, old.base_offset, self._plan.index_interval, self._pace)
        self._group.append(old)
        for header, batch in self._reader.batches(old):
            left = self._left_of(header, batch)
            self._changed = self._changed or left is not batch
            if left is not None:
                writer.write(left, header)

    def _left_of(self, header: BatchHeader, batch: memoryview) -> Buffer | None:
        rules, transactions = self._plan.rules, self._transactions
        is_last = self._plan.producers.get(header.producer_id) == header.base_offset
        if not header.is_control:
            if transactions.is_aborted(header):
                return cleaned_of_aborted(batch, header, keeps_producer=is_last)
            return cleaned(batch, header, self._keys, rules, keeps_producer=is_last)
        try:
            marker, _ = read_marker(batch)
        except CorruptBatchError:
            return batch
        if transactions.may_go(header, marker):
            return cleaned_marker(batch, header, rules, keeps_producer=is_last)
        return batch

    def finish(self) -> None:
        """The new segment ends here. One that is what the old one was is dropped."""
        writer, group = self._writer, self._group
        if writer is None:
            return
        writer.flush()
        path = self._path(group[0].base_offset)
        if self._changed or len(group) > 1:
            writer.file.sync()
            offsets, times = writer.packed_index()
            write_synced(self._files, path + INDEX + CLEANED, offsets)
            write_synced(self._files, path + TIME_INDEX + CLEANED, times)
            aborted = AbortedIndex()
            for transaction in self._transactions.take_kept():
                aborted.add(transaction)
            if len(aborted):
                write_synced(self._files, path + ABORTED_INDEX + CLEANED, aborted.pack())
            found = (writer.size, writer.end_offset, writer.max_timestamp, writer.max_at, len(aborted) > 0)
            self.segments.append(NewSegment(group[0].base_offset, tuple(group), *found))
        else:
            self._files.remove(path + LOG + CLEANED)
            self._transactions.take_kept()  # its index has them
        self._writer, self._group, self._changed = None, [], False

    def _path(self, base_offset: int) -> str:
        return f"{self._plan.directory}/{segment_name(base_offset)}"


class _Writer:
    """A new segment's file, in large pieces, and its indexes."""

    def __init__(self, file: File, base_offset: int, index_interval: int, pace: Pace) -> None:
        self.file = file
        self._base, self._interval, self._pace = base_offset, index_interval, pace
        self._buffers: list[Buffer] = []
        self._waiting = self._since_entry = 0
        self._index = SparseIndex()
        self.size = 0
        self.end_offset = base_offset
        self.max_timestamp, self.max_at = NO_TIMESTAMP, base_offset

    def write(self, batch: Buffer, header: BatchHeader) -> None:
        """Take a batch; `header` is that of the one it was made from: its offsets are the same."""
        timestamp = note_of(read_header(batch))[3]
        if timestamp > self.max_timestamp:
            self.max_timestamp, self.max_at = timestamp, header.last_offset
        if self._since_entry > self._interval:
            relative = header.base_offset - self._base
            self._index.add(relative, self.size, self.max_timestamp, self.max_at - self._base)
            self._since_entry = 0
        size = len(batch)
        self._buffers.append(batch)
        self._waiting += size
        self._since_entry += size
        self.size += size
        self.end_offset = header.next_offset
        if self._waiting >= _WRITE_BYTES:
            self.flush()

    def flush(self) -> None:
        """Give what waits to the file."""
        if self._buffers:
            self._pace(self._waiting)
            self.file.append(self._buffers)
            self._buffers, self._waiting = [], 0

    def packed_index(self) -> tuple[bytes, bytes]:
        """Contents of the two files."""
        if self.max_timestamp != NO_TIMESTAMP:
            self._index.add_time(self.max_timestamp, self.max_at - self._base)
        return self._index.pack()
