"""Zones of the clusters by the vendor's API: numbers that stay, and instances that go where they are sent."""

from __future__ import annotations

import pytest

from controlplane.ckafka_api.actions.places import zone_number
from controlplane.clusters.models import PhysicalCluster
from controlplane.clusters.services import cluster_ensure
from controlplane.instances.models import Instance

from .conftest import refused

pytestmark = pytest.mark.filterwarnings("ignore:datetime.datetime.utcfromtimestamp")
BUY = {"VpcId": "v", "SubnetId": "s", "BandWidth": 20, "DiskSize": 100, "Partition": 100}


@pytest.fixture
def two(db):
    PhysicalCluster.objects.filter(pk=cluster_ensure().pk).update(zones=["eu-1a"])
    return PhysicalCluster.objects.create(name="second", zookeeper_hosts="second:2181", zones=["eu-1b", "eu-1c"])


def zones(ask):
    return {zone["ZoneName"]: zone for zone in ask("DescribeCkafkaZone")["Result"]["ZoneList"]}


def test_where_clusters_are_in_no_zone_there_is_one_that_stands_for_all(ask):
    (only,) = zones(ask).values()
    assert (only["ZoneId"], only["SoldOut"]) == ("1", "false")


def test_each_zone_has_a_number_that_follows_from_its_name(ask, two):
    found = zones(ask)
    assert set(found) == {"default", "eu-1a", "eu-1b", "eu-1c"}
    assert int(found["eu-1b"]["ZoneId"]) == zone_number("eu-1b")
    assert len({zone["ZoneId"] for zone in found.values()}) == 4
    PhysicalCluster.objects.filter(pk=two.pk).update(state="cordoned")
    assert {name: zone["SoldOut"] for name, zone in zones(ask).items()} == {
        "default": "false", "eu-1a": "false", "eu-1b": "true", "eu-1c": "true",
    }  # fmt: skip


def test_an_instance_goes_where_it_is_sent_and_says_where_it_is(ask, two):
    wanted = [zone_number("eu-1b"), zone_number("eu-1c")]
    bought = ask("CreatePostPaidInstance", **BUY, ZoneIds=wanted, MultiZoneFlag=True)["Result"]["Data"]
    row = Instance.objects.unscoped("a test").select_related("cluster").get(pk=bought["InstanceId"])
    assert (row.cluster, row.placement) == (two, {"zones": ["eu-1b", "eu-1c"]})
    shown = ask("DescribeInstancesDetail", InstanceIdList=[row.pk])["Result"]["InstanceList"][0]
    assert shown["ZoneIds"] == sorted(wanted)
    assert shown["ZoneId"] == min(wanted)


@pytest.mark.parametrize("zone", [9, 99_999])
def test_a_zone_that_is_not_there_is_refused(sdk, two, zone):
    code, message = refused(lambda: sdk.call_json("CreatePostPaidInstance", {**BUY, "ZoneId": zone}))
    assert code == "InvalidParameterValue.ZoneNotSupport"
    assert str(zone_number("eu-1a")) in message


def test_several_zones_are_several(sdk, two):
    asked = {**BUY, "MultiZoneFlag": True, "ZoneId": zone_number("eu-1a")}
    assert refused(lambda: sdk.call_json("CreatePostPaidInstance", asked))[0] == "InvalidParameterValue"


def test_what_no_cluster_can_do_is_told_as_too_little(sdk, two):
    asked = {**BUY, "MultiZoneFlag": True, "ZoneIds": [zone_number("eu-1a"), zone_number("eu-1b")]}
    assert refused(lambda: sdk.call_json("CreatePostPaidInstance", asked))[0] == "ResourceInsufficient"
