"""What an instance's health is, from facts that were observed. Pure.

============================  ========  ==============================================================================
code                          state     when
============================  ========  ==============================================================================
storage_full                  critical  producing is refused, because what was bought of storage is used
partitions_without_leader     critical  partitions can be neither produced to nor consumed from
route_down                    critical  no broker serves a route; degraded while some do
storage_nearly_full           degraded  75 % of the storage is used
partitions_under_replicated   degraded  replicas are not in sync: fewer brokers may fail than was wanted
throttled_under_limit         degraded  a client waited lately while the instance used less than 95 % of its limit, and
                                        that was most of what was waited in that direction
limit_used_up                 degraded  clients waited for a quarter of the last two minutes, because the limit was used
change_not_in_force           degraded  what was changed last cannot be brought to the brokers
flow_unknown                  degraded  no flow master answers: the first, fourth and fifth cannot be known
cluster_unknown               degraded  ZooKeeper does not answer: whether routes are served cannot be known
metering_behind               degraded  usage is counted and does not arrive: the meter fails, is silent, hangs, is ten minutes
                                        behind, or has never come up; nothing is lost
work_waits                    degraded  no worker is there: what is asked for is not begun
============================  ========  ==============================================================================

What cannot be known is a reason of its own, never taken for good. The order of the table is that of the reasons.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from quota.contracts.sizes import size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

NEARLY_FULL_PERCENT = 75
THROTTLED_MS = 1_000
"""Waiting below the limit, in the time that was looked at, that is worth a word."""
AT_LIMIT_MS = 30_000
"""Waiting for a limit that is used: a short burst that meets it is what limits are for."""


class HealthState(StrEnum):
    """How an instance is, from good to bad; the worst of its reasons decides."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"  # it serves, and something is the matter
    CRITICAL = "critical"  # clients are refused, or not served


HEALTH_STATES = [state.value for state in HealthState]
CODES = (
    "storage_full",
    "partitions_without_leader",
    "route_down",
    "storage_nearly_full",
    "partitions_under_replicated",
    "throttled_under_limit",
    "limit_used_up",
    "change_not_in_force",
    "flow_unknown",
    "cluster_unknown",
    "metering_behind",
)
UNWATCHED = ("work_waits",)
"""What no alarm can watch: workers judge alarms."""
EVERY_CODE = (*CODES, *UNWATCHED)
OF_FLOW = ("storage_full", "partitions_without_leader", "storage_nearly_full", "partitions_under_replicated")
"""What only the flow master knows."""


@dataclass(frozen=True, slots=True)
class Flow:
    """What the flow master says of the instance."""

    storage_used_bytes: int
    storage_full: bool
    partitions_without_leader: int = 0
    partitions_under_replicated: int = 0


