"""Where a message of the source is in the target. Pure.

Offsets differ: the source may have lost its beginning, have gaps (compaction, transactions), and the target may have had other
messages before. The map is *segments*, each ``(source, target, length)``: so many messages in a row whose offsets follow each
other on both sides. A partition without gaps is one segment.

`translated` answers for a committed offset, which names the next message to read: the place of the first copied message at or
after it. A group that goes on there misses nothing and reads nothing twice.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

MOST_SEGMENTS = 200
"""Older ones are forgotten; offsets before the first that is known are not translated."""


class Segment(NamedTuple):
    """Messages in a row."""

    source: int
    target: int
    length: int


class OffsetMap:
    """Of one partition; grows at its end."""

    def __init__(self, segments: Iterable[Segment] = ()) -> None:
        self._segments = [Segment(*one) for one in segments]

    @property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(self._segments)

    def add(self, source: int, target: int) -> None:
        """A message was copied. Offsets grow, on both sides."""
        if self._segments:
            last = self._segments[-1]
            if (source, target) == (last.source + last.length, last.target + last.length):
                self._segments[-1] = last._replace(length=last.length + 1)
                return
        self._segments.append(Segment(source, target, 1))
        del self._segments[:-MOST_SEGMENTS]

    def translated(self, source: int) -> int | None:
        """The place of the first copied message at or after this offset; after the last one: the end. None: before all."""
        at = bisect_right(self._segments, source, key=lambda one: one.source) - 1
        if at < 0:
            return None
        segment = self._segments[at]
        if source < segment.source + segment.length:
            return segment.target + source - segment.source
        if at + 1 < len(self._segments):
            return self._segments[at + 1].target
        return segment.target + segment.length
