"""Which of an instance's partitions another replica should lead, so that its brokers carry alike. Pure.

Only a replica that is in sync takes a lead, so nothing is copied. Nobody counts flow by partition: what an instance has on a
broker falls on the partitions that it leads there, by topic as far as it is known who moves what (`Weights`), and in equal parts
within a topic.

Leads go one after the other, each where it makes the squares of what brokers carry, of both directions together, fall most, and
by enough to be worth it (`WORTH`). Partitions in which nothing flows follow then, so that brokers lead alike in number: an idle
instance's limit is divided by that. No partition is moved twice, and `MOST_MOVES` are made at once.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

MOST_MOVES = 200
WORTH = 0.05
"""Of what a broker carries on average: less than its square is not worth a change of leaders."""
_LEAST_APART = 2
Flow = tuple[float, float]
"""Produced and consumed, in bytes a second."""
Weights = Mapping[tuple[int, str], Flow]
"""What flows of a topic on a broker, as far as it is known; the ratios count alone."""


@dataclass(frozen=True, slots=True)
class Led:
    """One partition. `flow` is its part of what its leader carries."""

    topic: str
    partition: int
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    flow: Flow = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Lead:
    """One change of leaders."""

    topic: str
    partition: int
    before: tuple[int, ...]  # replicas, the one that is to lead first
    after: tuple[int, ...]
    leader: int  # who leads it now, which need not be the first

    @property
    def to(self) -> int:
        """Who shall lead."""
        return self.after[0]

    @property
    def name(self) -> str:
        """As a person says it."""
        return f"{self.topic}/{self.partition}"


@dataclass(frozen=True, slots=True)
class Carried:
    """One broker: partitions that it leads, and what it carries, in bytes a second."""

    leaders: int
    produce: int
    consume: int


@dataclass(frozen=True, slots=True)
class Spread:
    """What would be done, and what each broker carries before and afterwards."""

    leads: tuple[Lead, ...]
    before: Mapping[int, Carried]
    after: Mapping[int, Carried]


def with_flow(partitions: Sequence[Led], flows: Mapping[int, Flow], weights: Weights) -> list[Led]:
    """Each with its part of what its leader carries; as they are, where no flow is known."""
    if not flows:
        return list(partitions)
    led: dict[int, list[Led]] = defaultdict(list)
    for each in partitions:
        led[each.leader].append(each)
    found = []
    for broker, some in led.items():
        of_topic = Counter(each.topic for each in some)
        carried = flows.get(broker, (0.0, 0.0))
        by_topic = [_by_topic(of_topic, broker, kind, weights) for kind in (0, 1)]
        for each in some:
            produced, consumed = (carried[kind] * by_topic[kind][each.topic] for kind in (0, 1))
            found.append(replace(each, flow=(produced, consumed)))
    return found


def _by_topic(of_topic: Mapping[str, int], broker: int, kind: int, weights: Weights) -> dict[str, float]:
    """What part of a broker's flow each partition of a topic has there. `of_topic`: how many partitions are led there."""
    known = {topic: weights.get((broker, topic), (0.0, 0.0))[kind] for topic in of_topic}
    whole, count = sum(known.values()), sum(of_topic.values())
    return {topic: known[topic] / whole / of_topic[topic] if whole else 1 / count for topic in of_topic}


