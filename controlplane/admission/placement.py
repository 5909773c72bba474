"""On which cluster an instance goes. Pure: (clusters, what it takes of each, what its tenant wishes) -> clusters to try.

Vocabulary. A *candidate* is a cluster as it is now. A *wish* is what a tenant says of the place: zones, in each of which the
cluster has to have brokers, and instances of his own beside which it must not be. Wishes are hard: an instance waits for no
better place later, since nothing moves it.

Strategy. Of those that take new instances, are as is wished, and have room, the one comes first of which the least is sold
afterwards: its *fullness* is the largest part of any resource that would be taken then. So clusters fill up evenly, and what is
not sold is kept where most tenants are. Clusters of which no broker was there when somebody looked last come behind all that have
one, and of equals the oldest first. The order in which candidates are given decides nothing.

What is refused is said with what kept each cluster from it, so that an answer can name the wish that nobody fulfils.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

from controlplane.admission.rules import Amounts, exceeded


class Obstacle(StrEnum):
    """What keeps an instance from a cluster: the first that applies, in this order."""

    CLOSED = "closed"  # cordoned or draining
    ZONES = "zones"  # it has no brokers in one of the zones
    APART = "apart"  # an instance is there beside which it must not be
    FULL = "full"  # too little is left of some resource


@dataclass(frozen=True, slots=True)
class Candidate:
    """A cluster as it is now. Amounts are by resource, as `rules.capacity_of` and `rules.taken_of_cluster` have them."""

    id: int
    capacity: Amounts
    taken: Amounts  # by all of its instances together
    zones: frozenset[str] = frozenset()
    takes_new: bool = True
    is_served: bool = True  # some broker was there when somebody looked last


@dataclass(frozen=True, slots=True)
class Wish:
    """What a tenant wishes, as far as it decides."""

    zones: frozenset[str] = frozenset()
    avoided: frozenset[int] = frozenset()  # clusters with instances beside which it must not be


@dataclass(frozen=True, slots=True)
class Choice:
    """Clusters to try, the best first; and what keeps it from the others."""

    fitting: tuple[int, ...]
    obstacles: Mapping[int, Obstacle] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def full(self) -> tuple[int, ...]:
        """Those that are as is wished and have too little room, in order of their ids."""
        return tuple(sorted(name for name, each in self.obstacles.items() if each is Obstacle.FULL))

    @property
    def unmet(self) -> Obstacle:
        """Where nothing fits: the obstacle of the cluster that comes nearest."""
        order = list(Obstacle)
        return max(self.obstacles.values(), key=order.index, default=Obstacle.CLOSED)


@dataclass(frozen=True, slots=True)
class Leaving:
    """An instance that has to go: what it takes of each cluster, and what its tenant wishes."""

    id: str
    needs: Mapping[int, Amounts]
    wish: Wish
    apart_from: frozenset[str] = frozenset()  # others that leave with it, beside which it must not be put


@dataclass(frozen=True, slots=True)
class Destination:
    """Where one could go; None: nowhere, because of that."""

    instance: str
    cluster: int | None
    obstacle: Obstacle | None = None


def choose(candidates: Iterable[Candidate], needs: Mapping[int, Amounts], wish: Wish) -> Choice:
    """`needs`: what the instance takes, by candidate: of a cluster with more brokers it takes more connections."""
    found, obstacles = [], {}
    for each in candidates:
        obstacle = _obstacle(each, needs[each.id], wish)
        if obstacle is None:
            found.append(each)
        else:
            obstacles[each.id] = obstacle
    found.sort(key=lambda each: (not each.is_served, fullness(each, needs[each.id]), each.id))
    return Choice(tuple(each.id for each in found), obstacles)


def _obstacle(candidate: Candidate, need: Amounts, wish: Wish) -> Obstacle | None:
    if not candidate.takes_new:
        return Obstacle.CLOSED
    if not wish.zones <= candidate.zones:
        return Obstacle.ZONES
    if candidate.id in wish.avoided:
        return Obstacle.APART
    return Obstacle.FULL if exceeded(candidate.capacity, [candidate.taken], after=need) else None


def fullness(candidate: Candidate, need: Amounts) -> float:
    """The largest part of any resource that is sold once the instance is there; infinite where there is none to sell."""
    return max((_part(candidate, need, resource) for resource in candidate.capacity), default=0.0)


def _part(candidate: Candidate, need: Amounts, resource: str) -> float:
    limit = float(candidate.capacity[resource])
    then = math.fsum((float(candidate.taken[resource]), float(need[resource])))
    if limit <= 0:
        return math.inf if then > 0 else 0.0
    return then / limit


def destinations(leaving: Iterable[Leaving], candidates: Sequence[Candidate]) -> list[Destination]:
    """A place for each of these, in their order, as if each went there before the next is looked at.

    It is a plan that can be carried out whole: no cluster is given more than it has. Whoever wants the large ones to find a
    place gives them first.
    """
    there = {each.id: each for each in candidates}
    put: dict[str, int] = {}  # where those went that have a place
    found = []
    for each in leaving:
        beside = frozenset(put[name] for name in each.apart_from if name in put)
        wish = replace(each.wish, avoided=each.wish.avoided | beside)
        choice = choose(there.values(), each.needs, wish)
        if not choice.fitting:
            found.append(Destination(each.id, None, choice.unmet))
            continue
        best = choice.fitting[0]
        put[each.id] = best
        there[best] = replace(there[best], taken=_with(there[best].taken, each.needs[best]))
        found.append(Destination(each.id, best))
    return found


def _with(taken: Amounts, need: Amounts) -> Amounts:
    return {resource: math.fsum((float(amount), float(need[resource]))) for resource, amount in taken.items()}
