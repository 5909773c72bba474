"""DynamicRetentionConfig and DynamicDiskConfig of ModifyInstanceAttributes are the policy of the disk."""

from __future__ import annotations

import pytest
from tencentcloud.common.exception.tencent_cloud_sdk_exception import TencentCloudSDKException

from controlplane.policies.models import DiskPolicy
from controlplane.policies.rules import Rule
from controlplane.policies.selectors import rule_get

SHORTER = {"Enable": 1, "DiskQuotaPercentage": 80, "StepForwardPercentage": 20, "BottomRetention": 90}
LARGER = {"Enable": 1, "DiskQuotaPercentage": 85, "StepForwardPercentage": 15, "MaxDiskSpace": 40}


@pytest.fixture
def change(ask, instance):
    return lambda **parameters: ask("ModifyInstanceAttributes", InstanceId=instance.id, **parameters)


def shown(ask, instance):
    result = ask("DescribeInstanceAttributes", InstanceId=instance.id)["Result"]
    return result["RetentionTimeConfig"], result["DynamicDiskConfig"]


def test_without_a_policy_both_are_off(ask, instance):
    retention, disk = shown(ask, instance)
    assert (retention["Enable"], disk["Enable"]) == (0, 0)
    assert (retention["DiskQuotaPercentage"], retention["StepForwardPercentage"], retention["BottomRetention"]) == (
        75,
        10,
        60,
    )


def test_one_is_switched_on_then_the_other_then_off(change, ask, instance):
    change(DynamicRetentionConfig=SHORTER)
    assert shown(ask, instance)[0] == SHORTER
    assert rule_get(instance) == Rule("retention", 80, 20, 90)
    change(DynamicDiskConfig=LARGER)
    retention, disk = shown(ask, instance)
    assert (retention["Enable"], disk) == (0, LARGER)
    change(DynamicRetentionConfig={"Enable": 0})  # it is off already
    assert rule_get(instance).policy == "expansion"
    change(DynamicDiskConfig={"Enable": 0})
    assert rule_get(instance).policy == "none"


@pytest.mark.parametrize(
    "parameters",
    [
        {"DynamicRetentionConfig": SHORTER, "DynamicDiskConfig": LARGER},
        {"DynamicRetentionConfig": {**SHORTER, "Enable": 2}},
        {"DynamicRetentionConfig": {"DiskQuotaPercentage": 80}},
        {"DynamicRetentionConfig": {**SHORTER, "DiskQuotaPercentage": 20}},
        {"DynamicDiskConfig": {**LARGER, "MaxDiskSpace": 1}},
        {"DynamicRetentionConfig": SHORTER, "MaxMessageByte": 1},
    ],
)
def test_what_is_wrong_changes_nothing_at_all(change, parameters):
    with pytest.raises(TencentCloudSDKException) as refused:
        change(**parameters)
    assert refused.value.code == "InvalidParameterValue"
    assert not DiskPolicy.objects.unscoped("a test").exclude(policy="none").exists()
