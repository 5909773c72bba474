"""What an alarm can watch, and what its rule may say. Pure.

Two kinds of things are watched. A *health reason* is there or not (`controlplane.health.rules` has the table): its value is
1 or 0, and a rule about it has neither comparison nor threshold. A *figure* is a number that is compared with a threshold. Every
metric that there is a history of (`history.metrics`, and `history.lag.rows` for a group) is a figure, by the same name and in the
same unit; beside them there are:

==========================  =====  ============================================================================
figure                      unit   what it is
==========================  =====  ============================================================================
storage_used_percent        %      bytes on disk, all replicas, of the storage that was bought
produce_percent             %      what flows in, of the produce limit; over 100 where a limit was lowered just now
consume_percent             %      what flows out, of the consume limit
under_replicated_partitions        partitions of which not all replicas are in sync
offline_partitions                 partitions without a leader
health_level                       0 healthy, 1 degraded, 2 critical
==========================  =====  ============================================================================

Requests, errors and latencies are those of the last minute that is known, which ended half a minute ago.

A figure of a consumer group is called `group_` and the metric of its history, and its rule names the group; `any_group_` and the
metric is that of whichever group of the instance has most, and a message names that one. `any_broker_` and the metric of the
instance's history by broker is, likewise, that of the broker which is slowest, or answers most errors.
`expiring_unread_messages` are records that groups have not read and that are about to expire (`history.lag.expiry`), of all
groups together. A figure of a topic is called `topic_` and the metric of its history, and its rule names the topic: record bytes
of the last minute that is known, 0 of a topic that moved nothing, or that is not there. Throttled time is that of the last
minute that is known.

A value of None is no data, and `Missing` says why there is none. It is never taken for good, nor for bad.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from controlplane.core.errors import FieldProblem
from controlplane.core.text import name_problem
from controlplane.health.rules import CODES
from quota.contracts.namespace import topic_name_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

MOST_RULES, MOST_RECEIVERS = 50, 10
"""Of an instance."""
LONGEST_DURATION_S = 24 * 3600
LEAST_REPEAT_S, MOST_REPEAT_S = 300, 7 * 24 * 3600
LONGEST_SILENCE_S = 30 * 24 * 3600
LONGEST_GROUP = 1000
"""As Kafka's door has it (`kafka.groups`)."""


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


class Missing(StrEnum):
    """Why there is no value."""

    NO_SAMPLE = "no_sample"  # the history has no fresh sample: the flow master does not answer, or just began to
    NO_LIMIT = "no_limit"  # unlimited, or nothing is allocated: neither a limit nor a share of it is a number
    NO_REQUESTS = "no_requests"  # there was no such request in the last minute, so none that took any time
    NO_MASTER = "no_master"  # the flow master says nothing of the instance now
    NO_ROUTES = "no_routes"  # ZooKeeper does not answer
    NO_GROUP = "no_group"  # the history has no fresh minute of the group
    NO_SIZE = "no_size"  # a leader did not say how many bytes are unread, or was not asked
    NO_TOPIC = "no_topic"  # what the topic moved is not known: it is among those that moved least, or nothing is known
    NO_BROKERS = "no_brokers"  # of the last minute it is not known what each broker was asked
    NO_AGE = "no_age"  # the oldest unread record has no timestamp, or was not looked at
    NO_RATE = "no_rate"  # what the group read in its last minute is not known: it is new, or its offsets were set back
    NOT_READ = "not_read"  # the instance could not be read


MISSING: Mapping[Missing, str] = {
    Missing.NO_SAMPLE: "Nothing was sampled in the last 30 seconds",
    Missing.NO_LIMIT: "There is no such limit now",
    Missing.NO_REQUESTS: "There was no such request in the last minute",
    Missing.NO_MASTER: "No flow master knows the instance now",
    Missing.NO_ROUTES: "Routes are not known now",
    Missing.NO_GROUP: "The group was not seen in the last three minutes",
    Missing.NO_TOPIC: "What the topic moved is not known now",
    Missing.NO_BROKERS: "What each broker was asked is not known now",
    Missing.NO_SIZE: "How many bytes are unread is not known now",
    Missing.NO_AGE: "The oldest unread record has no known time",
    Missing.NO_RATE: "How many records were read and written is not known now",
    Missing.NOT_READ: "The instance could not be read",
}
"""In words."""
MISSINGS = [missing.value for missing in Missing]


@dataclass(frozen=True, slots=True)
class Scale:
    """In what people say a value: one `unit` is so many of the figure's own."""

    unit: str
    size: float


