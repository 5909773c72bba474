"""Whether how a cluster is loaded calls for a rebalance that nobody has asked for. Pure.

What is judged is the document that `kept` has of a cluster: what each broker had of each goal when a task saw it last.

=========== ==============================================================================================
new_broker  a broker that is there has no replicas, while the others have some
skew        a broker has so many percent more of something than the average of those that are compared
=========== ==============================================================================================

Brokers that operators have set aside are compared with none: a drained one would be a new one for ever, and pull averages down.
Where the average is below its floor nothing is skewed: among five leaders one more is much, and is of no weight.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from controlplane.rebalancing.planner.model import Goal

MIB, GIB = 2**20, 2**30
FLOWS = (Goal.PRODUCE, Goal.CONSUME)
FLOORS: Mapping[Goal, int] = {
    Goal.LEADERS: 10,
    Goal.PRODUCE: MIB,
    Goal.CONSUME: MIB,
    Goal.REPLICAS: 10,
    Goal.DISK: GIB,
}
"""The average of a broker, from which on a difference counts. What tenants have bought is bounded, and need not be alike."""


class Cause(StrEnum):
    """Why a rebalance begins by itself."""

    NEW_BROKER = "new_broker"
    SKEW = "skew"


@dataclass(frozen=True, slots=True)
class Found:
    """A cause, in a word and in a sentence."""

    cause: Cause
    text: str


@dataclass(frozen=True, slots=True)
class Aside:
    """Brokers that operators have drained, cordoned or demoted, by id. One that is drained is in neither of the others."""

    draining: frozenset[int] = frozenset()
    cordoned: frozenset[int] = frozenset()
    demoted: frozenset[int] = frozenset()

    @property
    def brokers(self) -> frozenset[int]:
        """All of them."""
        return self.draining | self.cordoned | self.demoted


def aside_of(history: Iterable[Mapping[str, Any]], known: Iterable[int]) -> Aside:
    """What still holds of what operators wished, by the wishes of the rebalances that were begun, the newest first.

    One over the whole cluster says it anew for every broker. One of some instances, or of leaders alone, moves no more than
    these: what was wished before it holds as well. `known` are the brokers that there are.
    """
    draining: set[int] = set()
    cordoned: set[int] = set()
    demoted: set[int] = set()
    for wishes in history:
        draining |= set(wishes.get("draining", ()))
        cordoned |= set(wishes.get("cordoned", ()))
        demoted |= set(wishes.get("demoted", ()))
        if not wishes.get("instances") and not wishes.get("leaders_only"):
            break
    there = frozenset(known)
    return Aside(there & draining, there & (cordoned - draining), there & (demoted - draining))


def is_calm(document: Mapping[str, Any]) -> bool:
    """Whether every broker that has replicas is there. While one is away its leads are elsewhere, and come back with it."""
    return not any(row["away"] and row["loads"][Goal.REPLICAS] for row in document["brokers"])


def cause_of(
    document: Mapping[str, Any],
    aside: Aside,
    *,
    new_brokers: bool,
    skew_percent: int | None,
    with_flows: bool = True,
) -> Found | None:
    """The first cause that there is; None: none. `with_flows`: whether flows are of now, and may be compared."""
    loads = {
        row["broker"]: row["loads"]
        for row in document["brokers"]
        if not row["away"] and row["broker"] not in aside.brokers
    }
    if len(loads) < 2:
        return None
    empty = _new_broker(loads) if new_brokers else None
    if empty is not None:
        return Found(Cause.NEW_BROKER, _new_broker_text(empty))
    if skew_percent is None:
        return None
    skews = [(*_skew(loads, goal), goal) for goal in FLOORS if with_flows or goal not in FLOWS]
    percent, broker, goal = max(skews, key=lambda skew: skew[0])  # of equals the goal that is served first
    return Found(Cause.SKEW, _skew_text(goal, broker, percent)) if percent >= skew_percent else None


def _new_broker(loads: Mapping[int, Mapping[str, int]]) -> int | None:
    counts = [load[Goal.REPLICAS] for load in loads.values() if load[Goal.REPLICAS]]
    if not counts or sum(counts) < FLOORS[Goal.REPLICAS] * len(counts):
        return None
    return min((broker for broker, load in loads.items() if not load[Goal.REPLICAS]), default=None)


def _skew(loads: Mapping[int, Mapping[str, int]], goal: Goal) -> tuple[int, int]:
    """By how many percent the broker that has most is above the average, and which it is."""
    broker = min(loads, key=lambda each: (-loads[each][goal], each))
    average = sum(load[goal] for load in loads.values()) / len(loads)
    return (0 if average < FLOORS[goal] else round(100 * (loads[broker][goal] - average) / average)), broker


def _new_broker_text(broker: int) -> str:
    return f"broker {broker} has no replicas yet"


def _skew_text(goal: Goal, broker: int, percent: int) -> str:
    match goal:
        case Goal.LEADERS:
            return f"broker {broker} leads {percent} % more partitions than the average"
        case Goal.PRODUCE:
            return f"producers bring broker {broker} {percent} % more than the average"
        case Goal.CONSUME:
            return f"consumers take {percent} % more from broker {broker} than the average"
        case Goal.REPLICAS:
            return f"broker {broker} has {percent} % more replicas than the average"
        case _:
            return f"the disk of broker {broker} holds {percent} % more than the average"
