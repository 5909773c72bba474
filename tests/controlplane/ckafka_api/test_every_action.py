"""Every action of the SDK's client: answered as its model says, or refused by name."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.core.cache import cache
from tencentcloud.ckafka.v20190819 import models

from controlplane.admission.prepaid import prepaid_begin
from controlplane.ckafka_api.actions.table import TABLE
from controlplane.kafka.topics import names_of

from . import sdk as sdk_data
from .conftest import group_of, refused

pytestmark = pytest.mark.filterwarnings("ignore:datetime.datetime.utcfromtimestamp")
DOCS = Path(__file__).parents[3] / "docs/subsystems/ckafka-api.md"
TOPIC = {"TopicName": "orders"}
DISK = {"DiskType": "CLOUD_SSD", "DiskSize": 100}
PASSWORD = "correct horse battery"
ACL = {"ResourceType": 2, "ResourceName": "orders"}
RULE = {"Operation": "Read", "PermissionType": "Allow", "Host": "*", "Principal": "User:ann"}
PREFIX = {"RuleName": "ord"}
AHEAD = {"InstanceName": "ahead", "ZoneId": 1, "Period": "1m", "InstanceType": 1}
PARAMETERS = {  # beside InstanceId, what each needs to succeed
    "BatchModifyTopicAttributes": {"Topic": [{"TopicName": "orders", "RetentionMs": 60_000}, {"TopicName": "no"}]},
    "CreatePartition": {**TOPIC, "PartitionNum": 4},
    "CreatePostPaidInstance": {"VpcId": "v", "SubnetId": "s", "BandWidth": 20, "DiskSize": 100, "Partition": 100},
    "CreateInstancePre": {**AHEAD, "BandWidth": 20, "DiskSize": 100, "Partition": 100, "RenewFlag": 1},
    "RenewCkafkaInstance": {"TimeSpan": 1},
    "CreateThrottleRule": {"ThrottleType": 2, "ConsumeThrottle": 3, "GroupNameList": ["billing"]},
    "CreateTopic": {"TopicName": "payments", "PartitionNum": 1},
    "CreateTopicIpWhiteList": {**TOPIC, "IpWhiteList": ["127.0.0.1"]},
    "CreateRoute": {"VipType": 3, "VpcId": "v", "SubnetId": "s", "AccessType": 4},
    "DeleteRoute": {"RouteId": 2},
    "DeleteTopic": TOPIC,
    "DescribeAccessPolicy": {"RouteId": 1},
    "DescribeTopicAttributes": TOPIC,
    "BatchModifyGroupOffsets": {"GroupName": "billing", "Partitions": [{"Partition": 0, "Offset": 2}]},
    "CreateConsumer": {"GroupName": "new", **TOPIC, "TopicNameList": ["orders"]},
    "DeleteGroupSubscribeTopic": {"Group": "billing", "Topic": "orders"},
    "DeleteGroup": {"Group": "billing"},
    "DescribeGroupInfo": {"GroupList": ["billing", "nothere"]},
    "DescribeGroupOffsets": {"Group": "billing"},
    "DescribeTopicFlowRanking": {"RankingType": "PRO", "BeginDate": "2026-05-01", "EndDate": "2026-05-01"},
    "DescribeTopicSubscribeGroup": TOPIC,
    "DescribeTopicSyncReplica": TOPIC,
    "ModifyGroupOffsets": {"Group": "billing", "Strategy": 1, "ShiftTimestamp": -1, "Topics": ["orders"]},
    "FetchMessageByOffset": {"Topic": "orders", "Partition": 0, "Offset": 5},
    "FetchMessageListByOffset": {"Topic": "orders", "Partition": 0, "Offset": 0},
    "FetchMessageListByTimestamp": {"Topic": "orders", "Partition": 0, "StartTime": 0},
    "InquireCkafkaPrice": {"InstanceType": "profession", "Bandwidth": 20, "Partition": 100, "InquiryDiskParam": DISK},
    "InstanceScalingDown": {"UpgradeStrategy": 2, "BandWidth": 4},
    "ModifyAccessPolicy": {"RouteId": 1, "IpWhitelist": [{"CidrBlock": "127.0.0.0/8"}]},
    "ModifyInstanceAttributes": {"InstanceName": "renamed", "Config": {"AutoCreateTopicEnable": True}},
    "ModifyInstancePre": {"BandWidth": 6},
    "ModifyTopicAttributes": {**TOPIC, "RetentionMs": 60_000},
    "DescribeThrottleRules": {"ThrottleDimension": 2},
    "CreateUser": {"Name": "bob", "Password": PASSWORD},
    "DeleteUser": {"Name": "ann"},
    "DescribeUser": {"SearchWord": "an"},
    "ModifyPassword": {"Name": "ann", "Password": PASSWORD, "PasswordNew": "another long one"},
    "CreateAcl": {**ACL, "PermissionType": 3, "Operation": 4, "Host": "10.0.0.1;10.0.0.2"},
    "BatchCreateAcl": {"ResourceType": 2, "ResourceNames": ["orders", "clicks"], "RuleList": [RULE]},
    "DeleteAcl": ACL,
    "DescribeACL": ACL,
    "CreateAclRule": {
        **PREFIX,
        "ResourceType": "Topic",
        "PatternType": "PREFIXED",
        "Pattern": "ord",
        "RuleList": [RULE],
    },
    "ModifyAclRule": {**PREFIX, "IsApplied": 1},
    "DeleteAclRule": PREFIX,
    "DescribeAclRule": PREFIX,
}


@pytest.fixture
def furnished(ask, instance, admin):
    """An instance with a topic, a group, a rule and a task; the parameters of those who ask about them."""
    ask("CreateTopic", InstanceId=instance.id, TopicName="orders", PartitionNum=2, ReplicaNum=1, RetentionMs=90_000)
    ask("CreateThrottleRule", InstanceId=instance.id, ThrottleType=3, ConsumeThrottle=3, TopicNameList=["orders"])
    rules = ask("DescribeThrottleRules", InstanceId=instance.id, ThrottleDimension=2)["Result"]["ThrottleRuleList"]
    changed = ask("ModifyInstanceAttributes", InstanceId=instance.id, MaxMessageByte=4096)
    number = rules[0]["ThrottleRuleId"]
    group_of(admin, instance)
    admin.messages.write(names_of(instance.id).topic_in("orders"), 0, b"a message", key=b"its key")
    ask("CreateUser", InstanceId=instance.id, Name="ann", Password=PASSWORD)
    ask("CreateAcl", InstanceId=instance.id, **ACL, Operation=3, PermissionType=3)
    rule = {"PatternType": "PREFIXED", "Pattern": "ord", "RuleName": "ord", "RuleList": [{**RULE, "Operation": "All"}]}
    ask("CreateAclRule", InstanceId=instance.id, ResourceType="Topic", **rule)
    tomorrow = datetime.now(UTC) + timedelta(hours=20)
    ask("CreateRoute", InstanceId=instance.id, VipType=1, PublicNetwork=3, AccessType=3)
    one = {"Name": f"{instance.id}-orders"}
    return {
        "CreateDatahubTopic": {"Name": f"{instance.id}-payments", "PartitionNum": 1, "RetentionMs": 60_000},
        "ModifyDatahubTopic": {**one, "RetentionMs": 70_000},
        "DeleteDatahubTopic": one,
        "DescribeDatahubTopic": one,
        "DescribeDatahubTopics": {"SearchWord": "order"},
        "DescribeDatahubGroupOffsets": {**one, "Group": "billing"},
        "FetchDatahubMessageByOffset": {**one, "Partition": 0, "Offset": 5},
        "FetchLatestDatahubMessageList": {**one, "Partition": 0, "Offset": 5, "MessageCount": 10},
        "SendMessage": {"DataHubId": one["Name"], "Message": [{"Key": "k", "Body": "a body"}, {"Body": "another"}]},
        "DeleteRouteTriggerTime": {"DelayTime": f"{tomorrow:%Y-%m-%d %H:%M:%S}"},
        "DescribeTaskStatus": {"FlowId": changed["Result"]["Data"]["FlowId"]},
        "ModifyThrottleRule": {"ThrottleRuleId": number, "ConsumeThrottle": 5},
        "DeleteThrottleRule": {"ThrottleRuleId": str(number)},
    }


def missing(model, answer, at=""):
    """Members that the SDK's model has and the answer has not, or null where the model does not say that they may be."""
    found = []
    for name, kind in sdk_data.shape(model).items():
        plain, value = kind.removesuffix("?"), answer.get(name)
        if value is None:
            found += [] if plain != kind and name in answer else [f"{at}{name}"]
            continue
        part = plain.strip("[]")
        if hasattr(models, part):
            for each in value if plain.startswith("[") else [value]:
                found += missing(part, each, f"{at}{name}.")
    return found