PERCENT, MANY = 1_000, 1_000_000_000
MOST_MS = 100_000
"""The largest time that brokers tell apart."""
MOST_BYTES = 2**50
"""As a sample of the history has it."""
MIB_PER_S, GIB, PERCENT_OF_TIME = Scale("MiB/s", 2**20), Scale("GiB", 2**30), Scale("%", 10)


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that can be watched. `title` is what a sentence about it begins with, and `verb` goes on.

    A threshold is from 0 to `most`, in `unit`. `scale`: in what forms ask for it, and sentences tell it; None: in `unit`.
    """

    title: str
    unit: str
    most: float
    verb: str = "is"
    scale: Scale | None = None
    of_group: bool = False  # its rule names a group
    of_topic: bool = False  # a topic
    any_of: str = ""  # it is the largest of all groups' figures of this name
    any_broker: str = ""  # of all brokers' metrics of this name in the history by broker
    of_one: str = ""  # its title where the broker is known, with {name} for that

    @property
    def typed(self) -> Scale:
        """In what people type a threshold."""
        return self.scale or Scale(self.unit, 1)


def _bytes_per_s(title: str) -> Figure:
    return Figure(title, "bytes/s", MOST_BYTES, scale=MIB_PER_S)


FIGURES = {
    "storage_used_percent": Figure("Storage used", "%", PERCENT),
    "produce_percent": Figure("Produce flow", "%", PERCENT),
    "consume_percent": Figure("Consume flow", "%", PERCENT),
    "connections": Figure("Connections", "", MANY, "are"),
    "produce_bytes_per_s": _bytes_per_s("Produce flow"),
    "consume_bytes_per_s": _bytes_per_s("Consume flow"),
    "produce_throttled_ms_per_s": Figure("Throttled time of producers", "ms/s", 1_000, scale=PERCENT_OF_TIME),
    "consume_throttled_ms_per_s": Figure("Throttled time of consumers", "ms/s", 1_000, scale=PERCENT_OF_TIME),
    "produce_limit_bytes_per_s": _bytes_per_s("Produce limit"),
    "consume_limit_bytes_per_s": _bytes_per_s("Consume limit"),
    "produce_allocated_bytes_per_s": _bytes_per_s("Allocated produce bandwidth"),
    "consume_allocated_bytes_per_s": _bytes_per_s("Allocated consume bandwidth"),
    "storage_used_bytes": Figure("Storage used", "bytes", MOST_BYTES, scale=GIB),
    "storage_limit_bytes": Figure("Storage bought", "bytes", MOST_BYTES, scale=GIB),
    "requests_per_s": Figure("Requests", "requests/s", MANY, "are"),
    "errors_per_s": Figure("Errors answered", "errors/s", MANY, "are"),
    "produce_requests_per_s": Figure("Produce requests", "requests/s", MANY, "are"),
    "fetch_requests_per_s": Figure("Fetch requests", "requests/s", MANY, "are"),
    "produce_p50_ms": Figure("Produce latency, half of the requests", "ms", MOST_MS),
    "produce_p99_ms": Figure("Produce latency, 99 % of the requests", "ms", MOST_MS),
    "produce_p999_ms": Figure("Produce latency, 99.9 % of the requests", "ms", MOST_MS),
    "fetch_p50_ms": Figure("Fetch latency, half of the requests", "ms", MOST_MS),
    "fetch_p99_ms": Figure("Fetch latency, 99 % of the requests", "ms", MOST_MS),
    "fetch_p999_ms": Figure("Fetch latency, 99.9 % of the requests", "ms", MOST_MS),
    "under_replicated_partitions": Figure("Under-replicated partitions", "", MANY, "are"),
    "offline_partitions": Figure("Partitions without a leader", "", MANY, "are"),
    "health_level": Figure("Health level", "", 2),
    "group_lag_messages": Figure("Lag", "records", MOST_BYTES, of_group=True),
    "group_lag_bytes": Figure("Lag in bytes", "bytes", MOST_BYTES, scale=GIB, of_group=True),
    "group_lag_seconds": Figure("Age of the oldest unread record", "s", MANY, of_group=True),
    "group_consume_records_per_s": Figure("Records read", "records/s", MANY, "are", of_group=True),
    "group_produce_records_per_s": Figure("Records written", "records/s", MANY, "are", of_group=True),
    "any_group_lag_messages": Figure("Lag of any group", "records", MOST_BYTES, any_of="group_lag_messages"),
    "any_group_lag_bytes": Figure(
        "Lag in bytes of any group", "bytes", MOST_BYTES, scale=GIB, any_of="group_lag_bytes"
    ),
    "any_group_lag_seconds": Figure(
        "Age of the oldest unread record of any group", "s", MANY, any_of="group_lag_seconds"
    ),
    "any_broker_produce_p99_ms": Figure(
        "Produce latency of any broker, 99 % of the requests",
        "ms",
        MOST_MS,
        any_broker="produce_p99_ms",
        of_one="Produce latency of broker {name}, 99 % of the requests",
    ),
    "any_broker_fetch_p99_ms": Figure(
        "Fetch latency of any broker, 99 % of the requests",
        "ms",
        MOST_MS,
        any_broker="fetch_p99_ms",
        of_one="Fetch latency of broker {name}, 99 % of the requests",
    ),
    "any_broker_errors_per_s": Figure(
        "Errors answered by any broker",
        "errors/s",
        MANY,
        "are",
        any_broker="errors_per_s",
        of_one="Errors answered by broker {name}",
    ),
    "expiring_unread_messages": Figure("Unread records that are about to expire", "records", MOST_BYTES, "are"),
    "topic_produce_bytes_per_s": Figure("Produce flow", "bytes/s", MOST_BYTES, scale=MIB_PER_S, of_topic=True),
    "topic_consume_bytes_per_s": Figure("Consume flow", "bytes/s", MOST_BYTES, scale=MIB_PER_S, of_topic=True),
}
OF_GROUPS = tuple(name for name, figure in FIGURES.items() if figure.of_group)
OF_TOPICS = tuple(name for name, figure in FIGURES.items() if figure.of_topic)
OF_ANY_GROUP = {name: figure.any_of for name, figure in FIGURES.items() if figure.any_of}
"""By their names, what each is the largest of."""
OF_ANY_BROKER = {name: figure.any_broker for name, figure in FIGURES.items() if figure.any_broker}
"""Likewise, of brokers."""
UNREAD = "expiring_unread_messages"
UPWARDS = (Comparison.ABOVE, Comparison.AT_LEAST)
"""How the largest of many is compared: that one of them is small says nothing."""
REASONS = {
    "storage_full": "Storage is full",
    "partitions_without_leader": "Partitions without a leader",
    "route_down": "A route is not served",
    "storage_nearly_full": "Storage is nearly full",
    "partitions_under_replicated": "Partitions are under-replicated",
    "throttled_under_limit": "Throttled below its limit",
    "limit_used_up": "The bandwidth is used up",
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
    group: str | None = None  # whose figure it is; None: the instance's
    tells_no_data: bool = False  # receivers are told when there has been no value for a while
    topic: str | None = None  # as `group`, of a figure of a topic

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
        *_of_group(members),
        *_of_topic(members),
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
        elif watch in OF_ANY_GROUP and comparison not in UPWARDS:
            yield FieldProblem("comparison", f"must be one of {', '.join(UPWARDS)}: it is the largest of all groups")
        elif watch in OF_ANY_BROKER and comparison not in UPWARDS:
            yield FieldProblem("comparison", f"must be one of {', '.join(UPWARDS)}: it is the largest of all brokers")
        most = FIGURES[watch].most
        if threshold is None:
            yield FieldProblem("threshold", f"{watch} is compared: say with what")
        elif not math.isfinite(threshold) or not 0 <= threshold <= most:
            yield FieldProblem("threshold", f"must be from 0 to {most}")


def _of_group(members: Mapping[str, Any]) -> Iterable[FieldProblem]:
    watch, group = members["watch"], members["group"]
    if watch in OF_GROUPS:
        if not group:
            yield FieldProblem("group", f"{watch} is of a consumer group: say of which")
        elif len(group) > LONGEST_GROUP or "\0" in group or any("\ud800" <= letter <= "\udfff" for letter in group):
            yield FieldProblem("group", "is no name that a consumer group can have")
    elif group is not None and watch in WATCHED:
        yield FieldProblem("group", f"{watch} is of the instance: leave it out")


def _of_topic(members: Mapping[str, Any]) -> Iterable[FieldProblem]:
    watch, topic = members["watch"], members.get("topic")
    if watch in OF_TOPICS:
        if not topic:
            yield FieldProblem("topic", f"{watch} is of a topic: say of which")
        else:
            problem = topic_name_problem(topic)
            if problem is not None:
                yield FieldProblem("topic", problem)
    elif topic is not None and watch in WATCHED:
        yield FieldProblem("topic", f"{watch} is not of a topic: leave it out")


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
