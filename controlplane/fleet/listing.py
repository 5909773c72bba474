"""What operators list over all organisations: instances, organisations, operations, brokers.

The caller is an operator. Lists begin with the oldest, as those of tenants do; what is searched is looked for in names and ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Q

from controlplane.core.models import Operation
from controlplane.instances.models import Instance, InstanceState
from controlplane.quotas.selectors import brokers_get
from controlplane.tenants.models import Organisation
from quota.contracts.report import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from django.db.models import QuerySet

    from controlplane.clusters.models import PhysicalCluster

EVERYBODYS = "operators see every tenant's"
REPORTING, REGISTERED, SILENT, AWAY, UNKNOWN = "reporting", "registered", "silent", "away", "unknown"
BROKER_STATES = (REPORTING, REGISTERED, SILENT, AWAY, UNKNOWN)
IN_USE, MARKED, DELETED = "in_use", "marked", "deleted"
ORGANISATION_STATES = (IN_USE, MARKED, DELETED)
_OF_STATE = {
    IN_USE: Q(deletion_asked_at=None),
    MARKED: Q(deletion_asked_at__isnull=False, deleted_at=None),
    DELETED: Q(deleted_at__isnull=False),
}


def instances(
    *, state: str = "", cluster: str = "", organisation_id: str = "", prefix: str = "", search: str = ""
) -> QuerySet[Instance]:
    """Every tenant's instances that are not gone. `search`: part of the name, the id or the organisation's name."""
    rows = Instance.objects.unscoped(EVERYBODYS).exclude(state=InstanceState.DELETED)
    wanted = {
        "state": state,
        "cluster__name": cluster,
        "organisation_id": organisation_id,
        "name__startswith": prefix,
    }
    rows = rows.filter(**{name: value for name, value in wanted.items() if value})
    if search:
        rows = rows.filter(
            Q(name__icontains=search) | Q(id__icontains=search) | Q(organisation__name__icontains=search)
        )
    return rows.select_related("organisation", "cluster")


def organisations(*, state: str = "", prefix: str = "", search: str = "") -> QuerySet[Organisation]:
    """Organisations that there are, or were. `search`: part of the name or the id."""
    rows = Organisation.objects.filter(_OF_STATE[state]) if state else Organisation.objects.all()
    if prefix:
        rows = rows.filter(name__startswith=prefix)
    if search:
        rows = rows.filter(Q(name__icontains=search) | Q(id__icontains=search))
    return rows


def organisation_state(organisation: Organisation) -> str:
    """One of ORGANISATION_STATES."""
    if organisation.deleted_at is not None:
        return DELETED
    return IN_USE if organisation.deletion_asked_at is None else MARKED


def operations(
    *,
    state: str = "",
    target: str = "",
    kind: str = "",
    organisation_id: str = "",
    start: datetime | None = None,
    end: datetime | None = None,
) -> QuerySet[Operation]:
    """Everybody's, and those of the service itself. A kind is asked for whole or by its beginning; begun in [start, end)."""
    wanted = {
        "state": state,
        "target": target,
        "kind__startswith": kind,
        "organisation_id": organisation_id,
        "created_at__gte": start,
        "created_at__lt": end,
    }
    rows = Operation.objects.unscoped(EVERYBODYS)
    return rows.filter(**{name: value for name, value in wanted.items() if value})


def brokers(clusters: Iterable[PhysicalCluster]) -> list[dict[str, Any]]:
    """Every broker of these clusters, as `FleetBrokerSerializer` has it, by cluster and id."""
    return [_broker(cluster.name, broker) for cluster in clusters for broker in brokers_get(cluster)]


def broker_state(*, is_registered: bool | None, is_reporting: bool | None) -> str:
    """One of BROKER_STATES, by where a broker is missed; None: ZooKeeper, or a flow master, does not answer."""
    if is_registered is None:
        return REPORTING if is_reporting else UNKNOWN
    if not is_registered:
        return AWAY
    if is_reporting is None:
        return REGISTERED
    return REPORTING if is_reporting else SILENT


def _broker(cluster: str, broker: Mapping[str, Any]) -> dict[str, Any]:
    known, seen = broker["known"], broker["registered"] or broker["known"]
    figures: Mapping[str, Any] = broker["figures"] or {}
    missing = figures.get("missing")
    return {
        "cluster": cluster,
        "broker": broker["id"],
        "state": broker_state(is_registered=broker["is_registered"], is_reporting=broker["is_reporting"]),
        "host": seen and seen.host,
        "port": seen and seen.port,
        "rack": seen and seen.rack,
        "away_since": known and known.away_since,
        "instances": figures.get("instances"),
        "leaders": figures.get("leaders"),
        **{
            f"{direction}_{name}_bytes_per_s": figures.get(direction, {}).get(name)
            for direction in DIRECTIONS
            for name in ("flow", "allocation")
        },
        "missing": missing
        and {
            name: missing.get(name, 0)
            for name in ("replicas_behind", "partitions_without_leader", "group_partitions_without_coordinator")
        },
        "figures_at": broker["figures_at"],
    }