def strangers(model, answer, at=""):
    """Members of the answer that the model does not have: the SDK would warn, and drop them."""
    types = sdk_data.shape(model)
    found = [f"{at}{name}" for name in answer.keys() - types.keys()]
    for name, value in answer.items():
        part = types.get(name, "").strip("[]?")
        if hasattr(models, part) and value is not None:
            for each in value if isinstance(value, list) else [value]:
                found += strangers(part, each, f"{at}{name}.")
    return found


@pytest.mark.parametrize("action", sorted(TABLE))
def test_an_action_that_is_had_answers_as_its_model_says(action, ask, sdk, wire, instance, furnished, recwarn):
    if action == "RenewCkafkaInstance":
        prepaid_begin(organisation=instance.organisation, actor="a", instance_id=instance.id, months=1)
    known = sdk_data.shape(f"{action}Request")
    place = {"InstanceId": instance.id} if "InstanceId" in known and TABLE[action].of_instance else {}
    parameters = {**place, **PARAMETERS.get(action, {}), **furnished.get(action, {})}
    request = getattr(models, f"{action}Request")()
    request.from_json_string(json.dumps(parameters))
    assert request._serialize() == parameters  # the SDK knows each of them
    model = getattr(sdk, action)(request)
    answer = json.loads(wire.send(wire.sent[-1]).content)["Response"]  # the same request again: its answer as it came
    assert missing(f"{action}Response", answer) == []
    assert strangers(f"{action}Response", answer) == []
    assert "Result" not in answer or model.Result is not None
    assert [str(warning.message) for warning in recwarn if "fields are useless" in str(warning.message)] == []


@pytest.mark.parametrize("action", sorted(set(sdk_data.actions()) - set(TABLE)))
def test_an_action_that_is_not_had_is_refused_by_name(action, sdk, wire):
    request = getattr(models, f"{action}Request")()
    code, message = refused(lambda: getattr(sdk, action)(request))
    assert code == "UnsupportedOperation"
    assert action in message
    cache.clear()


def test_the_table_in_the_documentation_is_this_one():
    rows = [line.split("|")[1:3] for line in DOCS.read_text().splitlines() if line.startswith("| `")]
    shown = {name.strip().strip("`"): word.strip() for name, word in rows}
    assert shown == {name: "answered" if name in TABLE else "refused" for name in sdk_data.actions()}
    assert f"{len(TABLE)} of {len(shown)}" in DOCS.read_text()