@dataclass(frozen=True, slots=True)
class Listener:
    """Where a broker should serve a route, and what is the matter with it; None: nothing."""

    route: str
    broker: int
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """Of one instance at one moment."""

    storage_limit_bytes: int
    flow: Flow | None = None  # None: the master knows nothing of the instance, or does not answer
    flow_problem: str = (
        ""  # why it does not answer; empty: it does, or the instance is too new to be known. Then `flow` is old
    )
    listeners: Sequence[Listener] | None = ()  # None: ZooKeeper does not answer
    throttled_under_limit_ms: int = 0  # lately
    throttled_at_limit_ms: int = 0  # likewise, in the direction in which it was more
    change_problem: str = ""  # why the last change is not in force
    metering_problem: str = ""  # why usage does not arrive
    workers_are_away: bool = False


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that is the matter. `detail` is a sentence; `since` None: it was not seen before."""

    code: str
    state: HealthState
    title: str
    detail: str
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Health:
    """The worst of the reasons, and all of them, worst first."""

    state: HealthState
    reasons: tuple[Reason, ...] = ()

    def reason(self, code: str) -> Reason | None:
        """The one of this code, if it is there."""
        return next((reason for reason in self.reasons if reason.code == code), None)

    def known_since(self, moments: Mapping[str, datetime], otherwise: datetime) -> Health:
        """With the moments, by code, at which each reason was first seen."""
        dated = (replace(reason, since=moments.get(reason.code, otherwise)) for reason in self.reasons)
        return replace(self, reasons=tuple(dated))


WORK_WAITS = Reason(
    "work_waits",
    HealthState.DEGRADED,
    "Changes wait",
    "Nothing is done in the background now. What is asked for is written down, and begins when the service's workers are back; "
    "figures of the past, alarms and mails wait as well. Producing and consuming go on",
)


def health_of(facts: Facts) -> Health:
    """Every reason that these facts give, by the table above."""
    return health_with(list(_reasons(facts)))


def health_with(reasons: Sequence[Reason]) -> Health:
    """Of an instance for which these reasons were found, in any order."""
    if not reasons:
        return Health(HealthState.HEALTHY)
    is_critical = any(reason.state is HealthState.CRITICAL for reason in reasons)
    ordered = sorted(
        reasons, key=lambda reason: (reason.state is not HealthState.CRITICAL, EVERY_CODE.index(reason.code))
    )
    return Health(HealthState.CRITICAL if is_critical else HealthState.DEGRADED, tuple(ordered))


def _reasons(facts: Facts) -> Iterator[Reason]:
    if facts.flow is not None:
        yield from _storage(facts.flow, facts.storage_limit_bytes)
        if not facts.flow_problem:  # what partitions were then is not what they are
            yield from _partitions(facts.flow)
    if facts.flow_problem:
        yield _degraded(
            "flow_unknown",
            "Current figures are not known",
            f"{facts.flow_problem}. Brokers serve on: they keep what they were given for 10 s, and then divide the limits by "
            "the partitions that they lead",
        )
    if facts.listeners is None:
        yield _degraded(
            "cluster_unknown", "Routes are not known", "Whether brokers serve the instance cannot be seen now"
        )
    else:
        yield from _routes(facts.listeners)
    if facts.throttled_under_limit_ms >= THROTTLED_MS:
        yield _degraded(
            "throttled_under_limit",
            "Throttled below its limit",
            f"Clients waited {facts.throttled_under_limit_ms / 1000:.0f} s of the last two minutes while the instance used "
            "less than its bandwidth; its quota page says on which broker, and why",
        )
    if facts.throttled_at_limit_ms >= AT_LIMIT_MS:
        yield _degraded(
            "limit_used_up",
            "The bandwidth is used up",
            f"Clients waited {facts.throttled_at_limit_ms / 1000:.0f} s of the last two minutes, because the instance used all "
            "its bandwidth. They are slowed, and lose nothing; with more bandwidth they wait less",
        )
    if facts.change_problem:
        yield _degraded(
            "change_not_in_force",
            "A change is not in force",
            f"What was changed last is not in force yet: {facts.change_problem}. The service goes on trying",
        )
    if facts.metering_problem:
        yield _degraded(
            "metering_behind",
            "Usage is behind",
            f"{facts.metering_problem}. Nothing is lost: what is used is counted, and appears when the meter has caught up",
        )
    if facts.workers_are_away:
        yield WORK_WAITS


def _storage(flow: Flow, limit_bytes: int) -> Iterator[Reason]:
    used = f"{size_text(flow.storage_used_bytes)} of {size_text(limit_bytes)} is used"
    if flow.storage_full:
        yield Reason(
            "storage_full",
            HealthState.CRITICAL,
            "Storage is full",
            f"Producing is refused: {used}, all replicas counted. Consuming goes on. Give the instance more storage, or delete "
            "topics or shorten their retention",
        )
    elif flow.storage_used_bytes * 100 >= limit_bytes * NEARLY_FULL_PERCENT:
        percent = min(99, round(100 * flow.storage_used_bytes / limit_bytes))  # 100 would say that it is full
        yield _degraded(
            "storage_nearly_full",
            f"Storage is {percent} % full",
            f"{used[:1].upper()}{used[1:]}, all replicas counted. Producing is refused when it is full",
        )


def _partitions(flow: Flow) -> Iterator[Reason]:
    without, behind = flow.partitions_without_leader, flow.partitions_under_replicated
    if without:
        yield Reason(
            "partitions_without_leader",
            HealthState.CRITICAL,
            f"{_count(without, 'partition has', 'partitions have')} no leader",
            "They can be neither produced to nor consumed from until a broker that holds them is back",
        )
    if behind:
        yield _degraded(
            "partitions_under_replicated",
            f"{_count(behind, 'partition is', 'partitions are')} under-replicated",
            "Not all their replicas are in sync. They serve; until the replicas have caught up, fewer brokers may fail",
        )


def _routes(listeners: Sequence[Listener]) -> Iterator[Reason]:
    routes: dict[str, list[Listener]] = {}
    for listener in listeners:
        routes.setdefault(listener.route, []).append(listener)
    down = {route: [each for each in every if each.problem] for route, every in routes.items()}
    if not any(down.values()):
        return
    is_whole = any(len(routes[route]) == len(broken) for route, broken in down.items())
    texts = [
        f"route {route}, broker {each.broker}: {each.problem}" for route, broken in down.items() for each in broken
    ]
    detail = "; ".join(texts)
    yield Reason(
        "route_down",
        HealthState.CRITICAL if is_whole else HealthState.DEGRADED,
        "No broker serves it" if is_whole else "Not every broker serves it",
        f"{detail[:1].upper()}{detail[1:]}. "
        + ("Clients cannot connect" if is_whole else "Clients use the other brokers"),
    )


def _degraded(code: str, title: str, detail: str) -> Reason:
    return Reason(code, HealthState.DEGRADED, title, detail[:1].upper() + detail[1:])


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
