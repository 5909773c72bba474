"""Remembering since when something is the matter. Beat has it done every few seconds; doing it twice changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from controlplane.clusters import services as clusters
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.health.models import HealthReason
from controlplane.health.selectors import health_get
from controlplane.instances.models import Instance, InstanceState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from controlplane.health.rules import Health, Reason

AT_ONCE = 500
_SHOWN = ("state", "title", "detail")


def health_observe(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Look at every broker, and every instance that runs, and keep what is the matter with it, since when it is."""
    observed = {}
    for cluster in clusters.cluster_list():
        seen = observed[cluster.pk] = clusters.cluster_observe(cluster)
        if seen is not None:
            clusters.brokers_watch(cluster=cluster, live=seen.live, clock=clock)
    rows = Instance.objects.unscoped("everyone's health is looked after").filter(state=InstanceState.RUNNING)
    names = list(rows.order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(names), AT_ONCE):
        part = list(rows.filter(pk__in=names[start : start + AT_ONCE]).select_related("cluster"))
        _keep(health_get(part, observed=observed, clock=clock))
    HealthReason.objects.exclude(instance__in=rows.values("pk")).delete()


def _keep(found: dict[str, Health]) -> None:
    stored: dict[tuple[str, str], HealthReason] = {
        (row.instance, row.code): row for row in HealthReason.objects.filter(instance__in=list(found))
    }
    wanted = {(name, reason.code): reason for name, health in found.items() for reason in health.reasons}
    changed = [row for key, row in stored.items() if key in wanted and _differs(row, wanted[key])]
    for row in changed:
        for name in _SHOWN:
            setattr(row, name, getattr(wanted[row.instance, row.code], name))
    with transaction.atomic():
        HealthReason.objects.filter(pk__in=[row.pk for key, row in stored.items() if key not in wanted]).delete()
        HealthReason.objects.bulk_update(changed, _SHOWN, batch_size=AT_ONCE)
        # Another worker may have seen them first: then its moment stands.
        HealthReason.objects.bulk_create(
            _new((key, reason) for key, reason in wanted.items() if key not in stored), ignore_conflicts=True
        )


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
    ]
