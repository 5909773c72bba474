"""Which route, topic and mechanism the programs are written for. They hold words to be replaced where a secret belongs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.core.errors import Conflict, Invalid, SluiceError
from controlplane.instances.models import RouteState
from controlplane.instances.selectors import instance_get
from controlplane.kafka import groups
from controlplane.routes.selectors import routes_shown
from controlplane.snippets.programs import ANY_TOPIC, mechanism_of, snippets
from quota.contracts.instance import ClientCertificates
from quota.contracts.namespace import topic_name_problem

if TYPE_CHECKING:
    from controlplane.instances.models import Instance, Route
    from controlplane.snippets.programs import Snippet
    from controlplane.tenants.models import Organisation
    from quota.contracts.instance import Route as SpecRoute

_INTERNAL = "__"


@dataclass(frozen=True, slots=True)
class Guide:
    """How clients come to an instance. `mechanism`: by which they log in, empty where nobody does."""

    instance: Instance
    routes: list[Route]  # those that have addresses, of which `route` is one
    route: Route
    bootstrap: str
    mechanism: str
    topic: str
    lacks_topic: bool  # the instance has none, and `topic` is to be replaced
    snippets: list[Snippet]


def guide_get(
    *, organisation: Organisation, instance_id: str, route_id: str = "", topic: str = "", mechanism: str = ""
) -> Guide:
    """What to paste. Where nothing is said: the oldest route, its best mechanism, the first topic by name.

    A topic that is named need not be there. Raises NotFound, Invalid, Conflict where no route has an address yet.
    """
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    _check_topic(topic)
    routes = [route for route in routes_shown([instance])[instance.id] if route.state != RouteState.DELETING]
    route = _chosen(routes, route_id)
    mechanism = _mechanism(route, mechanism)
    named, lacks_topic = (topic, False) if topic else a_topic(instance)
    return Guide(
        instance=instance,
        routes=[each for each in routes if each.bootstrap],  # type: ignore[attr-defined]
        route=route,
        bootstrap=route.bootstrap,  # type: ignore[attr-defined]
        mechanism=mechanism,
        topic=named,
        lacks_topic=lacks_topic,
        snippets=programs_of(route, route.bootstrap, named, mechanism),  # type: ignore[attr-defined]
    )


def programs_of(route: Route | SpecRoute, bootstrap: str, topic: str, mechanism: str = "") -> list[Snippet]:
    """For each client. Without a mechanism: the best that the route has."""
    return snippets(
        bootstrap,
        topic,
        security=route.security,
        mechanisms=[mechanism] if mechanism else route.mechanisms,
        shows=route.client_certificates == ClientCertificates.REQUIRED,
    )


def a_topic(instance: Instance) -> tuple[str, bool]:
    """The first by name; where there is none, which is said, or nobody can say, a name to be replaced."""
    try:
        names = groups.topic_names(instance.cluster.address, instance.id)
    except SluiceError:
        return ANY_TOPIC, False
    first = min((name for name in names if not name.startswith(_INTERNAL)), default="")
    return first or ANY_TOPIC, not first


def _check_topic(topic: str) -> None:
    """What is no name of a topic would be code: whoever pastes it may have it from somebody else's link. Raises Invalid."""
    problem = topic_name_problem(topic.removeprefix(_INTERNAL)) if topic else None  # the service's own have the prefix
    if problem:
        raise Invalid.field("topic", problem)


def _chosen(routes: list[Route], route_id: str) -> Route:
    """The route of this id, or the oldest; either has an address. Raises Invalid, Conflict."""
    if not route_id:
        found = next((route for route in routes if route.bootstrap), None)  # type: ignore[attr-defined]
        if found is None:
            raise Conflict("no route of the instance has an address yet", code="route_not_ready")
        return found
    named = next((route for route in routes if route.key == route_id), None)
    if named is None:
        raise Invalid.field("route", f"there is no route {route_id}")
    if not named.bootstrap:  # type: ignore[attr-defined]
        raise Conflict(f"route {route_id} has no address yet", code="route_not_ready")
    return named


def _mechanism(route: Route, wanted: str) -> str:
    """By which clients log in. Raises Invalid where the route does not have the one that is wanted."""
    if wanted and wanted not in route.mechanisms:
        there = ", ".join(route.mechanisms)
        if not there:
            raise Invalid.field("mechanism", "nobody logs in on this route")
        raise Invalid.field("mechanism", f"the route has {there}")
    return wanted or mechanism_of(route.mechanisms)
