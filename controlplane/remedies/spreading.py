"""Which of an instance's partitions another replica should lead, so that its brokers carry alike. Pure.

Only a replica that is in sync takes a lead, so nothing is copied. Nobody counts flow by partition: what an instance has on a
broker falls on the partitions that it leads there, by topic as far as it is known who moves what (`Weights`), and in equal parts
within a topic.

Leads go one after the other, each where it makes the squares of what brokers carry, of both directions together, fall most, and
by enough to be worth it (`WORTH`). Partitions in which nothing flows follow then, so that brokers lead alike in number: an idle
instance's limit is divided by that. No partition is moved twice, and `MOST_MOVES` are made at once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

MOST_MOVES = 200
WORTH = 0.05
"""Of what a broker carries on average: less than its square is not worth a change of leaders."""
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
    """Each with its part of what its leader carries."""
    led: dict[int, list[Led]] = defaultdict(list)
    for each in partitions:
        led[each.leader].append(each)
    found = []
    for broker, some in led.items():
        of_topic = Counter(each.topic for each in some)
        for each in some:
            shares = []
            for kind in (0, 1):
                known = {topic: weights.get((broker, topic), (0.0, 0.0))[kind] for topic in of_topic}
                whole = sum(known.values())
                share = known[each.topic] / whole / of_topic[each.topic] if whole else 1 / len(some)
                shares.append(flows.get(broker, (0.0, 0.0))[kind] * share)
            found.append(replace(each, flow=(shares[0], shares[1])))
    return found


def spread(partitions: Iterable[Led], takes: Collection[int]) -> Spread:
    """What to do. `takes`: brokers that may be given a lead."""
    left = sorted(partitions, key=lambda each: (each.topic, each.partition))
    carried: dict[int, list[float]] = {broker: [0.0, 0.0] for broker in sorted(takes)}
    leaders: Counter[int] = Counter(dict.fromkeys(sorted(takes), 0))
    for each in left:
        for kind in (0, 1):
            carried.setdefault(each.leader, [0.0, 0.0])[kind] += each.flow[kind]
        leaders[each.leader] += 1
    before = _carried(carried, leaders)
    worth = sum((WORTH * sum(each[kind] for each in carried.values()) / max(1, len(carried))) ** 2 for kind in (0, 1))
    leads: list[Lead] = []
    while len(leads) < MOST_MOVES:
        found = _best(left, takes, carried, worth) or _idle(left, takes, leaders)
        if found is None:
            break
        each, to = found
        left.remove(each)
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


def _best(
    left: Sequence[Led], takes: Collection[int], carried: Mapping[int, Sequence[float]], worth: float
) -> tuple[Led, int] | None:
    """By which the squares fall most; of equals the first by name."""
    best, found = -worth, None
    for each in left:
        if not any(each.flow):
            continue
        for to in _targets(each, takes):
            change = sum(
                2 * each.flow[kind] * (carried[to][kind] - carried[each.leader][kind] + each.flow[kind])
                for kind in (0, 1)
            )
            if change < best:
                best, found = change, (each, to)
    return found


def _idle(left: Sequence[Led], takes: Collection[int], leaders: Mapping[int, int]) -> tuple[Led, int] | None:
    """One in which nothing flows, from who leads most to who leads least, where these are two or more apart."""
    best, found = 1, None
    for each in left:
        if any(each.flow):
            continue
        for to in _targets(each, takes):
            if leaders[each.leader] - leaders[to] > best:
                best, found = leaders[each.leader] - leaders[to], (each, to)
    return found
