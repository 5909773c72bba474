"""Instances: buying, resizing, reading, deleting. Their MB/s and GB are our MiB/s and GiB; Bandwidth in answers is in Mbps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from django.db import transaction

from controlplane.admission import purchases
from controlplane.ckafka_api.actions.calls import Call, done, flow_id, offered, page_of, renamed
from controlplane.ckafka_api.actions.places import zone_numbers, zones_wished
from controlplane.ckafka_api.actions.policies import disk_policy_shown, disk_policy_wanted
from controlplane.ckafka_api.actions.routes import addresses_of, hosts_of
from controlplane.ckafka_api.errors import CkafkaError, Code
from controlplane.health.rules import HealthState
from controlplane.health.selectors import health_get
from controlplane.instances import lifecycle, selectors
from controlplane.instances.models import InstanceState
from controlplane.instances.spec import config_of
from controlplane.policies.services import policy_set
from controlplane.routes.selectors import routes_shown
from controlplane.topics.selectors import topic_list

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.db.models import QuerySet

    from controlplane.core.models import Operation
    from controlplane.health.rules import Health
    from controlplane.instances.models import Instance

DEFAULT_NAME = "ckafka"
DEFAULT_SIZE: Mapping[str, int] = {"bandwidth_mib_per_s": 40, "storage_gib": 500, "partitions": 800}
"""As the vendor's CreatePostPaidInstance."""
SIZES: Mapping[str, str] = {"BandWidth": "bandwidth_mib_per_s", "DiskSize": "storage_gib", "Partition": "partitions"}
WORDS: Mapping[str, str] = {"ConfirmPrice": "confirm_price", "AcceptFullStorage": "accept_full_storage"}
CONFIG: Mapping[str, str] = {
    "AutoCreateTopicEnable": "auto_create_topics",
    "DefaultNumPartitions": "default_partitions",
    "DefaultReplicationFactor": "default_replication_factor",
}
STATUS: Mapping[str, int] = {
    InstanceState.CREATING: 0,
    InstanceState.RUNNING: 1,
    InstanceState.DELETING: 2,
    InstanceState.DELETED: 3,
    InstanceState.ISOLATED: 5,
    InstanceState.RESTORING: 0,
    InstanceState.FAILED: -1,
}
HEALTHY: Mapping[HealthState, int] = {HealthState.HEALTHY: 1, HealthState.DEGRADED: 2, HealthState.CRITICAL: 3}
MBPS_OF_A_MIB_PER_S = 8
VERSION = "3.2.3"
"""Of the versions that the vendor sells, the nearest to what brokers speak."""
VERSIONS = ("2.4.1", "2.4.2", "2.8.1", VERSION)
"""Clients of any of them are served by every instance."""
KIND = "profession"


def buy(call: Call) -> dict[str, Any]:
    """CreatePostPaidInstance. VpcId and SubnetId are asked for and not kept: until ModifyAccessPolicy nobody may connect."""
    asked = call.parameters
    offered(
        asked,
        {
            "InstanceNum": (1,), "SpecificationsType": (KIND,), "DiskType": ("CLOUD_SSD", "CLOUD_PREMIUM"),
            "KafkaVersion": VERSIONS, "MultiZoneFlag": (False, True), "ElasticBandwidthSwitch": (0,), "StoreQuantityType": (0,),
            "PublicNetworkMonthly": (0,), "Tags": ([],), "CustomSSLCertId": ("",), "InstanceType": (), "ClusterId": (),
            "MsgRetentionTime": (),
        },
    )  # fmt: skip
    zones = zones_wished(asked)
    if asked.get("MultiZoneFlag", False) and len(zones) < 2:
        raise CkafkaError(Code.INVALID_VALUE, "MultiZoneFlag wants two or more zones in ZoneIds.")
    sizes = {**DEFAULT_SIZE, **renamed(asked, SIZES)}
    if asked.get("TopicNum", 0) > sizes["partitions"]:
        raise CkafkaError(
            Code.UNSUPPORTED, "There are no more topics than partitions: TopicNum must be at most Partition."
        )
    instance, operation = purchases.instance_buy(
        organisation=call.organisation,
        actor=call.caller.actor,
        name=asked.get("InstanceName", DEFAULT_NAME),
        whitelist=[],
        placement={"zones": zones} if zones else None,
        confirm_price=asked.get("ConfirmPrice", False),
        **sizes,
    )
    return {"ReturnCode": "0", "ReturnMessage": "ok", "Data": _deal(instance, operation)}


