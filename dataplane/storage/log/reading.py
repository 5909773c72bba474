"""Reading a log: ranges of its files by offset, batches, look-ups by time (how: `lookup`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.records.steps import run_through
from dataplane.storage.errors import OffsetOutOfRangeError
from dataplane.storage.log.state import LogState
from dataplane.storage.segments import lookup

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dataplane.records.header import BatchHeader
    from dataplane.records.steps import Steps
    from dataplane.storage.files import FileSlice


class Reading(LogState):
    """Finds what is there."""

    __slots__ = ()

    def read(
        self, offset: int, max_bytes: int, max_offset: int, *, at_least_one: bool, wait: bool = True
    ) -> FileSlice | None:
        """Whole batches from the one that holds `offset` on, at most `max_bytes`, nothing at or after `max_offset`.

        None when there is nothing there (yet), or when the first batch is larger than `max_bytes` and not
        `at_least_one`. Of one segment: more may follow. Raises OffsetOutOfRangeError, OSError; and NotInMemoryError
        where finding it means reading from the disk and it is not to `wait`.
        """
        end = self.end_offset
        if not self.start_offset <= offset <= end:
            raise OffsetOutOfRangeError(offset, self.start_offset, end)
        bound = min(max_offset, end)
        if offset >= bound:
            return None
        active = self._active
        if offset >= active.tail_start or (wait and offset >= active.base_offset):
            return active.slice(offset, None if bound == end else bound, max_bytes, at_least_one=at_least_one)
        if wait:
            return self._find(offset, max_bytes, bound, at_least_one=at_least_one)
        with self._files.at_once():
            return self._find(offset, max_bytes, bound, at_least_one=at_least_one)

    def _find(self, offset: int, max_bytes: int, bound: int, *, at_least_one: bool) -> FileSlice | None:
        for index in range(self._segment_index(offset), len(self._segments)):
            segment = self._segments[index]
            whole = bound >= self._segment_end(index)
            found = segment.slice(offset, None if whole else bound, max_bytes, at_least_one=at_least_one)
            # Nothing although the segment goes on: it ends with a gap, which compaction left.
            if found is not None or not whole or segment.position_of(offset) < segment.size:
                return found
        return None

    def bytes_between(self, start: int, end: int) -> int:
        """Bytes of the batches from the one that holds `start` on, up to the one that holds `end`. Raises OSError.

        Quick where the two are not far apart: it does not look at what lies before or behind.
        """
        first, last = self._segment_index(start), self._segment_index(end)
        whole = sum(segment.size for segment in self._segments[first:last])
        return whole + self._segments[last].position_of(end) - self._segments[first].position_of(start)

    def batches(self, start: int, end: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Batches with records in [start, end), read piece by piece. Raises OffsetOutOfRangeError, OSError."""
        return lookup.batches(self, start, end)

    def find_timestamp(self, timestamp: int, max_offset: int) -> Steps[tuple[int, int, int] | None]:
        """(offset, timestamp, leader epoch) of the first record at least as young, below `max_offset`."""
        return lookup.offset_for_timestamp(self, timestamp, max_offset)

    def find_latest_timestamp(self, max_offset: int) -> Steps[tuple[int, int, int] | None]:
        """(offset, timestamp, leader epoch) of the youngest record; None when it is not below `max_offset`."""
        return lookup.latest_timestamp(self, max_offset)

    def offset_for_timestamp(self, timestamp: int, max_offset: int) -> tuple[int, int, int] | None:
        """`find_timestamp`, at once."""
        return run_through(self.find_timestamp(timestamp, max_offset))

    def latest_timestamp(self, max_offset: int | None = None) -> tuple[int, int, int] | None:
        """`find_latest_timestamp`, at once."""
        return run_through(self.find_latest_timestamp(self.end_offset if max_offset is None else max_offset))
