"""What the master says about an instance, within an organisation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from controlplane.clusters import coordination, master, zookeeper
from controlplane.clusters.selectors import broker_list
from controlplane.core.errors import ClusterUnavailable, Unavailable
from controlplane.instances.selectors import instance_get
from controlplane.quotas.figures import brokers_last
from controlplane.quotas.models import MasterJournal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet

    from controlplane.clusters.address import ClusterAddress
    from controlplane.clusters.models import PhysicalCluster
    from controlplane.instances.models import Instance
    from controlplane.tenants.models import Organisation

SHOWN = (
    "produce",
    "consume",
    "storage_used_bytes",
    "storage_full",
    "partitions_without_leader",
    "partitions_under_replicated",
    "connections",
    "broker_time",
    "transactions",
)


def allocation_get(*, organisation: Organisation, instance_id: str) -> dict[str, Any]:
    """Per direction: limit, branch and each broker's part, in bytes/s. Raises NotFound, MasterUnavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    document = master.allocation(instance.cluster.address, instance.id)
    return {name: document.get(name) for name in SHOWN}


def allocation_of(cluster: ClusterAddress, instances: Sequence[Instance]) -> dict[str, dict[str, Any]]:
    """The document of one instance, by its id. Raises MasterUnavailable, also where the master does not know it yet."""
    (instance,) = instances
    return {instance.id: master.allocation(cluster, instance.id)}


def journals_with_problems() -> QuerySet[MasterJournal]:
    """Masters whose journal could not be read, or not all of it: for operators."""
    return MasterJournal.objects.exclude(problem="").order_by("cluster", "master").select_related("cluster")


def flows_get(cluster: ClusterAddress, instances: Sequence[Instance]) -> dict[str, dict[str, Any]]:
    """Limit, flow, branch and storage of a cluster's instances with one question, by instance id. Raises Unavailable.

    The caller has the rows from a selector within an organisation, or is an operator.
    """
    names = [instance.id for instance in instances]
    return {document["instance"]: document for document in master.short(cluster, names)}


def allocations_get(cluster: ClusterAddress, instances: Sequence[Instance]) -> dict[str, dict[str, Any]]:
    """Each broker's part of the limits of a cluster's instances, by instance id. For operators. Raises Unavailable."""
    names = [instance.id for instance in instances]
    return {document["instance"]: document for document in master.allocations(cluster, names)}


def brokers_get(cluster: PhysicalCluster) -> list[dict[str, Any]]:
    """Every broker of a cluster that ever registered, or reports: address, and what it leads, carries and may carry.

    For operators. `known` is the row of one that was seen before; `is_registered` and `is_reporting` are None where
    ZooKeeper, or a master, does not answer; `figures` are the last known ones then, of `figures_at`.
    """
    known = {row.broker_id: row for row in broker_list(cluster)}
    registered: dict[int, Any] | None
    reported: dict[int, dict[str, Any]] | None
    try:
        registered = {broker.id: broker for broker in coordination.live_brokers(zookeeper.tree(cluster.address))}
    except ClusterUnavailable:
        registered = None
    try:
        reported = {document["broker"]: document for document in master.brokers(cluster.address)}
    except Unavailable:
        reported = None
    last, last_at = ({}, None) if reported is not None else brokers_last(cluster.address)
    return [
        {
            "id": number,
            "known": known.get(number),
            "registered": (registered or {}).get(number),
            "is_registered": None if registered is None else number in registered,
            "is_reporting": None if reported is None else bool(reported.get(number, {}).get("reporting")),
            "figures": (last if reported is None else reported).get(number),
            "figures_at": last_at,
        }
        for number in sorted({*known, *(registered or {}), *(reported or {})})
    ]
