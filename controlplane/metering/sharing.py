"""A whole shared out in parts, in whole numbers: what topics used on a day, among parts of that day. Pure.

Of a folded day it is known what each topic used, and what the instance used in each hour, not which topic did in which hour.
Where a bill by topic is cut within a day, each part of the day has so much of each topic as is its share. Nothing is lost or made
by rounding: a topic's parts add up to its day, and the topics of a part to what the instance used in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quota.core import remainders


def shared_out(owners: Mapping[str, int], parts: Sequence[int]) -> list[dict[str, int]]:
    """For each part how much of it is whose. The parts come to as much as the owners have; what is beyond is left out.

    Part after part, in proportion to what owners have left: a share rounded up is no more than that.
    """
    left, found = dict(owners), []
    for part in parts:
        whole = sum(left.values())
        taken = remainders.shared(min(part, whole), left) if whole else dict.fromkeys(left, 0)
        found.append(taken)
        left = {owner: has - taken[owner] for owner, has in left.items()}
    return found
