"""`range`: of each topic every subscriber gets neighbouring partitions, the first ones one more; what it had it keeps.

Topic by topic, as Kafka does it: where several topics have as many partitions and the same subscribers, the same numbers go
to the same member, so that it can join them.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from dataplane.groups.consumer.assignors.subscription import Sizes, Subscribers, as_assignment

if TYPE_CHECKING:
    from uuid import UUID

    from dataplane.groups.consumer.model import Assignment


def assign_range(members: Subscribers, sizes: Sizes) -> dict[str, Assignment]:
    """See the file's text."""
    shares: dict[str, dict[UUID, list[int]]] = {member: {} for member in members}
    for topic, size in sizes.items():
        subscribers = [member for member, subscriber in members.items() if topic in subscriber.topics]
        if subscribers:
            for member, partitions in _of_topic(members, subscribers, topic, size).items():
                shares[member][topic] = partitions
    return {member: as_assignment(partitions) for member, partitions in shares.items()}


def _of_topic(members: Subscribers, subscribers: list[str], topic: UUID, size: int) -> dict[str, list[int]]:
    share, larger = divmod(size, len(subscribers))
    taken: set[int] = set()
    kept: dict[str, list[int]] = {}
    shares: dict[str, int] = {}
    for member in subscribers:
        had = [p for p in sorted(members[member].had.get(topic, ())) if p < size and p not in taken]
        shares[member] = share + (len(had) > share and larger > 0)  # who has more keeps one more while there are any
        larger -= shares[member] - share
        kept[member] = had[: shares[member]]
        taken.update(kept[member])
    free = iter([p for p in range(size) if p not in taken])
    for member in subscribers:
        if larger > 0 and shares[member] == share:
            shares[member] += 1
            larger -= 1
        kept[member] += islice(free, shares[member] - len(kept[member]))
    return kept
