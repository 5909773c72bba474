"""`uniform`: numbers of partitions as even as can be, and within that as few moves as can be.

Where all subscribe to the same topics each member's share is known from the beginning: the total divided by the members, and one
more for some. Those that have the most keep the larger shares.

Where subscriptions differ, what is kept and what is free is handed out to whoever has the least among those who subscribe,
topics with the fewest choices last but one: then partitions move from members with more to subscribers with less, as long as
that makes it more even. Each such move lowers the sum of squares, so it ends. Members of the same topics share a heap, so a move
costs the logarithm of the members and not their number.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING

from dataplane.groups.consumer.assignors.subscription import Sizes, Subscribers, as_assignment

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from dataplane.groups.consumer.model import Assignment, Place


_Kept = dict[str, dict["UUID", list[int]]]


def assign_uniform(members: Subscribers, sizes: Sizes) -> dict[str, Assignment]:
    """See the file's text."""
    if not members:
        return {}
    alike = {subscriber.topics for subscriber in members.values()}
    wanted = {topic: size for topic, size in sizes.items() if any(topic in topics for topics in alike)}
    kept, free = _kept(members, wanted)
    if len(alike) > 1:
        return _Uneven(members, wanted, kept).assign(free)
    _fill_equally(kept, free)
    return {member: _assignment(some, members[member].had) for member, some in kept.items()}


def _kept(members: Subscribers, sizes: Sizes) -> tuple[_Kept, list[Place]]:
    """What each member had and still subscribes to, and what nobody has.

    Of what two had, which only a strange log says, the first keeps it.
    """
    taken: dict[UUID, set[int]] = {topic: set() for topic in sizes}
    kept: _Kept = {}
    for member, subscriber in members.items():
        mine = kept[member] = {}
        for topic, partitions in subscriber.had.items():
            if topic in subscriber.topics and topic in sizes:
                seen, size = taken[topic], sizes[topic]
                mine[topic] = [p for p in partitions if p < size and p not in seen]
                seen.update(mine[topic])
    free: list[Place] = []
    for topic, size in sizes.items():
        seen = taken[topic]
        free += [(topic, p) for p in range(size) if p not in seen]
    return kept, free


def _assignment(some: Mapping[UUID, list[int]], had: Assignment) -> Assignment:
    """The very same as before where nothing has changed."""
    made = as_assignment(some)
    return had if made == had else made


def _fill_equally(kept: _Kept, free: list[Place]) -> None:
    counts = {member: sum(map(len, some.values())) for member, some in kept.items()}
    share, larger = divmod(len(free) + sum(counts.values()), len(kept))
    ranked = sorted(kept, key=lambda member: -counts[member])
    shares = {member: share + (rank < larger) for rank, member in enumerate(ranked)}
    for member, some in kept.items():
        surplus = counts[member] - shares[member]
        for topic in reversed(list(some)) if surplus > 0 else ():
            at = max(len(some[topic]) - surplus, 0)
            surplus -= len(some[topic]) - at
            free += [(topic, p) for p in some[topic][at:]]
            del some[topic][at:]
    left = iter(free)
    for member, some in kept.items():
        for topic, partition in islice(left, max(shares[member] - counts[member], 0)):
            some.setdefault(topic, []).append(partition)


class _Uneven:
    """Subscriptions differ."""

    def __init__(self, members: Subscribers, sizes: Sizes, kept: _Kept) -> None:
        self._members = members
        self._has = {
            member: dict.fromkeys((topic, p) for topic, partitions in some.items() for p in partitions)
            for member, some in kept.items()
        }
        self._sizes = sizes
        self._alike: dict[UUID, tuple[str, ...]] = {}  # subscribers of a topic
        for topic in sizes:
            self._alike[topic] = tuple(m for m, subscriber in members.items() if topic in subscriber.topics)
        self._heaps: dict[tuple[str, ...], list[tuple[int, str]]] = {}
        self._heaps_of: dict[str, list[list[tuple[int, str]]]] = {member: [] for member in members}
        for alike in self._alike.values():
            if alike not in self._heaps:
                heap = self._heaps[alike] = [(len(self._has[member]), member) for member in alike]
                heapify(heap)
                for member in alike:
                    self._heaps_of[member].append(heap)

    def assign(self, free: list[Place]) -> dict[str, Assignment]:
        for place in sorted(free, key=self._choices):
            self._give(place, self._least(place[0]))
        while any([self._even_out(member) for member in self._has]):  # noqa: C419 - a whole round each time
            pass
        return {member: self._assignment(member) for member in self._has}

    def _assignment(self, member: str) -> Assignment:
        partitions: dict[UUID, list[int]] = {}
        for topic, partition in self._has[member]:
            partitions.setdefault(topic, []).append(partition)
        return _assignment(partitions, self._members[member].had)

    def _choices(self, place: Place) -> tuple[float, int, int]:
        """Topics of which each subscriber would get the most come first; among those, the ones with fewer subscribers."""
        topic, partition = place
        subscribers = len(self._alike[topic])
        return -self._sizes[topic] / subscribers, subscribers, partition

    def _even_out(self, member: str) -> bool:
        """Give away what somebody with fewer can have. Whether anything was."""
        moved = False
        for place in list(self._has[member]):
            least = self._least(place[0])
            if len(self._has[least]) + 1 < len(self._has[member]):
                del self._has[member][place]
                self._weigh(member)
                self._give(place, least)
                moved = True
        return moved

    def _give(self, place: Place, member: str) -> None:
        self._has[member][place] = None
        self._weigh(member)

    def _weigh(self, member: str) -> None:
        for heap in self._heaps_of[member]:
            heappush(heap, (len(self._has[member]), member))

    def _least(self, topic: UUID) -> str:
        """The subscriber with the fewest; what the heap says of others' past is passed over."""
        heap = self._heaps[self._alike[topic]]
        while len(self._has[heap[0][1]]) != heap[0][0]:
            heappop(heap)
        return heap[0][1]
