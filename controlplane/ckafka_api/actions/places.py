"""Regions, zones, and prices.

An installation is one region. Its zones are those that its clusters are registered with, and have numbers here, which follow from
their names, so that they stay whatever is registered. Number 1 is none of them: wherever there is room. It is the only one where
clusters are in no zones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zlib import crc32

from controlplane.admission.places import zones_offered
from controlplane.billing import selectors as billing
from controlplane.ckafka_api.actions.calls import Call, offered
from controlplane.ckafka_api.errors import CkafkaError, Code
from controlplane.clusters.services import DEFAULT_CLUSTER
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.instances.validation import MOST_BANDWIDTH_MIB_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from controlplane.billing.selectors import Estimate

REGION = ZONE = 1
LEAST_ZONE, ZONE_NUMBERS = 100_000, 900_000
MBPS_OF_A_MIB_PER_S = 8
ITEMS: Mapping[str, str] = {
    "bandwidth": "BandwidthPrice",
    "disk": "DiskPrice",
    "partitions": "PartitionPrice",
}


def zones_wished(asked: Mapping[str, Any]) -> list[str]:
    """The names of the zones that are meant; none: wherever there is room. Raises CkafkaError where there is no such zone."""
    wanted = {asked.get("ZoneId", ZONE), *asked.get("ZoneIds", ())}
    if wanted == {ZONE}:
        return []
    known = {zone_number(name): name for name in zones_offered()}
    if wanted - {ZONE, *known}:
        offered_here = f"zone that is offered here is {ZONE}"
        if known:
            offered_here = f"zones that are offered here are {', '.join(map(str, (ZONE, *sorted(known))))}"
        raise CkafkaError(Code.NO_ZONE, f"The {offered_here}.")
    return sorted(known[number] for number in wanted - {ZONE})


def zone_number(name: str) -> int:
    """Of a zone, as long as it is called so."""
    return LEAST_ZONE + crc32(name.encode()) % ZONE_NUMBERS


def zone_numbers(names: Iterable[str]) -> list[int]:
    """Of the zones of an instance's cluster; at least one."""
    return sorted(map(zone_number, names)) or [ZONE]


def regions(call: Call) -> list[dict[str, Any]]:
    """DescribeRegion."""
    del call
    name = DEFAULT_CLUSTER
    return [
        {"RegionId": REGION, "RegionName": name, "AreaName": name, "RegionCode": name, "RegionCodeV3": name, "Support": "NONE"}
    ]  # fmt: skip


def zones(call: Call) -> dict[str, Any]:
    """DescribeCkafkaZone."""
    offered(call.parameters, {"CdcId": ("",)})
    found = zones_offered()
    shown = [(ZONE, DEFAULT_CLUSTER, any(found.values()) if found else True)]
    shown += [(zone_number(name), name, takes_new) for name, takes_new in found.items()]
    return {
        "ZoneList": [
            {
                "ZoneId": str(number),
                "ZoneName": name,
                "ZoneStatus": 3,
                "Flag": False,
                "SoldOut": "false" if takes_new else "true",
            }
            for number, name, takes_new in shown
        ],
        "MaxBuyInstanceNum": 1,
        "MaxBandwidth": MOST_BANDWIDTH_MIB_PER_S * MBPS_OF_A_MIB_PER_S,
        "Standard": "false",
        "StandardS2": "false",
        "Profession": "true",
        "Physical": "false",
        "PublicNetwork": "false",
        "Limit": 1,
    }


def price(call: Call) -> dict[str, Any]:
    """InquireCkafkaPrice: of an hour, since instances are paid for by the hour."""
    asked = call.parameters
    offered(asked, {"InstanceType": ("profession",), "CategoryAction": ("purchase",), "BillType": ("",)})
    offered(asked.get("InstanceChargeParam", {}), {"InstanceChargeType": ("POSTPAID_BY_HOUR",)})
    offered(asked.get("PublicNetworkParam", {}), {"PublicNetworkMonthly": (0,)})
    zones_wished(asked)
    disk_gb = asked["InquiryDiskParam"].get("DiskSize")
    number = asked.get("InstanceNum", 1)
    if disk_gb is None:
        raise CkafkaError(Code.MISSING_PARAMETER, "The parameter `InquiryDiskParam.DiskSize` is missing.")
    if number < 1 or asked["Bandwidth"] < 0 or asked["Partition"] < 0 or disk_gb < 0:
        raise CkafkaError(Code.INVALID_VALUE, "Sizes must not be negative, and InstanceNum must be 1 or more.")
    estimate = billing.estimate(
        bandwidth_mib_per_s=asked["Bandwidth"],
        storage_gib=disk_gb,
        partitions=asked["Partition"],
        plan=billing.plan_of(organisation=call.organisation, at=SYSTEM_CLOCK.now()),
    )
    return {"InstancePrice": _priced(estimate, number)}


def _priced(estimate: Estimate, number: int) -> dict[str, Any]:
    details = {
        ITEMS[item]: _an_hour(float(amount), number, estimate.currency) | {"Value": 1}
        for item, amount in estimate.lines
        if item in ITEMS
    }
    return _an_hour(float(estimate.per_hour), number, estimate.currency) | {"DetailPrices": details}


def _an_hour(unit_price: float, number: int, currency: str) -> dict[str, Any]:
    total = round(unit_price * number, 6)
    return {
        "UnitPrice": unit_price,
        "UnitPriceDiscount": unit_price,
        "OriginalPrice": total,
        "DiscountPrice": total,
        "Discount": 100.0,
        "GoodsNum": number,
        "Currency": currency,
        "TimeSpan": 1,
        "TimeUnit": "h",
    }
