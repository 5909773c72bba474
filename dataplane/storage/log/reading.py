"""Reading a log: ranges of its files by offset. Other look-ups: `lookup`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.doors import NotInMemoryError
from dataplane.storage.errors import OffsetOutOfRangeError

if TYPE_CHECKING:
    from dataplane.storage.files import FileSlice
    from dataplane.storage.log.state import Log


def read(
    log: Log, offset: int, max_bytes: int, max_offset: int, *, at_least_one: bool, wait: bool = True
) -> FileSlice | None:
    """Whole batches from the one that holds `offset` on, at most `max_bytes`, nothing at or after `max_offset`.

    None when there is nothing there (yet), or when the first batch is larger than `max_bytes` and not
    `at_least_one`. Of one segment: more may follow. Raises OffsetOutOfRangeError, OSError; and NotInMemoryError
    where finding it means reading from the disk and it is not to `wait`.
    """
    end = log.end_offset
    if not log.start_offset <= offset <= end:
        raise OffsetOutOfRangeError(offset, log.start_offset, end)
    bound = min(max_offset, end)
    if offset >= bound:
        return None
    active = log.active
    if offset >= active.tail_start or (wait and offset >= active.base_offset):
        return active.slice(offset, None if bound == end else bound, max_bytes, at_least_one=at_least_one)
    if wait:
        return _find(log, offset, max_bytes, bound, at_least_one=at_least_one)
    with log.shared.files.at_once():
        return _find(log, offset, max_bytes, bound, at_least_one=at_least_one)


def _find(log: Log, offset: int, max_bytes: int, bound: int, *, at_least_one: bool) -> FileSlice | None:
    for index in range(log.segment_index(offset), len(log.segments)):
        segment = log.segments[index]
        whole = bound >= log.segment_end(index)
        found = segment.slice(offset, None if whole else bound, max_bytes, at_least_one=at_least_one)
        # Nothing although the segment goes on: it ends with a gap, which compaction left.
        if found is not None or not whole or segment.position_of(offset) < segment.size:
            return found
    return None


def end_of(log: Log, offset: int, found: FileSlice, bound: int, *, wait: bool) -> int:
    """Behind the last offset of a range that `read` has found from `offset` on, below `bound`. Raises as `read` does."""
    if wait:
        return _end_of(log, offset, found, bound)
    with log.shared.files.at_once():
        return _end_of(log, offset, found, bound)


def _end_of(log: Log, offset: int, found: FileSlice, bound: int) -> int:
    position = found.position + found.size
    for index in range(log.segment_index(offset), len(log.segments)):
        segment = log.segments[index]
        if segment.holds(found):  # the one before, if it did not, ended with a gap
            return min(bound, log.segment_end(index) if position >= segment.size else segment.offset_at(position))
    return bound


def bytes_between(log: Log, start: int, end: int) -> int:
    """Bytes of the batches from the one that holds `start` on, up to the one that holds `end`. Raises OSError.

    Quick where the two are not far apart: it does not look at what lies before or behind.
    """
    first, last = log.segment_index(start), log.segment_index(end)
    whole = sum(segment.size for segment in log.segments[first:last])
    return whole + log.segments[last].position_of(end) - log.segments[first].position_of(start)


def backlog_bytes(log: Log, offset: int, end: int) -> int:
    """How many bytes of batches a reader at `offset` has before it, up to `end`. Never waits for the disk.

    Exact, to the batch, where index and headers are in memory. Where they are not, as if the bytes of a segment lay evenly over
    its offsets: wrong by a part of the first segment and of the last, at most.
    """
    start = max(offset, log.start_offset)
    if start >= end:
        return 0
    try:
        with log.shared.files.at_once():
            return max(0, bytes_between(log, start, end))
    except (NotInMemoryError, OSError):
        first, last = log.segment_index(start), log.segment_index(end)
        whole = sum(segment.size for segment in log.segments[first:last])
        return max(0, whole + _evenly(log, last, end) - _evenly(log, first, start))


def _evenly(log: Log, index: int, offset: int) -> int:
    """Where an offset would stand in its segment if all offsets had as many bytes."""
    segment = log.segments[index]
    offsets = log.segment_end(index) - segment.base_offset
    return segment.size * min(max(offset - segment.base_offset, 0), offsets) // offsets if offsets > 0 else 0
