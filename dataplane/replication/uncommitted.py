"""What this replica took as the leader and does not know to be committed: for each commit, from where to where.

Kept when leadership goes: a deposed leader learns as a follower that its last batches are committed, or has to cut them.
So every batch is reported as committed exactly once, by the broker that appended it. Bytes are exact also where the high
watermark, or a cut, falls between two batches that were written together.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataplane.storage.log import Log

_MAX_GROUPS = 1_000


class Uncommitted:
    """Groups in order of their offsets: start, end (exclusive), bytes."""

    __slots__ = ("_groups",)

    def __init__(self) -> None:
        self._groups: deque[tuple[int, int, int]] = deque()

    def __bool__(self) -> bool:
        return bool(self._groups)

    def appended(self, start: int, end: int, size: int) -> None:
        """A commit has written `size` bytes."""
        groups = self._groups
        if len(groups) >= _MAX_GROUPS and groups[-1][1] == start:
            # Coarser from here on: nothing is committed for long, and this must not grow with it.
            start, _, before = groups.pop()
            size += before
        groups.append((start, end, size))

    def passed(self, high_watermark: int, log: Log) -> int:
        """The high watermark is here now: the bytes that are committed by that."""
        groups = self._groups
        total = 0
        while groups and groups[0][0] < high_watermark:
            start, end, size = groups[0]
            if end <= high_watermark:
                groups.popleft()
                total += size
            else:
                part = _bytes_between(log, start, high_watermark)
                groups[0] = (high_watermark, end, size - part) if part else groups[0]
                return total + part
        return total

    def cut(self, log: Log) -> None:
        """The log ends, or begins, somewhere else: what it does not hold any more will not be committed."""
        first, end = log.start_offset, log.end_offset
        kept = [group for group in self._groups if first <= group[0] < end]
        if kept and kept[-1][1] > end:
            start = kept[-1][0]
            kept[-1] = (start, end, _bytes_between(log, start, end))
        self._groups = deque(kept)


def _bytes_between(log: Log, start: int, end: int) -> int:
    """0 where the disk does not say: then the whole group is reported when all of it is committed."""
    try:
        return log.bytes_between(start, end)
    except OSError:
        return 0
