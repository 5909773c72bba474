"""A whole shared out in parts, in whole numbers: what topics used on a day, among parts of that day. Pure.

Of a folded day it is known what each topic used, and what the instance used in each hour, not which topic did in which hour.
Where a bill by topic is cut within a day, each part of the day has so much of each topic as is its share. Nothing is lost or made
by rounding: a topic's parts add up to its day, and the topics of a part to what the instance used in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def shared_out(owners: Mapping[str, int], parts: Sequence[int]) -> list[dict[str, int]]:
    """For each part how much of it is whose. The parts come to as much as the owners have; what is beyond is left out.

    Part after part, in proportion to what owners have left: a share rounded up is no more than that.
    """
    left = dict(sorted(owners.items()))
    found = []
    for part in parts:
        found.append(_taken(left, part))
        for owner, taken in found[-1].items():
            left[owner] -= taken
    return found


def _taken(left: Mapping[str, int], part: int) -> dict[str, int]:
    whole = sum(left.values())
    part = min(part, whole)
    if not whole:
        return dict.fromkeys(left, 0)
    shares = {owner: divmod(has * part, whole) for owner, has in left.items()}
    taken = {owner: share for owner, (share, _) in shares.items()}
    missing = part - sum(taken.values())
    for owner in sorted(shares, key=lambda each: -shares[each][1])[:missing]:  # sorted() keeps names in their order
        taken[owner] += 1
    return taken
