"""Where a message of the source is in the target. Pure.

Offsets differ: the source may have lost its beginning, have gaps (compaction, transactions), and the target may have had
other messages before, and has a marker behind each transaction. The map is *segments*, each ``(source, target, length,
slack, dip)``: from `source` on so many offsets, which follow each other in the target as well, from `target` on. A partition
without gaps is one segment.

**Its size.** There are at most `MOST_SEGMENTS`: the newer half is kept as it is, of the older one every second segment goes
into the one before it, again and again, so that what is old is known less exactly, and nothing is forgotten. Such a segment
has a *slack*: a message in it may be so many offsets later in the target than the segment says; where the source has gaps, it has
a *dip*: so many offsets earlier.

`translated` answers for a committed offset, which names the next message to read. Who goes on there misses nothing. Of what
is exactly known nothing is read twice either; in an older segment at most its slack and its dip.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

MOST_SEGMENTS = 64
"""A checkpoint has all of them: about 1.5 KB."""
_EXACT = MOST_SEGMENTS // 2


class Segment(NamedTuple):
    """Offsets in a row."""

    source: int
    target: int
    length: int
    slack: int = 0
    dip: int = 0

    @property
    def source_end(self) -> int:
        """The offset after it."""
        return self.source + self.length

    @property
    def target_end(self) -> int:
        """At or before the offset after it."""
        return self.target + self.length

    def merged(self, after: Segment) -> Segment:
        """Itself and the next one. What the target has further behind is slack; what the source has, is dip."""
        further = (after.target - after.source) - (self.target - self.source)
        slack = max(1, self.slack, further + after.slack)  # at least one: there is a gap, so it is not exact
        return Segment(
            self.source, self.target, after.source_end - self.source, slack, max(self.dip, after.dip - further)
        )


class OffsetMap:
    """Of one partition; grows at its end."""

    def __init__(self, segments: Iterable[Iterable[int]] = ()) -> None:
        self._segments = [Segment(*one) for one in segments]

    @property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(self._segments)

    def add(self, source: int, target: int) -> None:
        """A message was copied. Offsets grow, on both sides."""
        self.add_run(source, target, 1)

    def add_run(self, source: int, target: int, length: int) -> None:
        """So many messages were copied, whose offsets follow each other on both sides."""
        if self._segments:
            last = self._segments[-1]
            if not last.slack and (source, target) == (last.source_end, last.target_end):
                self._segments[-1] = last._replace(length=last.length + length)
                return
        self._segments.append(Segment(source, target, length))
        if len(self._segments) > MOST_SEGMENTS:
            self._thin_out()

    def _thin_out(self) -> None:
        old, exact = self._segments[:-_EXACT], self._segments[-_EXACT:]
        pairs = zip(old[::2], old[1::2], strict=False)
        last = old[-1:] if len(old) % 2 else []
        self._segments = [*(first.merged(second) for first, second in pairs), *last, *exact]

    def translated(self, source: int) -> int | None:
        """Where to go on that has everything copied from this offset on behind it. None: nothing was copied yet."""
        if not self._segments:
            return None
        at = bisect_right(self._segments, source, key=lambda one: one.source) - 1
        if at < 0:
            return self._segments[0].target
        segment = self._segments[at]
        return segment.target + max(0, min(source - segment.source, segment.length) - segment.dip)

    def in_both(self, first_source: int, first_target: int) -> tuple[int, int] | None:
        """The first message that both still have, and whose place is known exactly: its offsets. None: there is none.

        `first_source` and `first_target` are where the partition begins by now on both sides.
        """
        for one in self._segments:
            skipped = max(0, first_source - one.source, first_target - one.target)
            if skipped < (1 if one.slack else one.length):
                return one.source + skipped, one.target + skipped
        return None
