"""Reading instances, always within an organisation unless the reason stands beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings

from controlplane.clusters.selectors import ports_of
from controlplane.core.errors import Conflict, NotFound
from controlplane.instances.models import Instance, InstanceState
from controlplane.instances.spec import Bought, Listener, operators_limits, spec_of
from quota.contracts.instance import InstanceSpec, address_text
from quota.contracts.instance import InstanceState as SpecState

SHOWN_AS = {"loop_ms_per_s": "broker_time_ms_per_s"}
"""A tenant need not know that a broker has a loop."""

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from django.db.models import QuerySet

    from controlplane.clusters.models import PhysicalCluster, PortAllocation
    from controlplane.tenants.models import Organisation


def instance_list(*, organisation: Organisation) -> QuerySet[Instance]:
    """Instances of an organisation that are not gone, with their clusters."""
    rows = Instance.objects.for_organisation(organisation).exclude(state=InstanceState.DELETED)
    return rows.select_related("cluster")


def instance_get(*, organisation: Organisation, instance_id: str) -> Instance:
    """One instance. Raises NotFound, also for another organisation's."""
    instance = instance_list(organisation=organisation).filter(pk=instance_id).first()
    if instance is None:
        raise NotFound(f"no instance {instance_id}")
    return instance


def instance_any(*, organisation: Organisation, instance_id: str) -> Instance:
    """An instance that is or was: its usage and its bills outlive it. Raises NotFound."""
    instance = Instance.objects.for_organisation(organisation).filter(pk=instance_id).first()
    if instance is None:
        raise NotFound(f"no instance {instance_id}")
    return instance


def instance_running_get(*, organisation: Organisation, instance_id: str) -> Instance:
    """One instance that can be used. Raises NotFound, and Conflict while it is not running."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    if instance.state != InstanceState.RUNNING:
        raise Conflict(f"the instance is {instance.state}, not running", code="instance_not_running")
    return instance


def instance_fresh(instance_id: str) -> Instance:
    """The row as it is now, for the machinery. Raises NotFound."""
    rows = Instance.objects.unscoped("workers serve every organisation").select_related("cluster")
    instance = rows.filter(pk=instance_id).first()
    if instance is None:
        raise NotFound(f"no instance {instance_id}")
    return instance


def instances_by_cluster(instances: Iterable[Instance]) -> list[tuple[PhysicalCluster, list[Instance]]]:
    """The same instances, cluster by cluster, since a cluster can be asked about its own only."""
    found: dict[int, list[Instance]] = {}
    for instance in instances:
        found.setdefault(instance.cluster_id, []).append(instance)
    return [(group[0].cluster, group) for group in found.values()]


def spec_wanted(instance: Instance, ports: Sequence[PortAllocation] | None = None) -> InstanceSpec:
    """The spec of a row just read; `ports` are the instance's where the caller has read them after the row.

    The row is read before its ports: whoever changes a port raises the generation afterwards, so that ports are never
    older than the generation they are published under.
    """
    held = ports_of(instance.id) if ports is None else ports
    return spec_of(
        instance_id=instance.id,
        generation=instance.generation,
        state=SpecState(instance.spec_state),
        bought=Bought(
            bandwidth_mib_per_s=instance.bandwidth_mib_per_s,
            storage_gib=instance.storage_gib,
            partitions=instance.partitions,
            whitelist=instance.whitelist,
            topic_whitelists=instance.topic_whitelists,
            config=instance.config,
        ),
        operators=instance.operators_limits,
        listeners=[Listener(port.broker.broker_id, port.host, port.port) for port in held if port.broker],
        advertised_host=settings.ENVIRONMENT.advertised_host,
    )


def limits_shown(instance: Instance, ports: Sequence[PortAllocation]) -> dict[str, int | None]:
    """The limits beside what was bought, as tenants know them."""
    limits = operators_limits(
        instance.bandwidth_mib_per_s,
        operators=instance.operators_limits,
        brokers=len([p for p in ports if p.broker_id]),
    )
    return {SHOWN_AS.get(name, name): limit for name, limit in limits.items()}


def bootstrap_of(ports: list[PortAllocation]) -> str | None:
    """``host:port,host:port``: what a client is given; None before addresses are allocated."""
    advertised = settings.ENVIRONMENT.advertised_host
    return ",".join(address_text((advertised or port.host, port.port)) for port in ports) or None
