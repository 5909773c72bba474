"""A whole number shared out in whole numbers, by the largest remainder. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Mapping


def shared(whole: int, weights: Mapping[str, int]) -> dict[str, int]:
    """Each one's share is rounded down, and what is left goes one by one to those that lost most by the rounding.

    Of equal ones to the larger, then by name: so shares add up to the whole, and each is less than 1 away from its exact amount.
    Raises ValueError where no weight is above 0, or one is below, or the whole is.
    """
    total = sum(weights.values())
    if whole < 0 or total <= 0 or min(weights.values()) < 0:
        raise ValueError("shares need a weight above 0, and none below")
    parts = {name: divmod(whole * weight, total) for name, weight in weights.items()}
    found = {name: share for name, (share, _) in parts.items()}
    left = whole - sum(found.values())
    for name in heapq.nsmallest(left, parts, key=lambda name: (-parts[name][1], -weights[name], name)):
        found[name] += 1
    return found
