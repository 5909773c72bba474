"""What an alarm can watch, and what its rule may say. Pure.

Two kinds of things are watched. A *health reason* is there or not (`controlplane.health.rules` has the table): its value is
1 or 0, and a rule about it has neither comparison nor threshold. A *figure* is a number that is compared with a threshold:

====================  =====  ==================================================================================
figure                unit   what it is
====================  =====  ==================================================================================
storage_used_percent  %      bytes on disk, all replicas, of the storage that was bought
produce_percent       %      what flows in, of the produce limit; over 100 where a limit was lowered just now
consume_percent       %      what flows out, of the consume limit
connections                  open connections of clients, over all brokers
health_level                 0 healthy, 1 degraded, 2 critical
====================  =====  ==================================================================================

A value of None is no data: the flow master or ZooKeeper does not answer, or a limit that a percentage would be of is not there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from controlplane.core.errors import FieldProblem
from controlplane.core.text import name_problem
from controlplane.health.rules import CODES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

MOST_RULES, MOST_RECEIVERS = 50, 10
"""Of an instance."""
LONGEST_DURATION_S = 24 * 3600
LEAST_REPEAT_S, MOST_REPEAT_S = 300, 7 * 24 * 3600
LONGEST_SILENCE_S = 30 * 24 * 3600
MOST_THRESHOLD = 1_000_000_000


class Comparison(StrEnum):
    """How a figure's value is to the threshold while an alarm's condition holds."""

    ABOVE = "above"
    AT_LEAST = "at_least"
    BELOW = "below"
    AT_MOST = "at_most"


COMPARISONS = [comparison.value for comparison in Comparison]
_HOLDS: Mapping[Comparison, Callable[[float, float], bool]] = {
    Comparison.ABOVE: lambda value, threshold: value > threshold,
    Comparison.AT_LEAST: lambda value, threshold: value >= threshold,
    Comparison.BELOW: lambda value, threshold: value < threshold,
    Comparison.AT_MOST: lambda value, threshold: value <= threshold,
}


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that can be watched. `title` is what a sentence about it begins with, and `verb` goes on."""

    title: str
    unit: str
    verb: str = "is"


FIGURES = {
    "storage_used_percent": Figure("Storage used", "%"),
    "produce_percent": Figure("Produce flow", "%"),
    "consume_percent": Figure("Consume flow", "%"),
    "connections": Figure("Connections", "", "are"),
    "health_level": Figure("Health level", ""),
}
REASONS = {
    "storage_full": "Storage is full",
    "partitions_without_leader": "Partitions without a leader",
    "route_down": "A route is not served",
    "storage_nearly_full": "Storage is nearly full",
    "partitions_under_replicated": "Partitions are under-replicated",
    "throttled_under_limit": "Throttled below its limit",
    "change_not_in_force": "A change is not in force",
    "flow_unknown": "Current figures are not known",
    "cluster_unknown": "Routes are not known",
    "metering_behind": "Usage is behind",
}
"""Health reasons in words, in the order of their table."""
WATCHED = (*CODES, *FIGURES)


@dataclass(frozen=True, slots=True)
class Rule:
    """When an alarm fires, and how often it says so. A figure has comparison and threshold, a reason has neither."""

    watch: str
    comparison: Comparison | None = None
    threshold: float | None = None
    duration_s: int = 0  # for so long it must hold
    repeat_s: int | None = None  # None: it is said once

    @property
    def unit(self) -> str:
        """Of its values; empty where they have none."""
        return FIGURES[self.watch].unit if self.watch in FIGURES else ""

    def holds(self, value: float | None) -> bool | None:
        """Whether the condition holds of a value; None: nobody knows."""
        if value is None:
            return None
        if self.comparison is None or self.threshold is None:
            return value > 0
        return _HOLDS[self.comparison](value, self.threshold)


def rule_problems(members: Mapping[str, Any], *, receivers: Iterable[str] = ()) -> list[FieldProblem]:
    """Everything that is wrong with a rule, by field. `members` has all of it; `receivers` are those that there are."""
    problems = [
        *_named(members),
        *_watched(members),
        *_whole("duration_s", members["duration_s"], 0, LONGEST_DURATION_S),
        *_receivers(members["receivers"], set(receivers)),
    ]
    if members["repeat_s"] is not None:
        problems += _whole("repeat_s", members["repeat_s"], LEAST_REPEAT_S, MOST_REPEAT_S)
    return problems


def _named(members: Mapping[str, Any]) -> Iterable[FieldProblem]:
    problem = name_problem(members["name"])
    if problem is not None:
        yield FieldProblem("name", problem)


def _watched(members: Mapping[str, Any]) -> Iterable[FieldProblem]:
    watch, comparison, threshold = members["watch"], members["comparison"], members["threshold"]
    if watch not in WATCHED:
        yield FieldProblem("watch", f"must be one of {', '.join(WATCHED)}")
    elif watch in CODES:
        for name in ("comparison", "threshold"):
            if members[name] is not None:
                yield FieldProblem(name, f"{watch} is there or not: leave it out")
    else:
        if comparison is None:
            yield FieldProblem("comparison", f"{watch} is compared: say how")
        elif comparison not in COMPARISONS:
            yield FieldProblem("comparison", f"must be one of {', '.join(COMPARISONS)}")
        if threshold is None:
            yield FieldProblem("threshold", f"{watch} is compared: say with what")
        elif not math.isfinite(threshold) or not 0 <= threshold <= MOST_THRESHOLD:
            yield FieldProblem("threshold", f"must be from 0 to {MOST_THRESHOLD}")


def _whole(name: str, value: int, least: int, most: int) -> Iterable[FieldProblem]:
    if not least <= value <= most:
        yield FieldProblem(name, f"must be a whole number of seconds from {least} to {most}")


def _receivers(wanted: list[str], known: set[str]) -> Iterable[FieldProblem]:
    if len(wanted) > MOST_RECEIVERS:
        yield FieldProblem("receivers", f"at most {MOST_RECEIVERS}")
    for index, each in enumerate(wanted):
        if each not in known:
            yield FieldProblem(f"receivers.{index}", "the instance has no such receiver")
        elif each in wanted[:index]:
            yield FieldProblem(f"receivers.{index}", "is given twice")
