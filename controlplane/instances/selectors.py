"""Reading instances, always within an organisation unless the reason stands beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings

from controlplane.clusters.selectors import ports_of
from controlplane.core.errors import Conflict, NotFound
from controlplane.instances.models import Instance, InstanceState, Route, RouteState
from controlplane.instances.spec import Bought, Listener, WantedRoute, operators_limits, spec_of
from quota.contracts.instance import InstanceSpec, address_text
from quota.contracts.instance import InstanceState as SpecState
from quota.contracts.instance import Route as ContractRoute

SHOWN_AS = {"loop_ms_per_s": "broker_time_ms_per_s"}
"""A tenant need not know that a broker has a loop."""
IN_FORCE = (RouteState.CREATING, RouteState.RUNNING)
"""States of routes that brokers are told of."""

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from django.db.models import QuerySet

    from controlplane.clusters.models import PhysicalCluster, PortAllocation
    from controlplane.tenants.models import Organisation


def instance_list(
    *,
    organisation: Organisation,
    state: str = "",
    name: str = "",
    prefix: str = "",
    only: frozenset[str] | None = None,
) -> QuerySet[Instance]:
    """Instances of an organisation that are not gone, with their clusters: all, or those in a state, or of a name.

    `prefix`: how their names begin; `only`: of these ids alone.
    """
    rows = Instance.objects.for_organisation(organisation).exclude(state=InstanceState.DELETED)
    if only is not None:
        rows = rows.filter(pk__in=only)
    wanted = {"state": state, "name": name, "name__startswith": prefix}
    return rows.filter(**{field: value for field, value in wanted.items() if value}).select_related("cluster")


def instance_get(*, organisation: Organisation, instance_id: str) -> Instance:
    """One instance. Raises NotFound, also for another organisation's."""
    instance = instance_list(organisation=organisation).filter(pk=instance_id).first()
    if instance is None:
        raise NotFound(f"no instance {instance_id}")
    return instance


def instance_any(*, organisation: Organisation, instance_id: str) -> Instance:
    """An instance that is or was: its usage and its bills outlive it. Raises NotFound."""
    rows = Instance.objects.for_organisation(organisation).select_related("cluster")
    instance = rows.filter(pk=instance_id).first()
    if instance is None:
        raise NotFound(f"no instance {instance_id}")
    return instance


def instance_running_get(*, organisation: Organisation, instance_id: str) -> Instance:
    """One instance that can be used. Raises NotFound, and Conflict while it is not running."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    refuse_isolated(instance)
    if instance.state != InstanceState.RUNNING:
        raise Conflict(f"the instance is {instance.state}, not running", code="instance_not_running")
    return instance


def refuse_isolated(instance: Instance) -> None:
    """What can be done with an isolated instance is to restore it. Raises Conflict."""
    if instance.state == InstanceState.ISOLATED:
        raise Conflict(
            f"{instance.id} is isolated: restore it first, or it is destroyed when its grace period ends",
            code="instance_isolated",
        )


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


def routes_of_any_state(instance_id: str) -> QuerySet[Route]:
    """Every route that an instance has or had, for the machinery and for those who have found the instance."""
    return Route.objects.unscoped("the caller has found the instance").filter(instance=instance_id).order_by("number")


def routes_wanted(instance_id: str) -> list[Route]:
    """The routes that brokers are told of, the oldest first."""
    return list(routes_of_any_state(instance_id).filter(state__in=IN_FORCE))


def routes_by_instance(instance_ids: Iterable[str]) -> dict[str, list[Route]]:
    """The same for many instances with one query."""
    found: dict[str, list[Route]] = {}
    rows = Route.objects.unscoped("the caller has found the instances")
    for route in rows.filter(instance__in=list(instance_ids), state__in=IN_FORCE).order_by("number"):
        found.setdefault(route.instance_id, []).append(route)
    return found


def spec_wanted(
    instance: Instance, routes: Sequence[Route] | None = None, ports: Sequence[PortAllocation] | None = None
) -> InstanceSpec:
    """The spec of a row just read; routes and ports are the instance's where the caller has read them after the row.

    The row is read before both: whoever changes a route or a port raises the generation, in the same transaction or
    afterwards, so that they are never older than the generation they are published under.
    """
    wanted = routes_wanted(instance.id) if routes is None else routes
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
            elastic_mib_per_s=instance.elastic_mib_per_s if instance.elastic_off_until is None else None,
        ),
        operators=instance.operators_limits,
        routes=[_wanted(route) for route in wanted],
        listeners=_listeners(held),
        advertised_host=settings.ENVIRONMENT.advertised_host,
    )


def _listeners(ports: Sequence[PortAllocation]) -> list[Listener]:
    return [Listener(port.broker.broker_id, port.host, port.port, port.route) for port in ports if port.broker]


def _wanted(route: Route) -> WantedRoute:
    """As brokers have it, but for its endpoints."""
    contract = ContractRoute(
        route.key,
        {},
        security=route.security,
        mechanisms=tuple(route.mechanisms),
        allow_plain_in_clear=route.allow_plain_in_clear,
        client_certificates=route.client_certificates,
        principal_mapping=tuple(route.principal_mapping),
        proxy_protocol=route.proxy_protocol,
        whitelist=None if route.whitelist is None else tuple(route.whitelist),
        connections=route.connections,
        connections_per_address=route.connections_per_address,
        closes_at_ms=None if route.closes_at is None else round(route.closes_at.timestamp() * 1000),
    )
    return WantedRoute(
        contract, route.advertised_host, {int(broker): host for broker, host in route.advertised_hosts.items()}
    )


def limits_shown(instance: Instance, ports: Sequence[PortAllocation]) -> dict[str, int | None]:
    """The limits beside what was bought, as tenants know them."""
    limits = operators_limits(
        instance.bandwidth_mib_per_s,
        operators=instance.operators_limits,
        brokers=len({port.broker_id for port in ports if port.broker_id}),
    )
    return {SHOWN_AS.get(name, name): limit for name, limit in limits.items()}


def bootstrap_of(routes: Sequence[Route], ports: Sequence[PortAllocation]) -> str | None:
    """What clients of an instance are given: the default route's addresses; where that is gone, those of its oldest route."""
    return route_bootstrap(routes[0], ports) if routes else None


def route_bootstrap(route: Route, ports: Sequence[PortAllocation]) -> str | None:
    """``host:port,host:port``, as clients of a route are told; None before addresses are allocated."""
    return ",".join(address_text(address) for address in route_addresses(route, ports)) or None


def route_addresses(route: Route, ports: Sequence[PortAllocation]) -> list[tuple[str, int]]:
    """Of each broker, by its id; `ports` may be of all the instance's routes."""
    wanted, otherwise = _wanted(route), settings.ENVIRONMENT.advertised_host
    return [wanted.advertised(each, otherwise) for each in _listeners(ports) if each.route == route.key]
