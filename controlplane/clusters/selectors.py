"""Who the brokers of a cluster are, and which ports its instances hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.clusters.models import Broker, BrokerAbsence, ClusterEvent, PortAllocation, PortState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import QuerySet

    from controlplane.clusters.models import PhysicalCluster


def cluster_events(cluster: PhysicalCluster) -> QuerySet[ClusterEvent]:
    """What operators have decided about a cluster, the newest first."""
    return ClusterEvent.objects.filter(cluster=cluster).order_by("-pk")


def absences_of(cluster: PhysicalCluster, broker_id: int) -> QuerySet[BrokerAbsence]:
    """When a broker was away, the last time first."""
    return BrokerAbsence.objects.filter(cluster=cluster, broker_id=broker_id).order_by("-began_at")


def broker_list(cluster: PhysicalCluster) -> list[Broker]:
    """A cluster's brokers that ever registered, by id."""
    return list(Broker.objects.filter(cluster=cluster).order_by("broker_id"))


def broker_count(cluster: PhysicalCluster) -> int:
    """A cluster's brokers that ever registered: no partition can have more replicas."""
    return Broker.objects.filter(cluster=cluster).count()


def ports_of(owner: str) -> list[PortAllocation]:
    """Ports an instance holds, by broker id."""
    rows = PortAllocation.objects.filter(owner=owner, state=PortState.HELD).select_related("broker")
    return sorted(rows, key=lambda row: (row.route, row.broker.broker_id if row.broker else 0))


def listeners_by_owner(owners: Iterable[str]) -> dict[str, list[tuple[str, int]]]:
    """Route and broker id of each port that instances hold on a broker: of thousands of ports without their rows."""
    found: dict[str, list[tuple[str, int]]] = {}
    rows = PortAllocation.objects.filter(owner__in=list(owners), state=PortState.HELD, broker__isnull=False)
    for owner, route, broker in rows.values_list("owner", "route", "broker__broker_id"):
        found.setdefault(owner, []).append((route, broker))
    return {owner: sorted(listeners) for owner, listeners in found.items()}


def ports_by_owner(owners: Iterable[str]) -> dict[str, list[PortAllocation]]:
    """The same for many instances with one query."""
    found: dict[str, list[PortAllocation]] = {}
    rows = PortAllocation.objects.filter(owner__in=list(owners), state=PortState.HELD).select_related("broker")
    for row in sorted(rows, key=lambda row: (row.route, row.broker.broker_id if row.broker else 0)):
        found.setdefault(row.owner, []).append(row)
    return found
