"""The index files of a segment, believed as far as its log bears them out.

A file may be missing, cut short, older than its log, or another log's. `SparseIndex.stored` looks at the file alone; here
its entries are compared with the headers that they name. Whatever does not fit is answered with None or False, and the
index is built from the log again. Of the two questions that every start or every round of retention asks, how far the
entries go and what is the youngest record, the last entry's bytes tell enough: for that nothing is mapped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.storage.segments.batch_file import (
    INDEX,
    NO_TIMESTAMP,
    TIME_INDEX,
    note_of,
    walk,
)
from dataplane.storage.segments.index import (
    ENTRY_BYTES,
    TIME_ENTRY_BYTES,
    SparseIndex,
    last_time,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dataplane.doors import Files
    from dataplane.records.header import BatchHeader
    from dataplane.storage.segments.batch_file import BatchFile

_SURELY_INDEXED_BYTES = 2**20  # a larger segment without any entry has lost its index


def mapped(files: Files, log: BatchFile) -> SparseIndex | None:
    """The two files, mapped; None where they are missing or cannot belong to the log. Raises OSError."""
    try:
        offsets, times = files.view(log.path + INDEX), files.view(log.path + TIME_INDEX)
    except FileNotFoundError:
        return None
    return SparseIndex.stored(offsets, times, log.size)


def fits(index: SparseIndex, log: BatchFile) -> bool:
    """Whether nothing is missing, the last entries are of the batches they name, and no batch behind them is younger.

    A time index that lost its end would hide the youngest records from look-ups, and have retention delete them.
    """
    last = index.last_time()
    if last[0] == NO_TIMESTAMP and log.first_timestamp() != NO_TIMESTAMP:
        return False
    if not index.entries() and log.size > _SURELY_INDEXED_BYTES:
        return False
    tail = [header for header, _ in log.headers(index.last_position())]
    if index.entries() and not (tail and tail[0].base_offset - log.base_offset == index.last_offset()):
        return False
    return _none_is_younger(tail, last[0]) and has_time(index, last, log)


def has_time(index: SparseIndex, entry: tuple[int, int], log: BatchFile) -> bool:
    """Whether an entry of the time index is of the batch that it names."""
    timestamp, relative = entry
    if timestamp == NO_TIMESTAMP:
        return True
    for header, _ in walk(log.file, index.entry_at(relative)[1], log.size):
        if header.last_offset >= log.base_offset + relative:
            return _is_time_of(entry, header, log)
    return False


def last_entry(files: Files, log: BatchFile) -> tuple[int, int] | None:
    """(relative offset, position) of the last entry, (0, 0) where none is needed; None where the file is lost."""
    _, last, count = _ends(files, log.path + INDEX, ENTRY_BYTES)
    if count:
        return int.from_bytes(last[:4]), int.from_bytes(last[4:])
    return (0, 0) if log.size <= _SURELY_INDEXED_BYTES else None


def last_time_entry(files: Files, log: BatchFile) -> tuple[int, int] | None:
    """(timestamp, relative offset) of the last entry; None where there is none, or the file cannot be one."""
    return last_time(*_ends(files, log.path + TIME_INDEX, TIME_ENTRY_BYTES))


def is_youngest(entry: tuple[int, int], log: BatchFile, position: int) -> bool:
    """Whether an entry of the time index is of a batch behind the position, and no batch there is younger."""
    tail = [header for header, _ in log.headers(position)]
    return any(_is_time_of(entry, header, log) for header in tail) and _none_is_younger(tail, entry[0])


def _none_is_younger(headers: Iterable[BatchHeader], timestamp: int) -> bool:
    return all(note_of(header)[3] <= timestamp for header in headers)


def _is_time_of(entry: tuple[int, int], header: BatchHeader, log: BatchFile) -> bool:
    return entry == (header.max_timestamp, header.last_offset - log.base_offset)


def _ends(files: Files, path: str, width: int) -> tuple[bytes, bytes, int]:
    """First and last entry of an index file, and how many there are; 0 where it does not consist of entries."""
    try:
        file = files.open(path)
    except FileNotFoundError:
        return b"", b"", 0
    size = file.size()
    if not size or size % width:
        return b"", b"", 0
    last = file.read(size - width, width)
    return last if size == width else file.read(0, width), last, size // width
