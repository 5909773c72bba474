"""What is refused, and in which of the vendor's codes."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace

import pytest
from django.core.cache import cache
from redis.exceptions import RedisError

from controlplane.ckafka_api import limits, replay
from controlplane.core.models import Operation
from controlplane.instances.models import Instance
from controlplane.instances.selectors import instance_list

from .conftest import access_key, refused, sdk_of

pytestmark = pytest.mark.filterwarnings("ignore:datetime.datetime.utcfromtimestamp")


def answer_of(response):
    assert response.status_code == 200
    assert response["Content-Type"] == "application/json"
    return json.loads(response.content)["Response"]


def code_of(response):
    return answer_of(response)["Error"]["Code"]


@pytest.mark.parametrize(
    ("action", "parameters", "code"),
    [
        ("DescribeInstances", {"Limit": "10"}, "InvalidParameter"),
        ("DescribeInstances", {"Limit": 101}, "InvalidParameterValue"),
        ("DescribeInstances", {"Offset": -1}, "InvalidParameterValue"),
        ("DescribeInstances", {"Word": "a"}, "UnknownParameter"),
        ("DescribeInstancesDetail", {"Filters": [{"Name": "Ip", "Values": ["1"]}]}, "InvalidFilter"),
        ("DescribeInstanceAttributes", {}, "MissingParameter"),
        ("DescribeInstanceAttributes", {"InstanceId": "ins-nothere"}, "InvalidParameterValue.InstanceNotExist"),
        ("CreatePostPaidInstance", {"VpcId": "v"}, "MissingParameter"),
        (
            "CreatePostPaidInstance",
            {"VpcId": "v", "SubnetId": "s", "ZoneId": 9},
            "InvalidParameterValue.ZoneNotSupport",
        ),
        ("CreatePostPaidInstance", {"VpcId": "v", "SubnetId": "s", "InstanceNum": 2}, "UnsupportedOperation"),
        ("CreatePostPaidInstance", {"VpcId": "v", "SubnetId": "s", "BandWidth": 0}, "InvalidParameterValue"),
        ("CreatePostPaidInstance", {"VpcId": "v", "SubnetId": "s", "BandWidth": 90_000}, "LimitExceeded"),
        ("CreatePostPaidInstance", {"VpcId": "v", "SubnetId": "s", "TopicNum": 900}, "UnsupportedOperation"),
        ("InquireCkafkaPrice", {"InstanceType": "profession", "Bandwidth": 20, "Partition": 1}, "MissingParameter"),
        ("DescribeTaskStatus", {"FlowId": 12}, "ResourceNotFound"),
        ("DescribeTaskStatus", {"FlowId": -12}, "ResourceNotFound"),
        ("DescribeTaskStatus", {"FlowId": 2**80}, "ResourceNotFound"),
        ("CreateKafka", {}, "InvalidParameterValue.WrongAction"),
        ("Create Kafka" + "a" * 300, {}, "InvalidParameterValue.WrongAction"),
    ],
)
def test_a_request_that_is_wrong(action, parameters, code, sdk, brokers):
    assert refused(lambda: sdk.call_json(action, parameters))[0] == code


@pytest.mark.parametrize(
    ("action", "parameters", "code"),
    [
        ("CreateTopic", {"TopicName": "orders", "PartitionNum": 1}, "InvalidParameterValue.TopicNameAlreadyExist"),
        ("CreateTopic", {"TopicName": "a b", "PartitionNum": 1}, "InvalidParameterValue"),
        ("CreateTopic", {"TopicName": "new", "PartitionNum": 61, "ReplicaNum": 1}, "LimitExceeded"),
        ("CreateTopic", {"TopicName": "new", "PartitionNum": 1, "Note": "mine"}, "UnsupportedOperation"),
        ("CreateTopic", {"TopicName": "new", "PartitionNum": 1, "EnableWhiteList": 1}, "MissingParameter"),
        ("DeleteTopic", {"TopicName": "nothere"}, "ResourceNotFound"),
        ("CreatePartition", {"TopicName": "orders", "PartitionNum": 1}, "InvalidParameterValue"),
        ("CreateTopicIpWhiteList", {"TopicName": "orders", "IpWhiteList": ["nowhere"]}, "InvalidParameterValue"),
        ("ModifyInstancePre", {}, "InvalidParameterValue"),
        ("ModifyInstancePre", {"BandWidth": 1000, "DryRun": 1}, "InvalidParameter"),
        ("DescribeAccessPolicy", {"RouteId": 2}, "ResourceNotFound"),
        ("CreateRoute", {"VipType": 7}, "UnsupportedOperation"),
        ("CreateRoute", {"VipType": 1, "AccessType": 0}, "UnsupportedOperation"),
        ("CreateRoute", {"VipType": 3, "Note": "mine"}, "UnsupportedOperation"),
        ("DeleteRoute", {"RouteId": 1}, "OperationDenied"),
        ("DeleteRoute", {"RouteId": 1, "DeleteRouteTime": "2026-12-01 00:00:00"}, "UnsupportedOperation"),
        ("DeleteRouteTriggerTime", {"DelayTime": "2026-12-01 00:00:00"}, "ResourceNotFound"),
        ("DescribeTopicFlowRanking", {"RankingType": "ALL"}, "InvalidParameterValue"),
        ("DescribeTopicFlowRanking", {"RankingType": "PRO", "BrokerIp": "127.0.0.1"}, "UnsupportedOperation"),
        ("DescribeTopicFlowRanking", {"RankingType": "PRO", "EndDate": "yesterday"}, "InvalidParameterValue"),
        ("DescribeTopicFlowRanking", {"RankingType": "PRO", "EndDate": "9999-12-31"}, "InvalidParameterValue"),
        (
            "DescribeTopicFlowRanking",
            {"RankingType": "PRO", "BeginDate": "2026-05-02", "EndDate": "2026-05-01"},
            "InvalidParameterValue",
        ),
        ("CreateThrottleRule", {"ThrottleType": 4, "ConsumeThrottle": 1}, "InvalidParameterValue"),
        ("DeleteThrottleRule", {"ThrottleRuleId": "17"}, "ResourceNotFound"),
        ("DeleteGroup", {"Group": "billing", "DryRun": True}, "UnsupportedOperation"),
    ],
)
def test_a_request_about_an_instance_that_is_wrong(action, parameters, code, sdk, ask, instance):
    ask("CreateTopic", InstanceId=instance.id, TopicName="orders", PartitionNum=2, ReplicaNum=1)
    assert refused(lambda: sdk.call_json(action, {"InstanceId": instance.id, **parameters}))[0] == code


def test_what_is_deleted_is_isolated_for_the_grace_period(grace, sdk, ask, instance):
    ask("DeleteInstancePost", InstanceId=instance.id)
    assert ask("DescribeInstances")["Result"]["InstanceList"][0]["Status"] == 5
    assert ask("DescribeInstances", Status=[5])["Result"]["TotalCount"] == 1
    for action, asked in (("ModifyInstancePre", {"BandWidth": 7}), ("DeleteTopic", {"TopicName": "orders"})):
        assert refused(lambda: sdk.call_json(action, {"InstanceId": instance.id, **asked}))[0] == "OperationDenied"  # noqa: B023


def test_deletion_protection_is_0_or_1(sdk, instance):
    asked = {"InstanceId": instance.id, "DeleteProtectionEnable": 2}
    assert refused(lambda: sdk.call_json("ModifyInstanceAttributes", asked))[0] == "InvalidParameterValue"


def test_a_topic_is_not_made_without_the_whitelist_that_it_was_to_have(sdk, ask, instance):
    wanted = {"TopicName": "new", "PartitionNum": 1, "ReplicaNum": 1, "IpWhiteList": ["10.0.0.0/8", "nowhere"]}
    assert (
        refused(lambda: sdk.call_json("CreateTopic", {"InstanceId": instance.id, **wanted}))[0]
        == "InvalidParameterValue"
    )
    assert ask("DescribeTopic", InstanceId=instance.id)["Result"]["TotalCount"] == 0


def test_an_instance_of_others_is_as_one_that_is_not_there(charlie, secrets, wire, instance):
    stranger = sdk_of(access_key(charlie), wire)
    theirs = refused(lambda: stranger.call_json("DescribeInstanceAttributes", {"InstanceId": instance.id}))
    nobodys = refused(lambda: stranger.call_json("DescribeInstanceAttributes", {"InstanceId": "ins-nothere1"}))
    assert theirs == (nobodys[0], nobodys[1].replace("ins-nothere1", instance.id))
    listed = stranger.call_json("DescribeInstancesDetail", {"InstanceIdList": [instance.id]})["Response"]["Result"]
    assert listed["TotalCount"] == 0


def test_a_task_of_others_is_as_one_that_is_not_there(charlie, secrets, wire, ask, instance):
    task = ask("ModifyInstancePre", InstanceId=instance.id, BandWidth=6)["Result"]["Data"]["FlowId"]
    stranger = sdk_of(access_key(charlie), wire)
    assert refused(lambda: stranger.call_json("DescribeTaskStatus", {"FlowId": task}))[0] == "ResourceNotFound"


def test_a_viewer_looks_and_changes_nothing(viewer, secrets, wire, instance):
    client = sdk_of(access_key(viewer), wire)
    assert client.call_json("DescribeInstances", {})["Response"]["Result"]["TotalCount"] == 1
    code, _ = refused(lambda: client.call_json("DeleteInstancePost", {"InstanceId": instance.id}))
    assert code == "UnauthorizedOperation"
    assert not Operation.objects.unscoped("a test").filter(kind="instance.delete").exists()


def test_a_dry_run_says_that_it_would_succeed_and_changes_nothing(sdk, alice, instance):
    wanted = {"VpcId": "v", "SubnetId": "s", "BandWidth": 20, "DiskSize": 100, "Partition": 100, "DryRun": True}
    before = Operation.objects.unscoped("a test").count()
    place = {"InstanceId": instance.id, "DryRun": True}
    assert refused(lambda: sdk.call_json("CreatePostPaidInstance", wanted))[0] == "DryRunOperation"
    assert refused(lambda: sdk.call_json("DeleteInstancePost", place))[0] == "DryRunOperation"
    assert refused(lambda: sdk.call_json("DeleteInstancePre", place))[0] == "DryRunOperation"
    assert refused(lambda: sdk.call_json("ModifyInstancePre", {**place, "BandWidth": 20}))[0] == "DryRunOperation"
    assert refused(lambda: sdk.call_json("DescribeRoute", place))[0] == "DryRunOperation"
    assert Operation.objects.unscoped("a test").count() == before
    assert [row.bandwidth_mib_per_s for row in instance_list(organisation=alice.organisation)] == [5]
    assert Instance.objects.unscoped("a test").get().state == "running"


TOPIC_CHANGES = [
    ("CreateTopic", {"TopicName": "new", "PartitionNum": 1, "IpWhiteList": ["10.0.0.0/8"]}),
    ("DeleteTopic", {"TopicName": "orders"}),
    ("CreatePartition", {"TopicName": "orders", "PartitionNum": 3}),
    ("ModifyTopicAttributes", {"TopicName": "orders", "RetentionMs": 60_000}),
    ("ModifyTopicAttributes", {"TopicName": "orders", "IpWhiteList": ["10.0.0.0/8"]}),
    ("CreateTopicIpWhiteList", {"TopicName": "orders", "IpWhiteList": ["10.0.0.0/8"]}),
    ("CreateDatahubTopic", {"Name": "{}-new", "PartitionNum": 1, "RetentionMs": 60_000}),
    ("ModifyDatahubTopic", {"Name": "{}-orders", "RetentionMs": 60_000}),
    ("DeleteDatahubTopic", {"Name": "{}-orders"}),
]


@pytest.mark.parametrize(("action", "parameters"), TOPIC_CHANGES)
def test_a_dry_run_of_a_change_of_topics_leaves_them_as_they_are(action, parameters, sdk, ask, instance):
    ask("CreateTopic", InstanceId=instance.id, TopicName="orders", PartitionNum=2, ReplicaNum=1)
    before = ask("DescribeTopicDetail", InstanceId=instance.id)["Result"]
    assert refused(lambda: sdk.call_json(action, of(instance, parameters)))[0] == "DryRunOperation"
    assert ask("DescribeTopicDetail", InstanceId=instance.id)["Result"] == before


@pytest.mark.parametrize(
    ("action", "parameters", "code"),
    [
        ("CreateTopic", {"TopicName": "orders", "PartitionNum": 1}, "InvalidParameterValue.TopicNameAlreadyExist"),
        ("CreateTopic", {"TopicName": "new", "PartitionNum": 1, "IpWhiteList": ["nowhere"]}, "InvalidParameterValue"),
        ("CreateTopic", {"TopicName": "new", "PartitionNum": 61, "ReplicaNum": 1}, "LimitExceeded"),
        ("DeleteTopic", {"TopicName": "nothere"}, "ResourceNotFound"),
        ("CreatePartition", {"TopicName": "orders", "PartitionNum": 1}, "InvalidParameterValue"),
        ("CreatePartition", {"TopicName": "orders", "PartitionNum": 90}, "LimitExceeded"),
        ("ModifyTopicAttributes", {"TopicName": "nothere", "RetentionMs": 60_000}, "ResourceNotFound"),
        ("ModifyTopicAttributes", {"TopicName": "nothere", "EnableWhiteList": 0}, "ResourceNotFound"),
        ("ModifyTopicAttributes", {"TopicName": "orders"}, "InvalidParameterValue"),
        ("CreateTopicIpWhiteList", {"TopicName": "orders", "IpWhiteList": ["nowhere"]}, "InvalidParameterValue"),
        ("CreateTopicIpWhiteList", {"TopicName": "nothere", "IpWhiteList": []}, "ResourceNotFound"),
        ("CreateDatahubTopic", {"Name": "{}-a b", "PartitionNum": 1, "RetentionMs": 60_000}, "InvalidParameterValue"),
        ("ModifyDatahubTopic", {"Name": "{}-orders"}, "InvalidParameterValue"),
        ("DeleteDatahubTopic", {"Name": "{}-nothere"}, "ResourceNotFound"),
    ],
)
def test_a_dry_run_of_a_change_of_topics_that_would_fail_says_why(action, parameters, code, sdk, ask, instance):
    ask("CreateTopic", InstanceId=instance.id, TopicName="orders", PartitionNum=2, ReplicaNum=1)
    assert refused(lambda: sdk.call_json(action, of(instance, parameters)))[0] == code


def of(instance, parameters):
    """As a dry run, of this instance."""
    if "Name" in parameters:
        return {**parameters, "Name": parameters["Name"].format(instance.id), "DryRun": True}
    return {**parameters, "InstanceId": instance.id, "DryRun": True}


def test_a_dry_run_of_what_would_fail_says_why(sdk, brokers):
    wanted = {"VpcId": "v", "SubnetId": "s", "BandWidth": 90_000, "DryRun": True}
    assert refused(lambda: sdk.call_json("CreatePostPaidInstance", wanted))[0] == "LimitExceeded"


def test_a_dear_instance_is_bought_only_by_whoever_knows_its_price(ask, sdk, brokers, settings, alice):
    size = {"BandWidth": 200, "DiskSize": 2000, "Partition": 1000, "VpcId": "v", "SubnetId": "s"}
    code, sentence = refused(lambda: sdk.call_json("CreatePostPaidInstance", {**size, "ConfirmPrice": False}))
    if code == "OperationDenied":
        assert "confirm_price" in sentence
        assert ask("CreatePostPaidInstance", **size, ConfirmPrice=True)["Result"]["ReturnCode"] == "0"
    else:
        pytest.fail(f"{code}: {sentence}")


def test_each_of_several_topics_is_changed_or_refused_for_itself(ask, instance):
    ask("CreateTopic", InstanceId=instance.id, TopicName="orders", PartitionNum=2, ReplicaNum=1)
    topics = [
        {"TopicName": "orders", "PartitionNum": 3},
        {"TopicName": "nothere", "PartitionNum": 3},
        {"TopicName": "orders", "Note": "mine"},
    ]
    rows = ask("BatchModifyTopicAttributes", InstanceId=instance.id, Topic=topics)["Result"]
    assert [row["ReturnCode"] for row in rows] == ["0", "ResourceNotFound", "UnsupportedOperation"]
    assert ask("DescribeTopicAttributes", InstanceId=instance.id, TopicName="orders")["Result"]["PartitionNum"] == 3


def test_a_cluster_that_is_away_is_said_to_be(sdk, instance, tree):
    tree.away = True
    code, _ = refused(lambda: sdk.call_json("DescribeTopic", {"InstanceId": instance.id}))
    assert code == "ResourceUnavailable"


def test_a_fault_of_ours_says_nothing_of_itself(sdk, monkeypatch):
    def broken(**_):
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr("controlplane.instances.selectors.instance_list", broken)
    code, sentence = refused(lambda: sdk.call_json("DescribeInstances", {}))
    assert code == "InternalError"
    assert "secret detail" not in sentence


# Who signs, and when


def test_a_wrong_secret_and_an_unknown_key_are_told_the_same(alice, secrets, wire):
    secret_id, secret = access_key(alice)
    wrong = refused(lambda: sdk_of((secret_id, secret[:-1] + "!"), wire).call_json("DescribeInstances", {}))
    unknown = refused(lambda: sdk_of(("slak" + "0" * 24, secret), wire).call_json("DescribeInstances", {}))
    assert wrong == unknown
    assert wrong[0] == "AuthFailure"


@pytest.mark.parametrize("off_s", [-400, 400])
def test_a_request_of_long_ago_is_refused(off_s, sdk, wire, monkeypatch):
    monkeypatch.setattr("tencentcloud.common.abstract_client.time", SimpleNamespace(time=lambda: time.time() + off_s))
    code, sentence = refused(lambda: sdk.call_json("DescribeInstances", {}))
    assert code == "AuthFailure"
    assert "expired" in sentence


@pytest.mark.parametrize(
    ("header", "value", "code"),
    [
        ("Authorization", "", "AuthFailure"),
        ("Authorization", "Bearer slc_x", "AuthFailure"),
        ("Host", "elsewhere.example", None),
        ("Content-Type", "application/x-www-form-urlencoded", "UnsupportedOperation"),
        ("X-TC-Timestamp", "1", "AuthFailure"),
        ("X-TC-Version", "2018-01-01", "InvalidParameter"),
        ("X-TC-Token", "temporary", "AuthFailure"),
    ],
)
def test_a_request_with_another_header_is_refused(header, value, code, sdk, wire):
    sdk.call_json("DescribeInstances", {})
    request = wire.sent[-1]
    request.header[header] = value
    answer = wire.send(request)
    assert (answer.status_code == 400) if code is None else (code_of(answer) == code)


def test_the_older_signatures_and_get_are_refused(alice, secrets, wire):
    pair = access_key(alice)
    client = sdk_of(pair, wire, reqMethod="GET")
    wire.path = "/compat/ckafka"
    assert refused(lambda: client.call_json("DescribeInstances", {}))[0] == "UnsupportedOperation"
    client = sdk_of(pair, wire)
    client.profile.signMethod = "HmacSHA256"
    assert refused(lambda: client.call_json("DescribeInstances", {}))[0] == "UnsupportedOperation"


def test_an_unsigned_payload_is_refused(sdk):
    sdk.profile.unsignedPayload = True
    assert refused(lambda: sdk.call_json("DescribeInstances", {}))[0] == "AuthFailure"


@pytest.mark.parametrize("data", ['{"Limit": 1, "Limit": 2}', "[]", "{", '{"Limit": NaN}', '{"SearchWord": "\\ud800"}'])
def test_a_body_is_one_json_object(data, sdk, monkeypatch):
    written = SimpleNamespace(dumps=lambda _: data, loads=json.loads)
    monkeypatch.setattr("tencentcloud.common.abstract_client.json", written)
    assert refused(lambda: sdk.call_json("DescribeInstances", {}))[0] == "InvalidParameter"


def test_a_body_is_not_endless(sdk):
    assert refused(lambda: sdk.call_json("DescribeInstances", {"SearchWord": "a" * 2**20}))[0] == "InvalidParameter"


# Captured requests


def test_a_captured_request_is_not_good_for_another_action(ask, wire, instance, monkeypatch):
    ask("DescribeInstanceAttributes", InstanceId=instance.id)
    request = wire.sent[-1]
    request.header["X-TC-Action"] = "DeleteInstancePost"
    monkeypatch.setattr("controlplane.ckafka_api.api.SYSTEM_CLOCK", ClockAt(time.time() + 10))
    assert code_of(wire.send(request)) == "RequestLimitExceeded"
    instance.refresh_from_db()
    assert instance.state == "running"


def test_a_program_may_describe_and_delete_within_a_second(ask, wire, instance, monkeypatch):
    ask("DescribeInstanceAttributes", InstanceId=instance.id)
    request = wire.sent[-1]
    request.header["X-TC-Action"] = "DeleteInstancePost"  # as the SDK signs it in the same second
    monkeypatch.setattr("controlplane.ckafka_api.api.SYSTEM_CLOCK", ClockAt(int(request.header["X-TC-Timestamp"]) + 1))
    assert "Result" in answer_of(wire.send(request))


def test_a_change_is_good_for_reading_afterwards_as_well(ask, wire, instance):
    ask("DeleteInstancePost", InstanceId=instance.id)
    request = wire.sent[-1]
    request.header["X-TC-Action"] = "DescribeInstanceAttributes"
    assert answer_of(wire.send(request))["Result"]["Status"] == 2


def test_nor_while_nothing_is_remembered(ask, wire, instance, monkeypatch):
    ask("DescribeInstanceAttributes", InstanceId=instance.id)
    request = wire.sent[-1]

    def away(*_, **__):
        raise RedisError

    monkeypatch.setattr(replay, "cache", SimpleNamespace(add=away))
    assert "Result" in answer_of(wire.send(request))  # reading goes on
    request.header["X-TC-Action"] = "DeleteInstancePost"
    assert code_of(wire.send(request)) == "ResourceUnavailable"
    instance.refresh_from_db()
    assert instance.state == "running"


def test_a_change_that_comes_again_is_not_made_again(ask, wire, brokers, alice):
    first = ask("CreatePostPaidInstance", VpcId="v", SubnetId="s", BandWidth=20, DiskSize=100, Partition=100)
    again = answer_of(wire.send(wire.sent[-1]))
    assert again["Result"] == first["Result"]
    assert again["RequestId"] != first["RequestId"]
    assert instance_list(organisation=alice.organisation).count() == 1


def test_a_change_that_was_refused_may_come_again(ask, sdk, wire, instance):
    create = {"InstanceId": instance.id, "TopicName": "orders", "PartitionNum": 99, "ReplicaNum": 1}
    assert refused(lambda: sdk.call_json("CreateTopic", create))[0] == "LimitExceeded"
    request = wire.sent[-1]
    Instance.objects.unscoped("a test").update(partitions=200)
    assert "Result" in answer_of(wire.send(request))


# How often


def test_there_is_a_limit_of_requests(sdk, wire, monkeypatch, instance):
    cache.clear()
    sdk.call_json("DescribeInstances", {})
    request = wire.sent[-1]
    monkeypatch.setattr(limits, "READING_PER_S", 3)
    now = time.time()
    monkeypatch.setattr("controlplane.ckafka_api.api.SYSTEM_CLOCK", ClockAt(now + 5))
    codes = [answer_of(wire.send(request)).get("Error", {}).get("Code") for _ in range(5)]
    assert codes == [None, None, None, "RequestLimitExceeded", "RequestLimitExceeded"]
    monkeypatch.setattr("controlplane.ckafka_api.api.SYSTEM_CLOCK", ClockAt(now + 6))
    assert "Result" in answer_of(wire.send(request))


class ClockAt:
    def __init__(self, at_s):
        self.at_s = at_s

    def now(self):
        from datetime import UTC, datetime

        return datetime.fromtimestamp(self.at_s, UTC)


def test_describing_may_be_asked_for_more_often():
    assert (limits.limit_of("DescribeTopic"), limits.limit_of("CreateTopic")) == (100, 20)


# Where it answers


def test_a_browser_at_the_root_meets_the_console(client, db):
    assert client.get("/")["Content-Type"].startswith("text/html")
    assert client.post("/", headers={"X-TC-Action": "DescribeInstances"})["Content-Type"] == "application/json"
    assert client.post("/").status_code != 200


def test_the_path_may_be_said(sdk, wire):
    wire.path = "/compat/ckafka"
    assert sdk.call_json("DescribeInstances", {})["Response"]["Result"]["TotalCount"] == 0