def resize(call: Call) -> dict[str, Any]:
    """ModifyInstancePre."""
    return {"ReturnCode": "0", "ReturnMessage": "ok", "Data": _deal(call.instance, _resized(call))}


def scale_down(call: Call) -> dict[str, Any]:
    """InstanceScalingDown. Both strategies are one: no data moves."""
    if call.parameters["UpgradeStrategy"] not in (1, 2):
        raise CkafkaError(Code.INVALID_VALUE, "UpgradeStrategy must be 1 or 2.")
    return {"DealNames": [_resized(call).id]}


def change(call: Call) -> dict[str, Any]:
    """ModifyInstanceAttributes: name, config, deletion protection, the policy of the disk. All of it, or nothing."""
    asked = call.parameters
    offered(
        asked,
        {
            "MsgRetentionTime": (), "RebalanceTime": (),
            "PublicNetwork": (0,), "UncleanLeaderElectionEnable": (0,), "RetentionBytes": (-1,), "AdminSecurity": (False,),
            "TransactionalIdExpirationMs": (),
        },
    )  # fmt: skip
    config = renamed(asked.get("Config", {}), CONFIG) | renamed(asked, {"MaxMessageByte": "max_message_bytes"})
    changes = renamed(asked, {"InstanceName": "name"}) | ({"config": config} if config else {})
    if "DeleteProtectionEnable" in asked:
        changes["deletion_protection"] = _switched(asked, "DeleteProtectionEnable")
    wanted = disk_policy_wanted(call)
    with transaction.atomic():
        if wanted is not None:
            policy_set(**call.place, wanted=wanted, **renamed(asked, {"ConfirmPrice": "confirm_price"}))
        if wanted is not None and not changes:
            return done()
        _, operation = purchases.instance_change(**call.place, changes=changes)
    return done(flow_id(operation))


def delete(call: Call) -> dict[str, Any]:
    """DeleteInstancePost."""
    return {"FlowId": flow_id(lifecycle.instance_delete(**call.place))}


def delete_prepaid(call: Call) -> dict[str, Any]:
    """DeleteInstancePre: how an instance is paid for makes no difference to its end."""
    return {
        "ReturnCode": "0",
        "ReturnMessage": "ok",
        "Data": _deal(call.instance, lifecycle.instance_delete(**call.place)),
    }


def machines(call: Call) -> dict[str, Any]:
    """DescribeCvmInfo: the hosts of the brokers, as clients are told them. They have no other ids that tenants know."""
    hosts = hosts_of(routes_shown([call.instance])[call.instance.id])
    rows = [{"CkafkaInstanceId": call.instance.id, "InstanceId": host, "Ip": host} for host in hosts]
    return {"CvmList": rows, "TotalCount": len(rows)}


def modify_type(call: Call) -> dict[str, Any]:
    """DescribeModifyType: no change of size moves data."""
    del call
    return {"ModifyType": 0, "MigrateFlag": False}


def version(call: Call) -> dict[str, Any]:
    """DescribeCkafkaVersion."""
    del call
    return {"KafkaVersion": VERSION, "CurBrokerVersion": VERSION}


def listed(call: Call) -> dict[str, Any]:
    """DescribeInstances and DescribeTypeInstances."""
    offered(call.parameters, {"TagKey": ("",), "VpcId": ("",)})
    rows = _filtered(call)
    page = rows[page_of(call.parameters, default=10, most=100)]
    return {"TotalCount": rows.count(), "InstanceList": [_named(instance) for instance in page]}


def detailed(call: Call) -> dict[str, Any]:
    """DescribeInstancesDetail."""
    offered(call.parameters, {"TagKey": ("",), "TagList": ([],)})
    rows = _filtered(call)
    page = list(rows[page_of(call.parameters, default=10, most=20)])
    routes, healths = routes_shown(page), health_get(page)
    details = [_detail(call, each, addresses_of(routes[each.id]), healths.get(each.id)) for each in page]
    return {"TotalCount": rows.count(), "InstanceList": details}


def attributes(call: Call) -> dict[str, Any]:
    """DescribeInstanceAttributes."""
    instance = call.instance
    addresses = addresses_of(routes_shown([instance])[instance.id])
    topics, replicas = _used(call, instance)
    left = max(0, instance.partitions - replicas)
    config = config_of(instance.config)
    return {
        **_common(instance, addresses, health_get([instance]).get(instance.id)),
        "Config": {
            "AutoCreateTopicsEnable": config["auto_create_topics"],
            "DefaultNumPartitions": config["default_partitions"],
            "DefaultReplicationFactor": config["default_replication_factor"],
        },
        "MaxMessageByte": config["max_message_bytes"],
        "CreatedPartitions": replicas,
        "CreatedTopics": topics,
        "RemainderPartitions": left,
        "RemainingPartitions": left,
        # A topic has one replica at least: what partitions are left for is the only limit on topics.
        "RemainderTopics": left,
        "RemainingTopics": left,
        "InstanceChargeType": "POSTPAID_BY_HOUR",
        "ElasticBandwidthOpenStatus": 1,
        "DeleteProtectionEnable": int(instance.deletion_protection),
        **disk_policy_shown(instance),
    }


