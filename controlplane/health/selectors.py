"""Observing instances: one question to the master, one look at ZooKeeper and three at the database for any number of them.

The caller has the rows from a selector within an organisation, or is an operator. Only instances that run have a health:
of the others, their state says what there is to say.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from controlplane.clusters import coordination, zookeeper
from controlplane.clusters.selectors import ports_by_owner
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import ClusterUnavailable
from controlplane.health.models import HealthReason
from controlplane.health.rules import Facts, Flow, Health, HealthState, Listener, Reason, health_of, health_with
from controlplane.instances.models import InstanceState
from controlplane.metering import selectors as metering
from controlplane.quotas.figures import NOT_YET, figures_get
from controlplane.quotas.history import throttled_under_limit
from controlplane.quotas.selectors import flows_get
from quota.contracts.instance import GIB

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from controlplane.clusters.models import PortAllocation
    from controlplane.core.errors import Unavailable
    from controlplane.instances.models import Instance
    from quota.contracts.applied import Applied

LATELY = timedelta(minutes=2)
FAILING = ("failing", "silent")


def health_get(
    instances: Sequence[Instance],
    *,
    flows: Mapping[str, Mapping[str, Any]] | None = None,
    away: Unavailable | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> dict[str, Health]:
    """The health of those that run, by id, as it is now. `flows`, and why they are not of now, where the caller has asked."""
    running = [instance for instance in instances if instance.state == InstanceState.RUNNING]
    if not running:
        return {}
    if flows is None and away is None:
        found = figures_get(running, flows_get, clock=clock)
        flows, away = found.documents, found.away
    now = clock.now()
    names = [instance.id for instance in running]
    throttled = throttled_under_limit(instances=names, start=now - LATELY, end=now)
    listeners = _listeners(running)
    metering_problem = _metering_problem()
    since: dict[str, dict[str, Any]] = {}
    for row in HealthReason.objects.filter(instance__in=names):
        since.setdefault(row.instance, {})[row.code] = row.since
    healths = {}
    for instance in running:
        facts = Facts(
            storage_limit_bytes=round(instance.storage_gib * GIB),
            flow=_flow((flows or {}).get(instance.id)),
            flow_problem=away.detail if away is not None and away.code != NOT_YET else "",
            listeners=None if listeners is None else listeners[instance.id],
            throttled_under_limit_ms=throttled.get(instance.id, 0),
            change_problem=instance.problem.rstrip("."),
            metering_problem=metering_problem,
        )
        healths[instance.id] = health_of(facts).known_since(since.get(instance.id, {}), now)
    return healths


def health_remembered(instance: Instance) -> Health | None:
    """As it was when the instance was last looked at, some seconds ago: for pages that ask nobody else about it."""
    if instance.state != InstanceState.RUNNING:
        return None
    rows = HealthReason.objects.filter(instance=instance.id)
    return health_with([Reason(row.code, HealthState(row.state), row.title, row.detail, row.since) for row in rows])


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


def _metering_problem() -> str:
    status = metering.status()
    return status.reason.rstrip(".") if status.state in FAILING else ""


def _listeners(instances: Iterable[Instance]) -> dict[str, list[Listener]] | None:
    """By instance, a listener for each port that it has; None: ZooKeeper does not answer."""
    names = [instance.id for instance in instances]
    ports = ports_by_owner(names)
    try:
        tree = zookeeper.tree()
        live = {broker.id for broker in coordination.live_brokers(tree)}
        applied = coordination.applied(tree)
    except ClusterUnavailable:
        return None
    return {
        name: [
            Listener(port.route, port.broker.broker_id, _problem(name, port, live, applied))
            for port in ports.get(name, [])
            if port.broker is not None
        ]
        for name in names
    }


def _problem(name: str, port: PortAllocation, live: set[int], applied: Mapping[int, Applied]) -> str | None:
    assert port.broker is not None
    broker = port.broker.broker_id
    if broker not in live:
        return "the broker is away"
    entry = applied[broker].instances.get(name) if broker in applied else None
    if entry is None:
        return "the broker does not know the instance yet"
    return entry.problem
