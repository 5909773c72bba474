"""Which partitions a look goes through, of a topic that may have more than fit, or some that have no leader. Pure.

A cursor names an offset for MOST_PARTITIONS partitions at most, or it would be too long for an address. The others are
`unseen`: one bit each, and one moment for all. When a look comes to one of them, it begins there with the first record of that
moment or later, or ends before it on the way to older messages. So what has no leader at the first look comes with a later page,
and so does what there was no room for: a partition that is at its end makes room.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from controlplane.messages.looking import Direction

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from controlplane.kafka.group_door import Span
    from controlplane.messages.looking import Position

MOST_PARTITIONS = 100
"""That one look goes through."""


def firsts(position: Position, spans: Mapping[int, Span], at: Mapping[int, int | None]) -> dict[int, int]:
    """Where partitions begin that no look has been through and that have a leader now.

    `at`: the first record of `position.since_ms` or later, None: there is none; not asked for where that is 0.
    """
    found = {}
    for partition in sorted(position.unseen & spans.keys()):
        if position.since_ms == 0:
            found[partition] = spans[partition].start
        elif partition in at:
            offset = at[partition]
            found[partition] = spans[partition].end if offset is None else offset
    return found


def chosen(
    position: Position,
    spans: Mapping[int, Span],
    begins: Mapping[int, int],
    ordered: Callable[[Collection[int]], Collection[int]] = sorted,
) -> tuple[Position, list[int]]:
    """The position of this look, and the partitions that have something to show and have to wait for a later one.

    `begins` are `firsts`. `ordered`: who comes first of partitions that are not all taken.
    """
    if len(position.offsets) + len(begins) <= MOST_PARTITIONS:
        return _with(position, position.offsets, begins), []
    new = [partition for partition, offset in begins.items() if _has_more(position, spans[partition], offset)]
    kept = dict(position.offsets)
    if len(kept) + len(new) > MOST_PARTITIONS:  # what is at its end makes room; what has no leader may have more
        kept = {
            partition: offset
            for partition, offset in kept.items()
            if partition not in spans or _has_more(position, spans[partition], offset)
        }
    room = MOST_PARTITIONS - len(kept)
    if len(new) > room:
        new = list(ordered(new))
    taken, waiting = new[:room], new[room:]
    return _with(position, kept, {partition: begins[partition] for partition in taken}), sorted(waiting)


def _has_more(position: Position, span: Span, offset: int) -> bool:
    """In this direction."""
    return span.start < span.end and (
        offset > span.start if position.direction is Direction.OLDER else offset < span.end
    )


def _with(position: Position, kept: Mapping[int, int], new: Mapping[int, int]) -> Position:
    offsets = dict(sorted({**kept, **new}.items()))
    return replace(position, offsets=offsets, unseen=position.unseen - offsets.keys())