def _resized(call: Call) -> Operation:
    _, operation = purchases.instance_change(
        **call.place, changes=renamed(call.parameters, SIZES), **renamed(call.parameters, WORDS)
    )
    return operation


def _switched(asked: Mapping[str, Any], name: str) -> bool:
    if asked[name] not in (0, 1):
        raise CkafkaError(Code.INVALID_VALUE, f"{name} must be 0 or 1.")
    return bool(asked[name])


def _deal(instance: Instance, operation: Operation) -> dict[str, Any]:
    """An operation is the nearest that we have to an order."""
    return {
        "FlowId": flow_id(operation),
        "InstanceId": instance.id,
        "DealNames": [operation.id],
        "DealNameInstanceIdMapping": [{"DealName": operation.id, "InstanceIdList": [instance.id]}],
    }


def _filtered(call: Call) -> QuerySet[Instance]:
    asked = call.parameters
    rows = selectors.instance_list(organisation=call.organisation).order_by("created_at", "id")
    for names in _ids_asked(asked):
        rows = rows.filter(pk__in=names)
    if "SearchWord" in asked:
        rows = rows.filter(name__icontains=asked["SearchWord"])
    if "Status" in asked:
        rows = rows.filter(state__in=[state for state, code in STATUS.items() if code in asked["Status"]])
    return rows


def _ids_asked(asked: Mapping[str, Any]) -> Sequence[Sequence[str]]:
    found = [[asked["InstanceId"]]] if asked.get("InstanceId") else []
    found += [asked["InstanceIdList"]] if asked.get("InstanceIdList") else []
    found += [asked["InstanceIds"].split(",")] if asked.get("InstanceIds") else []
    for each in asked.get("Filters", ()):
        if each.get("Name") != "InstanceId":
            raise CkafkaError(Code.INVALID_FILTER, "The filter that is offered here is InstanceId.")
        found.append(each.get("Values") or [])
    return found


def _named(instance: Instance) -> dict[str, Any]:
    return {
        "InstanceId": instance.id,
        "InstanceName": instance.name,
        "Status": STATUS[instance.state],
        "IfCommunity": True,
    }


def _common(instance: Instance, addresses: list[dict[str, str]], health: Health | None) -> dict[str, Any]:
    first = addresses[0] if addresses else {"Vip": "", "Vport": ""}
    failed = HEALTHY[HealthState.CRITICAL] if instance.state == InstanceState.FAILED else HEALTHY[HealthState.HEALTHY]
    return {
        **{name: value for name, value in _named(instance).items() if name != "IfCommunity"},
        **first,
        "VipList": addresses,
        "Bandwidth": round(instance.bandwidth_mib_per_s * MBPS_OF_A_MIB_PER_S),
        "DiskSize": math.ceil(instance.storage_gib),
        "ZoneId": zone_numbers(instance.cluster.zones)[0],
        "ZoneIds": zone_numbers(instance.cluster.zones),
        "Healthy": HEALTHY[health.state] if health else failed,
        "HealthyMessage": "; ".join(reason.detail for reason in health.reasons) if health else instance.problem,
        "CreateTime": int(instance.created_at.timestamp()),
        "Version": VERSION,
        "Cvm": 1,
        "InstanceType": KIND,
        "RetentionBytes": -1,
    }


def _detail(call: Call, instance: Instance, addresses: list[dict[str, str]], health: Health | None) -> dict[str, Any]:
    topics, replicas = _used(call, instance)
    return {
        **_common(instance, addresses, health),
        "TopicNum": topics,
        "PartitionNumber": replicas,
        "MaxPartitionNumber": instance.partitions,
        "MaxTopicNumber": instance.partitions,
        "DiskType": "CLOUD_SSD",
        "RenewFlag": 0,
    }


def _used(call: Call, instance: Instance) -> tuple[int, int]:
    """Topics, and replicas of their partitions: what counts against what was bought."""
    if instance.state != InstanceState.RUNNING:
        return 0, 0
    topics = topic_list(organisation=call.organisation, instance_id=instance.id)
    return len(topics), sum(view.topic.replicas for view in topics)
