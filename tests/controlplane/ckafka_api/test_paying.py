"""How an instance is paid, and its elastic bandwidth, as the vendor's SDK is shown them."""

from __future__ import annotations

import pytest

from controlplane.admission.elastic import elastic_set
from controlplane.admission.prepaid import prepaid_begin, prepaid_set
from controlplane.billing.models import Prepaid, PrepaidEvent
from controlplane.core.clock import SYSTEM_CLOCK

from .conftest import refused

SIZE = {"BandWidth": 20, "DiskSize": 100, "Partition": 100}


def attributes(ask, instance):
    return ask("DescribeInstanceAttributes", InstanceId=instance.id)["Result"]


def renew_flag(ask, instance):
    (detail,) = ask("DescribeInstancesDetail", InstanceId=instance.id)["Result"]["InstanceList"]
    return detail["RenewFlag"]


def test_an_instance_is_paid_by_the_hour_or_in_advance(alice, ask, instance):
    assert (attributes(ask, instance)["InstanceChargeType"], renew_flag(ask, instance)) == ("POSTPAID_BY_HOUR", 0)
    about = {"organisation": alice.organisation, "actor": "a", "instance_id": instance.id}
    prepaid_begin(**about, months=1)
    assert (attributes(ask, instance)["InstanceChargeType"], renew_flag(ask, instance)) == ("PREPAID", 2)
    ends_at = Prepaid.objects.unscoped("a test").get().ends_at
    assert attributes(ask, instance)["ExpireTime"] == int(ends_at.timestamp())
    prepaid_set(**about, at_end="renew")
    assert renew_flag(ask, instance) == 1


def test_elastic_bandwidth_is_off_on_or_closed_by_its_budget(alice, ask, instance):
    def shown():
        found = attributes(ask, instance)
        return found["ElasticBandwidthSwitch"], found["ElasticBandwidthOpenStatus"]

    assert shown() == (0, 1)
    elastic_set(organisation=alice.organisation, actor="a", instance_id=instance.id, cap_mib_per_s=8)
    assert shown() == (1, 32)
    type(instance).objects.unscoped("a test").update(elastic_off_until=SYSTEM_CLOCK.now())
    assert shown() == (1, 34)


@pytest.mark.parametrize("action", ["DeleteInstancePre", "DeleteInstancePost", "IsolatedInstancePre"])
def test_deleted_by_any_action_what_is_left_is_given_back(alice, ask, instance, action):
    prepaid_begin(organisation=alice.organisation, actor="a", instance_id=instance.id, months=1)
    ask(action, InstanceId=instance.id)
    assert Prepaid.objects.unscoped("a test").get().ends_at is None
    assert events() == [("bought", 1), ("five_days", 0)]


@pytest.mark.parametrize(
    ("flag", "at_end"), [({}, "expire"), ({"RenewFlag": 1}, "renew"), ({"RenewFlag": 2}, "expire")]
)
def test_months_are_bought_with_an_instance(ask, brokers, flag, at_end):
    data = ask("CreateInstancePre", InstanceName="ahead", Period="2m", **SIZE, **flag)["Result"]["Data"]
    row = Prepaid.objects.unscoped("a test").get(instance=data["InstanceId"])
    assert (row.is_waiting, row.at_end, events()) == (True, at_end, [("bought", 2)])


@pytest.mark.parametrize("period", ["0m", "37m", "1y", "1", "m", "100m"])
def test_a_period_is_from_1_to_36_months(ask, brokers, period):
    assert refused(lambda: ask("CreateInstancePre", Period=period, **SIZE))[0] == "InvalidParameterValue"
    assert events() == []


def test_months_are_renewed(alice, ask, instance):
    assert refused(lambda: ask("RenewCkafkaInstance", InstanceId=instance.id))[0] == "OperationDenied"
    prepaid_begin(organisation=alice.organisation, actor="a", instance_id=instance.id, months=1)
    deal = ask("RenewCkafkaInstance", InstanceId=instance.id, TimeSpan=2)["Result"]
    assert (deal["DealName"][:3], deal["BigDealId"]) == ("op-", deal["DealName"])
    ask("RenewCkafkaInstance", InstanceId=instance.id)
    assert events() == [("bought", 1), ("renewed", 2), ("renewed", 1)]


def test_a_price_is_of_months_where_these_are_asked_for(ask):
    disk = {"DiskType": "CLOUD_SSD", "DiskSize": 150}
    size = {"InstanceType": "profession", "Bandwidth": 20, "Partition": 500, "InquiryDiskParam": disk}

    def price(**members):
        charged = {"InstanceChargeType": "PREPAID", **members}
        return ask("InquireCkafkaPrice", **size, InstanceChargeParam=charged)["Result"]["InstancePrice"]

    found = price(InstanceChargePeriod=3)
    assert (found["UnitPrice"], found["OriginalPrice"], found["TimeSpan"], found["TimeUnit"]) == (1410, 4230, 3, "m")
    parts = [found["DetailPrices"][f"{name}Price"]["OriginalPrice"] for name in ("Bandwidth", "Disk", "Partition")]
    assert parts == [2670, 960, 600]
    assert price()["OriginalPrice"] == 1410
    assert refused(lambda: price(InstanceChargePeriod=37))[0] == "InvalidParameterValue"


def events():
    rows = PrepaidEvent.objects.unscoped("a test").order_by("pk")
    return list(rows.values_list("kind", "months"))
