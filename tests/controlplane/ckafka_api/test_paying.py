"""How an instance is paid, and its elastic bandwidth, as the vendor's SDK is shown them."""

from __future__ import annotations

from controlplane.admission.elastic import elastic_set
from controlplane.admission.prepaid import prepaid_begin, prepaid_set
from controlplane.billing.models import Prepaid
from controlplane.core.clock import SYSTEM_CLOCK


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


def test_deleted_by_either_action_what_is_left_is_given_back(alice, ask, instance):
    prepaid_begin(organisation=alice.organisation, actor="a", instance_id=instance.id, months=1)
    ask("DeleteInstancePre", InstanceId=instance.id)
    assert Prepaid.objects.unscoped("a test").get().ends_at is None
