"""Observing instances: a question to each cluster's master, a look at its ZooKeeper, and few at the database.

These are four, and two for each cluster, of its meter. That is so however many instances there are. The caller has the rows from
a selector within an organisation, or is an operator. Only instances that run have a health: of the others, their state says what
there is to say.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

from django.db.models import Case, CharField, Exists, OuterRef, Value, When

from controlplane.clusters.selectors import listeners_by_owner
from controlplane.clusters.services import cluster_observe
from controlplane.core import pulse
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.health.models import HealthReason
from controlplane.health.rules import (
    OF_FLOW,
    WORK_WAITS,
    Facts,
    Flow,
    Health,
    HealthState,
    Listener,
    Reason,
    health_of,
    health_with,
)
from controlplane.instances.models import InstanceState
from controlplane.instances.selectors import instances_by_cluster
from controlplane.metering import selectors as metering
from controlplane.quotas.figures import NOT_YET, figures_get
from controlplane.quotas.history import Throttled, throttled_lately
from controlplane.quotas.selectors import flows_get
from quota.contracts.instance import GIB

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from django.db.models import QuerySet

    from controlplane.clusters.coordination import ObservedCluster
    from controlplane.instances.models import Instance
    from controlplane.quotas.figures import Figures
    from quota.contracts.applied import AppliedInstance

LATELY = timedelta(minutes=2)
MINUTE = timedelta(minutes=1)
COMES_UP_WITHIN = timedelta(minutes=10)
"""A meter takes a minute or two, with all that Spark loads."""
NEVER_CAME_UP = "The meter has never come up"
FAILING = ("failing", "silent", "stalled")
SEEN = "health_seen"
"""What rows of `with_health_seen` are annotated with."""


def health_get(
    instances: Sequence[Instance],
    *,
    figures: Figures | None = None,
    observed: Mapping[int, ObservedCluster | None] | None = None,
    by_worker: bool = False,
    heard: pulse.Heard | None = None,
    silent_after_s: float = metering.SILENT_AFTER_S,
    clock: Clock = SYSTEM_CLOCK,
) -> dict[str, Health]:
    """The health of those that run, by id, as it is now.

    `figures` are what the masters say, and `observed` what ZooKeeper shows of each cluster, by its row's id, where the
    caller has asked already; a cluster that it shows None of does not answer. `by_worker`: who asks is one, so that one is there.
    `heard`: the pulse, where the caller has read it already.
    `silent_after_s`: how long a meter may give no sign of life.
    """
    running = [instance for instance in instances if instance.state == InstanceState.RUNNING]
    if not running:
        return {}
    if figures is None:
        figures = figures_get(running, flows_get, clock=clock)
    now = clock.now()
    names = [instance.id for instance in running]
    throttled = throttled_lately(instances=names, start=now - LATELY, end=now)
    listeners = _listeners(running, {} if observed is None else observed)
    meters = {cluster.pk: _Meter.of(cluster.name, silent_after_s, now) for cluster, _ in instances_by_cluster(running)}
    away_since = None if by_worker else (heard or pulse.heard(clock=clock)).away_since
    stored: dict[str, list[HealthReason]] = {name: [] for name in names}
    for row in HealthReason.objects.filter(instance__in=names):
        stored[row.instance].append(row)
    healths = {}
    for instance in running:
        document = figures.documents.get(instance.id)
        is_learning = document is not None and bool(document.get("learning"))
        away = figures.problems.get(instance.id)
        facts = Facts(
            storage_limit_bytes=round(instance.storage_gib * GIB),
            flow=None if is_learning else _flow(document),
            flow_problem=away.detail if away is not None and away.code != NOT_YET else "",
            listeners=listeners[instance.id],
            throttled_under_limit_ms=throttled.get(instance.id, Throttled()).under_limit_ms,
            throttled_at_limit_ms=throttled.get(instance.id, Throttled()).at_limit_ms,
            change_problem=instance.problem.rstrip("."),
            metering_problem=meters[instance.cluster_id].problem_for(instance, now),
            workers_are_away=away_since is not None,
        )
        health, before = health_of(facts), stored[instance.id]
        if is_learning:  # it says 0 of what it has not heard yet: what was the matter stays until it knows
            health = health_with([*health.reasons, *(_reason(row) for row in before if row.code in OF_FLOW)])
        moments = {row.code: row.since for row in before}
        if away_since is not None:  # no worker has written it down
            moments[WORK_WAITS.code] = away_since
        healths[instance.id] = health.known_since(moments, now)
    return healths


def health_remembered(instance: Instance) -> Health | None:
    """As it was when the instance was last looked at, some seconds ago: for pages that ask nobody else about it."""
    if instance.state != InstanceState.RUNNING:
        return None
    reasons = [_reason(row) for row in HealthReason.objects.filter(instance=instance.id)]
    away_since = pulse.away_since()
    if away_since is not None:  # what workers have written down is no longer looked after
        reasons.append(replace(WORK_WAITS, since=away_since))
    return health_with(reasons)


def with_health_seen(rows: QuerySet[Instance], *, state: str = "") -> QuerySet[Instance]:
    """Rows with the state that was last seen of each, some seconds ago, in `health_seen`: lists are sorted by it.

    By the word, which is also from bad to good; null: it does not run. `state`: only those that are so.
    """
    reasons = HealthReason.objects.filter(instance=OuterRef("pk"))
    otherwise = HealthState.HEALTHY if pulse.away_since() is None else WORK_WAITS.state
    critical, degraded = HealthState.CRITICAL, HealthState.DEGRADED
    seen = Case(
        When(Exists(reasons.filter(state=critical.value)), then=Value(critical.value)),
        When(Exists(reasons), then=Value(degraded.value)),
        default=Value(otherwise.value),
    )
    rows = rows.annotate(
        **{SEEN: Case(When(state=InstanceState.RUNNING, then=seen), default=None, output_field=CharField(null=True))}
    )
    return rows.filter(**{SEEN: state}) if state else rows


def _reason(row: HealthReason) -> Reason:
    return Reason(row.code, HealthState(row.state), row.title, row.detail, row.since)


def _flow(document: Mapping[str, Any] | None) -> Flow | None:
    """None, too, where the master is of a release that does not say it."""
    if document is None or not isinstance(document.get("storage_used_bytes"), int):
        return None
    return Flow(
        storage_used_bytes=document["storage_used_bytes"],
        storage_full=bool(document.get("storage_full")),
        partitions_without_leader=document.get("partitions_without_leader") or 0,
        partitions_under_replicated=document.get("partitions_under_replicated") or 0,
    )


@dataclass(frozen=True, slots=True)
class _Meter:
    """The meter of a cluster. `problem`: why usage does not arrive; empty: it does, or the meter has not come up yet."""

    problem: str
    is_starting: bool = False

    @classmethod
    def of(cls, cluster: str, silent_after_s: float, now: datetime) -> Self:
        """One that gives signs of life may still hang, or be behind."""
        state, reason = metering.state_of(cluster, silent_after_s=silent_after_s)
        if state in FAILING:
            return cls(reason.rstrip("."))
        if state == "running":
            read_to = metering.complete_to(cluster)
            if read_to is not None and metering.is_behind(read_to, now):
                minutes = (now - read_to) // MINUTE
                return cls(f"The meter is {minutes} minutes behind")
        return cls("", is_starting=state == "starting")

    def problem_for(self, instance: Instance, now: datetime) -> str:
        """An instance that is older than a meter takes to come up waits for one that does not come."""
        if self.is_starting and now - instance.created_at > COMES_UP_WITHIN:
            return NEVER_CAME_UP
        return self.problem


def _listeners(
    instances: Sequence[Instance], observed: Mapping[int, ObservedCluster | None]
) -> dict[str, list[Listener] | None]:
    """By instance, a listener for each port that it has; None: its cluster's ZooKeeper does not answer."""
    held = listeners_by_owner(instance.id for instance in instances)
    found: dict[str, list[Listener] | None] = {}
    for cluster, group in instances_by_cluster(instances):
        seen = observed[cluster.pk] if cluster.pk in observed else cluster_observe(cluster)
        for instance in group:
            found[instance.id] = None if seen is None else _listeners_of(instance.id, held.get(instance.id, ()), seen)
    return found


def _listeners_of(name: str, held: Iterable[tuple[str, int]], seen: ObservedCluster) -> list[Listener]:
    applied = seen.applied_of(name)
    return [Listener(route, broker, _problem(route, broker, applied)) for route, broker in held]


def _problem(route: str, broker: int, applied: Mapping[int, AppliedInstance | None]) -> str | None:
    """`applied` has an entry for every broker that lives."""
    if broker not in applied:
        return "the broker is away"
    entry = applied[broker]
    if entry is None:
        return "the broker does not know the instance yet"
    return entry.problem_of(route)
