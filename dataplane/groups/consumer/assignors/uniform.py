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
    from uuid import UUID

    from dataplane.groups.consumer.model import Assignment, Place


def assign_uniform(members: Subscribers, sizes: Sizes) -> dict[str, Assignment]:
    """See the file's text."""
    if not members:
        return {}
    kept = _kept(members, sizes)
    taken = {place for places in kept.values() for place in places}
    alike = {subscriber.topics for subscriber in members.values()}
    wanted = frozenset().union(*alike)
    free = [
        (topic, p) for topic, size in sizes.items() if topic in wanted for p in range(size) if (topic, p) not in taken
    ]
    if len(alike) == 1:
        _fill_equally(kept, free)
        return {member: _assignment(places) for member, places in kept.items()}
    return _Uneven(members, sizes, kept).assign(free)


def _kept(members: Subscribers, sizes: Sizes) -> dict[str, list[Place]]:
    """What each member had and still subscribes to; of what two had, which only a strange log says, the first keeps it."""
    seen: set[Place] = set()
    kept: dict[str, list[Place]] = {}
    for member, subscriber in members.items():
        places = [
            (topic, p)
            for topic, partitions in subscriber.had.items()
            if topic in subscriber.topics
            for p in partitions
            if p < sizes.get(topic, 0) and (topic, p) not in seen
        ]
        seen.update(places)
        kept[member] = places
    return kept


def _assignment(places: list[Place]) -> Assignment:
    partitions: dict[UUID, list[int]] = {}
    for topic, partition in places:
        partitions.setdefault(topic, []).append(partition)
    return as_assignment(partitions)


def _fill_equally(kept: dict[str, list[Place]], free: list[Place]) -> None:
    total = len(free) + sum(map(len, kept.values()))
    share, larger = divmod(total, len(kept))
    ranked = sorted(kept, key=lambda member: -len(kept[member]))
    shares = {member: share + (rank < larger) for rank, member in enumerate(ranked)}
    for member, places in kept.items():
        free += places[shares[member] :]
        del places[shares[member] :]
    left = iter(free)
    for member, places in kept.items():
        places.extend(islice(left, shares[member] - len(places)))


class _Uneven:
    """Subscriptions differ."""

    def __init__(self, members: Subscribers, sizes: Sizes, kept: dict[str, list[Place]]) -> None:
        self._has = {member: dict.fromkeys(places) for member, places in kept.items()}
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
        return {member: _assignment(list(places)) for member, places in self._has.items()}

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
