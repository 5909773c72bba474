"""What this replica took as the leader and does not know to be committed: for each commit, from where to where.

Every batch is reported as committed exactly once, by the broker that led the epoch that is written in it. So what is
open is kept when leadership goes: a deposed leader learns as a follower that its last batches are committed, or has to
cut them. What it cut may come back: another replica can still have it and lead before anybody cuts it there. Then it is
open again.

Bytes are exact also where the high watermark, or a cut, falls between two batches that were written together. Of the markers
among them only the sum is known: they count for the part that is committed last. Records are offsets: a marker has one, too.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from dataplane.storage.log import lookup, reading

if TYPE_CHECKING:
    from dataplane.storage.log import Log

_MAX_GROUPS = 1_000


class _Group(NamedTuple):
    """Batches that were written together."""

    start: int
    end: int  # exclusive
    size: int
    epoch: int
    markers: int = 0  # bytes of them among these


class Uncommitted:
    """Groups in order of their offsets."""

    __slots__ = ("_cut", "_groups", "markers_passed", "records_passed")

    def __init__(self) -> None:
        self.markers_passed = 0  # bytes of markers that are committed, not yet taken
        self.records_passed = 0  # that are committed, not yet counted: who does sets it to 0
        self._groups: deque[_Group] = deque()
        self._cut: list[_Group] = []  # until the high watermark says that they will not come back

    def __bool__(self) -> bool:
        """Whether a move of the high watermark means anything here."""
        return bool(self._groups or self._cut)

    def is_open(self) -> bool:
        """Whether the log holds something of ours that is not known to be committed."""
        return bool(self._groups)

    def appended(self, start: int, end: int, size: int, epoch: int, markers: int = 0) -> None:
        """A commit has written `size` bytes as the leader of `epoch`."""
        groups = self._groups
        if len(groups) >= _MAX_GROUPS and groups[-1].end == start and groups[-1].epoch == epoch:
            # Coarser from here on: nothing is committed for long, and this must not grow with it.
            last = groups.pop()
            start, size, markers = last.start, last.size + size, last.markers + markers
        groups.append(_Group(start, end, size, epoch, markers))

    def take_markers_passed(self) -> int:
        """Bytes of what was passed that are nobody's produce."""
        size, self.markers_passed = self.markers_passed, 0
        return size

    def passed(self, high_watermark: int, log: Log) -> int:
        """The high watermark is here now: the bytes that are committed by that."""
        groups = self._groups
        if self._cut:
            self._cut = [group for group in self._cut if group.end > high_watermark]
        total = 0
        while groups and groups[0].start < high_watermark:
            group = groups[0]
            if group.end <= high_watermark:
                groups.popleft()
                total += group.size
                self.markers_passed += group.markers
                self.records_passed += group.end - group.start
            else:
                part = _bytes_between(log, group.start, high_watermark)
                if part:
                    groups[0] = group._replace(start=high_watermark, size=group.size - part)
                    self.records_passed += high_watermark - group.start
                return total + part
        return total

    def cut(self, log: Log) -> None:
        """The log ends, or begins, somewhere else."""
        first, end = log.start_offset, log.end_offset
        kept: deque[_Group] = deque()
        for group in self._groups:
            if group.end <= end and group.start >= first:
                kept.append(group)
            elif first <= group.start < end:
                part = _bytes_between(log, group.start, end)
                kept.append(group._replace(end=end, size=part))
                self._cut.append(group._replace(start=end, size=group.size - part))
            else:
                self._cut.append(group)
        self._groups = kept

    def copied(self, log: Log, start: int) -> None:
        """The log has grown from `start` on by what another leader has: is something among it that we had to cut?"""
        if not self._cut:
            return
        for header, _ in lookup.batches(log, start, log.end_offset):
            for group in self._cut:
                if group.epoch == header.leader_epoch and group.start <= header.base_offset < group.end:
                    markers = header.size if header.is_control else 0
                    self.appended(header.base_offset, header.next_offset, header.size, group.epoch, markers)
                    break


def _bytes_between(log: Log, start: int, end: int) -> int:
    """0 where the disk does not say: then the whole group is reported when all of it is committed."""
    try:
        return reading.bytes_between(log, start, end)
    except OSError:
        return 0