def spread(partitions: Iterable[Led], takes: Collection[int]) -> Spread:
    """What to do. `takes`: brokers that may be given a lead."""
    ordered = sorted(partitions, key=lambda each: (each.topic, each.partition))
    carried: dict[int, list[float]] = {broker: [0.0, 0.0] for broker in sorted(takes)}
    leaders: Counter[int] = Counter(dict.fromkeys(sorted(takes), 0))
    for each in ordered:
        for kind in (0, 1):
            carried.setdefault(each.leader, [0.0, 0.0])[kind] += each.flow[kind]
        leaders[each.leader] += 1
    before = _carried(carried, leaders)
    worth = sum((WORTH * sum(each[kind] for each in carried.values()) / max(1, len(carried))) ** 2 for kind in (0, 1))
    choices = _Choices(ordered, takes)
    leads: list[Lead] = []
    while len(leads) < MOST_MOVES:
        found = choices.best(carried, worth) or choices.idle(leaders)
        if found is None:
            break
        each, to = found
        for kind in (0, 1):
            carried[each.leader][kind] -= each.flow[kind]
            carried[to][kind] += each.flow[kind]
        leaders[each.leader] -= 1
        leaders[to] += 1
        after = (to, *(broker for broker in each.replicas if broker != to))
        leads.append(Lead(each.topic, each.partition, each.replicas, after, each.leader))
    return Spread(tuple(leads), before, _carried(carried, leaders))


def _carried(carried: Mapping[int, Sequence[float]], leaders: Mapping[int, int]) -> dict[int, Carried]:
    return {
        broker: Carried(leaders[broker], max(0, round(flow[0])), max(0, round(flow[1])))
        for broker, flow in sorted(carried.items())
        if leaders[broker] or flow[0] or flow[1]
    }


def _targets(each: Led, takes: Collection[int]) -> Iterable[int]:
    return (broker for broker in each.replicas if broker != each.leader and broker in each.in_sync and broker in takes)


_Place = tuple[int, int]
"""Of a partition in its order, and of a target among those of the partition: of equals the least comes first."""
_Way = tuple[int, int]
"""From which leader to which."""


class _Choices:
    """Partitions that may be moved, those together that are alike: between the same two brokers, with the same flow.

    Of such the first by name stands for all, so a move costs a look at each kind, and not at each of very many partitions.
    """

    def __init__(self, ordered: Sequence[Led], takes: Collection[int]) -> None:
        self._ordered = ordered
        self._moved: set[int] = set()
        self._ways: dict[_Way, dict[Flow, deque[_Place]]] = defaultdict(lambda: defaultdict(deque))
        for number, each in enumerate(ordered):
            for place, to in enumerate(_targets(each, takes)):
                self._ways[each.leader, to][each.flow].append((number, place))

    def best(self, carried: Mapping[int, Sequence[float]], worth: float) -> tuple[Led, int] | None:
        """By which the squares fall most; of equals the first by name."""
        found: tuple[float, _Place, int] | None = None
        for (leader, to), alike in self._ways.items():
            apart = carried[to][0] - carried[leader][0], carried[to][1] - carried[leader][1]
            if min(apart) >= 0:
                continue
            for flow, places in list(alike.items()):
                if not any(flow):
                    continue
                change = sum(2 * flow[kind] * (apart[kind] + flow[kind]) for kind in (0, 1))
                if change >= -worth or (found is not None and change > found[0]):
                    continue
                first = self._first(places)
                if first is None:
                    del alike[flow]
                elif found is None or (change, first) < found[:2]:
                    found = change, first, to
        return None if found is None else self._taken(found[1], found[2])

    def idle(self, leaders: Mapping[int, int]) -> tuple[Led, int] | None:
        """One in which nothing flows, from who leads most to who leads least, where these are two or more apart."""
        found: tuple[int, _Place, int] | None = None
        for (leader, to), alike in self._ways.items():
            apart = leaders[leader] - leaders[to]
            if apart < _LEAST_APART or (found is not None and -apart > found[0]):
                continue
            for places in (places for flow, places in alike.items() if not any(flow)):
                first = self._first(places)
                if first is not None and (found is None or (-apart, first) < found[:2]):
                    found = -apart, first, to
        return None if found is None else self._taken(found[1], found[2])

    def _first(self, places: deque[_Place]) -> _Place | None:
        """Of those that were not moved."""
        while places and places[0][0] in self._moved:
            places.popleft()
        return places[0] if places else None

    def _taken(self, place: _Place, to: int) -> tuple[Led, int]:
        self._moved.add(place[0])
        return self._ordered[place[0]], to
