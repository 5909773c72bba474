"""Retiring a cluster: it is switched off for good, and nothing asks it any more.

Its row stays, since instances that are gone and their bills refer to it. So it is let go only when nothing is on it, what is
kept to be restored included, and when every invoice of what was on it is written: until then its brokers and its meter have
something to tell. Taken back (to any other state) it is asked again, as a cluster that was away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction

from controlplane.billing.waiting import uninvoiced_ever
from controlplane.clusters.models import ClusterState, PhysicalCluster
from controlplane.clusters.registering import cluster_change
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Conflict
from controlplane.instances.models import Instance, InstanceState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def cluster_set(
    *,
    cluster: PhysicalCluster,
    actor: str,
    changes: Mapping[str, Any],
    reason: str,
    check: Callable[[PhysicalCluster], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> PhysicalCluster:
    """As `cluster_change`; and retired, where that can be. Raises Invalid, Conflict, AlreadyExists."""
    asked: dict[str, Any] = {"cluster": cluster, "actor": actor, "changes": changes, "reason": reason}
    if changes.get("state") != ClusterState.RETIRED:
        return cluster_change(**asked, check=check, clock=clock)
    with transaction.atomic():
        # All of them are held: two that are retired at once must not each take the other for the one that is left. Whoever
        # buys holds the row of his cluster, so nobody comes to this one meanwhile.
        rows = list(PhysicalCluster.objects.select_for_update().order_by("pk"))
        if check is not None:
            check(next(row for row in rows if row.pk == cluster.pk))  # before it is said why it cannot be
        problem = _problem_of_retiring(cluster.pk, rows, clock)
        if problem is not None:
            raise Conflict(problem, code="cluster_in_use")
        return cluster_change(**asked, clock=clock)


def _problem_of_retiring(key: int, rows: list[PhysicalCluster], clock: Clock) -> str | None:
    in_use = {row.pk: row for row in rows if row.state != ClusterState.RETIRED}
    row = in_use.pop(key, None)
    if row is None:
        return None  # it is retired
    if not in_use:
        return "it is the only cluster that is in use"
    there = Instance.objects.unscoped("capacity counts everyone's").filter(cluster=row)
    count = there.exclude(state=InstanceState.DELETED).count()
    if count:
        return f"instances that are on it: {count}. They have to be moved away, or deleted for good, first"
    owed = uninvoiced_ever(row.name, clock.now())
    if owed:
        return f"instances that were on it and lack an invoice: {owed}. It has to go on, with its meter, until these are written"
    return None
