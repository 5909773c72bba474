"""How far brokers are from what they are to have: bounds of each goal, and a penalty for what is outside of them. Pure.

Brokers within `margin_percent` of the average are alike: nobody copies a terabyte for the last percent, and a goal that
comes later has that much room. Of disks the average is a part of each broker's own size. What tenants have bought has no
average: a broker is to have no more of it than it can carry.

A *score* is the sum of squares of what is outside the bounds. Squares, so that taking from the fullest counts most. Whole
numbers, so that each move makes a score smaller or does not: planning ends, and ends at the same place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.rebalancing.planner.model import Goal

if TYPE_CHECKING:
    from collections.abc import Sequence

LED = (Goal.LEADERS, Goal.PRODUCE, Goal.CONSUME, Goal.BANDWIDTH)
"""Goals whose load is where a partition is led; of the others it is where a replica is."""
NO_BOUND = 2**100

Bounds = tuple[int, int]


def penalty(load: int, bounds: Bounds) -> int:
    """Of one broker."""
    low, high = bounds
    if load > high:
        return (load - high) * (load - high)
    if load < low:
        return (low - load) * (low - load)
    return 0


def bounds_of(
    goal: Goal, loads: Sequence[int], is_open: Sequence[bool], room: Sequence[int | None], margin_percent: int
) -> list[Bounds]:
    """Of every broker. Those that are closed for this goal have none: they keep, or lose, what they have."""
    free = (0, NO_BOUND)
    if goal is Goal.BANDWIDTH:
        return [(0, most) if mine and most is not None else free for mine, most in zip(is_open, room, strict=True)]
    shares = _shares(goal, is_open, room)
    whole = sum(shares)
    if not whole:
        return [free] * len(loads)
    total = sum(load for load, mine in zip(loads, is_open, strict=True) if mine)
    return [
        _around(total * share, whole, margin_percent) if mine else free
        for share, mine in zip(shares, is_open, strict=True)
    ]


def _around(part: int, whole: int, margin_percent: int) -> Bounds:
    """The average, part / whole, with the margin on both sides; whole numbers on both sides of it are always within."""
    low = -(-part * (100 - margin_percent) // (100 * whole))
    high = part * (100 + margin_percent) // (100 * whole)
    return min(low, part // whole), max(high, -(-part // whole))


def _shares(goal: Goal, is_open: Sequence[bool], room: Sequence[int | None]) -> list[int]:
    """In which proportion brokers are to have it: alike, or of disks by their sizes where all are known."""
    sizes = [size for size, mine in zip(room, is_open, strict=True) if mine]
    if goal is not Goal.DISK or not all(sizes):
        return [int(mine) for mine in is_open]
    return [size or 0 if mine else 0 for size, mine in zip(room, is_open, strict=True)]
