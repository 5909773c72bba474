"""Routes, and who may connect: the vendor's access policy of a route is its whitelist, of the first one the instance's.

A RouteId is a route's number within its instance: 1 is the default one.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from controlplane.ckafka_api.actions.calls import Call, done, flow_id, moment_of, offered
from controlplane.ckafka_api.errors import CkafkaError, Code
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.instances import services as instances
from controlplane.instances.models import RouteState
from controlplane.instances.selectors import IN_FORCE
from controlplane.routes import services
from controlplane.routes.selectors import route_list
from quota.contracts.instance import Security

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.instances.models import Route

DEFAULT = 1
PUBLIC, OF_A_VPC = 1, 3
LONGEST_DELAY = timedelta(hours=24)
ACCESS: Mapping[int, Mapping[str, Any]] = {
    0: {"security": Security.PLAINTEXT.value},
    1: {"security": Security.SASL_PLAINTEXT.value, "mechanisms": ["PLAIN"], "allow_plain_in_clear": True},
    2: {"security": Security.SSL.value},
    3: {"security": Security.SASL_SSL.value, "mechanisms": ["PLAIN"]},
    4: {"security": Security.SASL_PLAINTEXT.value, "mechanisms": ["SCRAM-SHA-256"]},
    5: {"security": Security.SASL_PLAINTEXT.value, "mechanisms": ["SCRAM-SHA-512"]},
}
"""By AccessType. The vendor's 1 is PLAIN in clear: whoever asks for it here means it."""
OF_TYPE: Mapping[int, Sequence[int]] = {OF_A_VPC: (0, 1, 2, 3, 4, 5), PUBLIC: (1, 3)}
"""Which of them a route of a VPC and a public one can have."""
_BY_SECURITY: Mapping[str, int] = {"plaintext": 0, "sasl_plaintext": 1, "ssl": 2, "sasl_ssl": 3}
_STATUS: Mapping[str, int] = {
    RouteState.CREATING: 1,
    RouteState.RUNNING: 2,
    RouteState.FAILED: 3,
    RouteState.DELETING: 4,
}


def addresses_of(routes: Sequence[Route]) -> list[dict[str, str]]:
    """Where clients of an instance are told to connect: an address for each broker, of the first of its routes."""
    in_force = [route for route in routes if route.state in IN_FORCE]
    return _addresses(in_force[0]) if in_force else []


def hosts_of(routes: Sequence[Route]) -> list[str]:
    """Of the brokers, each once."""
    return list(dict.fromkeys(address["Vip"] for address in addresses_of(routes)))


def _addresses(route: Route) -> list[dict[str, str]]:
    return [{"Vip": host, "Vport": str(port)} for host, port in route.addresses]  # type: ignore[attr-defined]


def routes(call: Call) -> dict[str, Any]:
    """DescribeRoute."""
    wanted = call.parameters.get("RouteId")
    found = [route for route in route_list(**call.view) if wanted in (None, route.number)]
    if call.parameters.get("MainRouteFlag"):
        found = [route for route in found if route.number == DEFAULT]
    return {"Routers": [_shown(route) for route in found]}


def _shown(route: Route) -> dict[str, Any]:
    addresses = _addresses(route)
    is_up = route.state != RouteState.RUNNING or bool(addresses)
    return {
        "RouteId": route.number,
        "VipType": PUBLIC if route.public else OF_A_VPC,
        "AccessType": _access_type(route),
        "VipList": addresses[:1],
        "BrokerVipList": addresses,
        "DeleteTimestamp": "" if route.closes_at is None else f"{route.closes_at:%Y-%m-%d %H:%M:%S}",
        "Status": _STATUS[route.state] if is_up else _STATUS[RouteState.CREATING],
    }


def _access_type(route: Route) -> int:
    exact = (
        number
        for number, members in ACCESS.items()
        if members["security"] == route.security and members.get("mechanisms", []) == route.mechanisms
    )
    return next(exact, _BY_SECURITY[route.security])


def create(call: Call) -> dict[str, Any]:
    """CreateRoute. Of whom a public one lets in, IpWhitelist says; what it may carry is the instance's bandwidth."""
    given = {"AccessType": 0, **call.parameters}
    offered(given, {"VipType": tuple(OF_TYPE), "AuthFlag": (0,), "Ip": ("",), "Note": ("",), "SecurityGroupIds": ([],)})
    offered(given, {"AccessType": OF_TYPE[given["VipType"]]})
    members: dict[str, Any] = dict(ACCESS[given["AccessType"]])
    if given["VipType"] == PUBLIC:
        members["public"] = True
        if "IpWhitelist" in given:
            members["whitelist"] = _cidrs(given["IpWhitelist"])
    else:
        offered(given, {"PublicNetwork": (0,), "IpWhitelist": ([],)})
    route, operation = services.route_create(**call.place, members=members)
    answer = done(flow_id(operation))
    return answer | {"Data": answer["Data"] | {"RouteDTO": {"RouteId": route.number}}}


def delete(call: Call) -> dict[str, Any]:
    """DeleteRoute: now, or of a public one, at DeleteRouteTime."""
    route = _found(call, call.parameters["RouteId"])
    if "DeleteRouteTime" in call.parameters:
        return done(_ends(call, route, call.parameters["DeleteRouteTime"]))
    return done(flow_id(services.route_delete(**call.place, route_id=route.key)))


def trigger_time(call: Call) -> None:
    """DeleteRouteTriggerTime: another time at which the public route ends."""
    public = [route for route in route_list(**call.view) if route.public]
    if not public:
        raise CkafkaError(Code.NOT_FOUND, "The instance has no public route.")
    _ends(call, public[0], call.parameters["DelayTime"])


def _ends(call: Call, route: Route, text: str) -> int:
    """The task that tells brokers when the route closes. It stays listed, closed, until it is deleted."""
    if not route.public:
        raise CkafkaError(Code.UNSUPPORTED, "Only a public route can be deleted at a time.")
    at = moment_of(text)
    if at > SYSTEM_CLOCK.now() + LONGEST_DELAY:
        raise CkafkaError(Code.INVALID_VALUE, "The time must be within 24 hours.")
    _, operation = services.route_update(**call.place, route_id=route.key, changes={"closes_at": at})
    return flow_id(operation)


def policy(call: Call) -> dict[str, Any]:
    """DescribeAccessPolicy. A route without a whitelist of its own lets in whom the instance lets in."""
    route = _found(call, call.parameters["RouteId"])
    cidrs = call.instance.whitelist if route.number == DEFAULT or route.whitelist is None else route.whitelist
    return {"TotalCount": len(cidrs), "IpWhitelist": [{"CidrBlock": cidr} for cidr in cidrs]}


def policy_set(call: Call) -> str:
    """ModifyAccessPolicy: what is given replaces all there was; not given at all, nobody may connect."""
    route = _found(call, call.parameters["RouteId"])
    cidrs = _cidrs(call.parameters.get("IpWhitelist", []))
    if route.number == DEFAULT:
        instances.instance_whitelist_set(**call.place, cidrs=cidrs)
    else:
        services.route_update(**call.place, route_id=route.key, changes={"whitelist": cidrs})
    return "success"


def _cidrs(rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    for row in rows:
        offered(row, {"PolicyDescription": ("", None)})
    return [row.get("CidrBlock") for row in rows]


def _found(call: Call, number: int) -> Route:
    for route in route_list(**call.view):
        if route.number == number:
            return route
    raise CkafkaError(Code.NOT_FOUND, f"The instance has no route {number}.")
