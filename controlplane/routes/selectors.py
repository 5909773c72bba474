"""Reading an instance's routes as its tenant sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.clusters.selectors import ports_by_owner
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import NotFound
from controlplane.instances.models import Route, RouteState
from controlplane.instances.selectors import instance_get, route_addresses, route_bootstrap
from controlplane.kafka import connections

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from controlplane.clusters.models import PortAllocation
    from controlplane.instances.models import Instance
    from controlplane.tenants.models import Organisation

CLOSED = "closed"
"""Shown as the state of a route that was open until its end came."""
SHOWN_STATES = [*(state.value for state in RouteState if state is not RouteState.REMOVED), CLOSED]


def place_of(route: Route) -> str:
    """By which routes stand in the order in which they were made."""
    return f"{route.number:09}"


SORTED: Mapping[str, Callable[[Route], str | datetime | None]] = {
    "id": place_of,
    "security": lambda route: route.security,
    "state": lambda route: route.shown_state,  # type: ignore[attr-defined]  # `routes_shown` has said it
    "closes_at": lambda route: route.closes_at,
    "created_at": lambda route: route.created_at,
}
"""What a list can be sorted by, in the words of REST; ids by their numbers: r10 stands behind r9."""


def route_list(*, organisation: Organisation, instance_id: str, clock: Clock = SYSTEM_CLOCK) -> list[Route]:
    """Those that are not removed, the oldest first, with `addresses`, `bootstrap` and `shown_state`. Raises NotFound."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    return routes_shown([instance], clock=clock)[instance.id]


def route_get(*, organisation: Organisation, instance_id: str, route_id: str, clock: Clock = SYSTEM_CLOCK) -> Route:
    """One of them. Raises NotFound."""
    for route in route_list(organisation=organisation, instance_id=instance_id, clock=clock):
        if route.key == route_id:
            return route
    raise NotFound(f"no route {route_id}")


def route_clients(*, organisation: Organisation, instance_id: str, route_id: str) -> tuple[str, ...]:
    """Clients that are connected by it at this moment; none as well where no broker answers. Raises NotFound."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    return connections.clients_of(instance.cluster.address, instance.id, lambda row: row.route_id == route_id)


def routes_shown(
    instances: Iterable[Instance],
    *,
    ports: Mapping[str, Sequence[PortAllocation]] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> dict[str, list[Route]]:
    """The same of instances that were found already, each of which has an entry; `ports` where the caller has read them."""
    found: dict[str, list[Route]] = {instance.id: [] for instance in instances}
    ports = ports_by_owner(found) if ports is None else ports
    rows = Route.objects.unscoped("the caller has found the instances").filter(instance__in=list(found))
    for route in rows.exclude(state=RouteState.REMOVED).select_related("organisation").order_by("number"):
        route.addresses = route_addresses(route, ports.get(route.instance_id, []))  # type: ignore[attr-defined]
        route.bootstrap = route_bootstrap(route, ports.get(route.instance_id, []))  # type: ignore[attr-defined]
        route.shown_state = _shown_state(route, clock)  # type: ignore[attr-defined]
        found[route.instance_id].append(route)
    return found


def _shown_state(route: Route, clock: Clock) -> str:
    is_over = route.closes_at is not None and route.closes_at <= clock.now()
    return CLOSED if is_over and route.state == RouteState.RUNNING else route.state
