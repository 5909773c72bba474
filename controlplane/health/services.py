"""Remembering since when something is the matter, and when it was. Beat has it done every few seconds; twice changes nothing.

A reason that comes begins a spell, in the same transaction, and ends it when it goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from controlplane.clusters import services as clusters
from controlplane.clusters.registering import brokers_compare
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.portions import portions
from controlplane.health.models import HealthReason, HealthSpell
from controlplane.health.selectors import health_get
from controlplane.instances.models import Instance, InstanceState
from controlplane.quotas.figures import led_lately

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from django.db.models import QuerySet

    from controlplane.clusters.coordination import ObservedCluster
    from controlplane.clusters.models import PhysicalCluster
    from controlplane.health.rules import Health, Reason

AT_ONCE = 500
_SHOWN = ("state", "title", "detail")


def health_observe(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Look at every broker, and every instance that runs, and keep what is the matter with it, since when it is."""
    rows = Instance.objects.unscoped("everyone's health is looked after").filter(state=InstanceState.RUNNING)
    observed = {cluster.pk: clusters.cluster_observe(cluster) for cluster in clusters.cluster_list()}
    clusters.for_each_cluster(lambda cluster: _brokers_seen(cluster, observed.get(cluster.pk), clock), "the brokers")
    clusters.for_each_cluster(
        lambda cluster: _instances_seen(rows.filter(cluster=cluster), observed, clock), "the health of instances"
    )
    HealthReason.objects.exclude(instance__in=rows.values("pk")).delete()
    HealthSpell.objects.filter(ended_at=None).exclude(instance__in=rows.values("pk")).update(ended_at=clock.now())


def _brokers_seen(cluster: PhysicalCluster, seen: ObservedCluster | None, clock: Clock) -> None:
    if seen is None:
        return

    def led_by(broker: int) -> set[str] | None:
        return led_lately(cluster.address, broker, clock.now())

    clusters.brokers_watch(cluster=cluster, live=seen.live, led_by=led_by, clock=clock)
    brokers_compare(cluster=cluster, live=seen.live, clock=clock)


def _instances_seen(rows: QuerySet[Instance], observed: Mapping[int, ObservedCluster | None], clock: Clock) -> None:
    names = list(rows.order_by("pk").values_list("pk", flat=True))
    for some in portions(names, AT_ONCE):
        part = list(rows.filter(pk__in=some).select_related("cluster"))
        _keep(health_get(part, observed=observed, by_worker=True, clock=clock), clock.now())


def changes_purge(*, before: datetime, portion: int, portions: int) -> int:
    """Forget spells that ended before then, so many at a time and so many times; how many went."""
    rows, gone = HealthSpell.objects.filter(ended_at__lt=before), 0
    for _ in range(portions):
        keys = list(rows.order_by("pk").values_list("pk", flat=True)[:portion])
        if not keys:
            break
        rows.filter(pk__in=keys).delete()
        gone += len(keys)
    return gone


def _keep(found: dict[str, Health], now: datetime) -> None:
    stored: dict[tuple[str, str], HealthReason] = {
        (row.instance, row.code): row for row in HealthReason.objects.filter(instance__in=list(found))
    }
    wanted = {(name, reason.code): reason for name, health in found.items() for reason in health.reasons}
    changed = [row for key, row in stored.items() if key in wanted and _differs(row, wanted[key])]
    for row in changed:
        for name in _SHOWN:
            setattr(row, name, getattr(wanted[row.instance, row.code], name))
    with transaction.atomic():
        gone = [row for key, row in stored.items() if key not in wanted]
        HealthReason.objects.filter(pk__in=[row.pk for row in gone]).delete()
        _end_spells(gone, now)
        HealthReason.objects.bulk_update(changed, _SHOWN, batch_size=AT_ONCE)
        # Another worker may have seen them first: then its moment stands.
        HealthReason.objects.bulk_create(
            _new((key, reason) for key, reason in wanted.items() if key not in stored), ignore_conflicts=True
        )
        _begin_spells({key for key in wanted if key not in stored})


def _begin_spells(new: set[tuple[str, str]]) -> None:
    """As the rows say that stand now: of two workers one has written them, and both begin the same spell."""
    if not new:
        return
    rows = HealthReason.objects.filter(instance__in={instance for instance, _ in new})
    HealthSpell.objects.bulk_create(
        [
            HealthSpell(instance=row.instance, code=row.code, title=row.title, began_at=row.since)
            for row in rows
            if (row.instance, row.code) in new
        ],
        ignore_conflicts=True,
    )


def _end_spells(gone: Iterable[HealthReason], now: datetime) -> None:
    by_code: dict[str, list[str]] = {}
    for row in gone:
        by_code.setdefault(row.code, []).append(row.instance)
    for code, instances in by_code.items():
        HealthSpell.objects.filter(code=code, instance__in=instances, ended_at=None).update(ended_at=now)


def _differs(row: HealthReason, reason: Reason) -> bool:
    return any(getattr(row, name) != getattr(reason, name) for name in _SHOWN)


def _new(items: Iterable[tuple[tuple[str, str], Reason]]) -> list[HealthReason]:
    return [
        HealthReason(
            instance=name,
            code=code,
            state=reason.state.value,
            title=reason.title,
            detail=reason.detail,
            since=reason.since,
        )
        for (name, code), reason in items
        if reason.since is not None  # `health_get` has dated them all
    ]
