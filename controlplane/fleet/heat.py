"""From rows of numbers to what a page draws: outlines of all places of one level, and what a level means. Pure.

25,000 places as elements of a page would be megabytes and seconds. So places of one level are one path, in which neighbours of a
row are one stroke; the page has eight paths, whatever there is. A place is one by one in the units of the drawing.

Levels are 1 to LEVELS by the square root of a number's part of the largest: a map of flows would else be one dark place and
nothing. 0 is nothing, which is the ground; GAP is what is not known.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

Number = float | None
LEVELS = 7
GAP = -1


@dataclass(frozen=True, slots=True)
class Heat:
    """A drawing of `width` x `height` places."""

    width: int
    height: int
    paths: tuple[tuple[int, str], ...]  # by level, GAP first: SVG's path data
    bounds: tuple[float, ...]  # the largest number of each level from 1 on; none where there is nothing but nothing

    @property
    def is_empty(self) -> bool:
        """Nothing is known of any place."""
        return all(level == GAP for level, _ in self.paths) or not self.height


def heat_of(rows: Sequence[Sequence[Number]], most: float | None = None) -> Heat:
    """`most`: the end of the scale; None: the largest number there is. Rows are equally long."""
    height, width = len(rows), len(rows[0]) if rows else 0
    top = most if most is not None else max((value for row in rows for value in row if value is not None), default=0.0)
    bounds = tuple(top * (level / LEVELS) ** 2 for level in range(1, LEVELS + 1)) if top > 0 else ()
    strokes: dict[int, list[str]] = {}
    for y, row in enumerate(rows):
        x = 0
        for level, same in groupby(_level(value, bounds) for value in row):
            length = sum(1 for _ in same)
            if level:
                strokes.setdefault(level, []).append(f"M{x} {y}h{length}v1h-{length}z")
            x += length
    known = any(value is not None for row in rows for value in row)
    paths = tuple((level, "".join(strokes[level])) for level in sorted(strokes))
    if known and not any(level > 0 for level in strokes):
        paths = (*paths, (0, ""))  # all is nothing, which is something that is known
    return Heat(width, height, paths, bounds)


def _level(value: Number, bounds: tuple[float, ...]) -> int:
    if value is None:
        return GAP
    if value <= 0 or not bounds:
        return 0
    return min(bisect_left(bounds, value) + 1, LEVELS)
