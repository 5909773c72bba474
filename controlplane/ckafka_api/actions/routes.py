"""Routes, and who may connect: the vendor's access policy of a public route is our whitelist of the instance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings

from controlplane.ckafka_api.actions.calls import Call, offered
from controlplane.ckafka_api.errors import CkafkaError, Code
from controlplane.clusters.selectors import ports_of
from controlplane.instances import services

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controlplane.clusters.models import PortAllocation

ROUTE = 1
"""An instance has one, its default."""
OF_A_VPC, PLAINTEXT, CREATED, CREATING = 3, 0, 2, 1


def addresses_of(ports: Sequence[PortAllocation]) -> list[dict[str, str]]:
    """Where clients are told to connect: an address for each broker."""
    advertised = settings.ENVIRONMENT.advertised_host
    return [{"Vip": advertised or port.host, "Vport": str(port.port)} for port in ports]


def routes(call: Call) -> dict[str, Any]:
    """DescribeRoute."""
    if call.parameters.get("RouteId", ROUTE) != ROUTE:
        return {"Routers": []}
    addresses = addresses_of(ports_of(call.instance.id))
    route = {
        "RouteId": ROUTE,
        "VipType": OF_A_VPC,
        "AccessType": PLAINTEXT,
        "VipList": addresses[:1],
        "BrokerVipList": addresses,
        "Status": CREATED if addresses else CREATING,
    }
    return {"Routers": [route]}


def policy(call: Call) -> dict[str, Any]:
    """DescribeAccessPolicy."""
    _check_route(call)
    rows = [{"CidrBlock": cidr} for cidr in call.instance.whitelist]
    return {"TotalCount": len(rows), "IpWhitelist": rows}


def policy_set(call: Call) -> str:
    """ModifyAccessPolicy: what is given replaces all there was; not given at all, nobody may connect."""
    _check_route(call)
    rows = call.parameters.get("IpWhitelist", [])
    for row in rows:
        offered(row, {"PolicyDescription": ("", None)})
    services.instance_whitelist_set(**call.place, cidrs=[row.get("CidrBlock") for row in rows])
    return "success"


def _check_route(call: Call) -> None:
    if call.parameters["RouteId"] != ROUTE:
        raise CkafkaError(Code.NOT_FOUND, f"The route of the instance is {ROUTE}.")
