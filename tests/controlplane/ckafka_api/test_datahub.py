"""Topics that are named without an instance: an instance's id stands before each name, and all else is as elsewhere."""

from __future__ import annotations

import json

import pytest

from controlplane.core.models import AuditEntry
from controlplane.instances import services as instances
from controlplane.kafka.topics import names_of
from tests.controlplane.conftest import WANTED, run_to_the_end

from .conftest import access_key, group_of, refused, sdk_of

pytestmark = pytest.mark.filterwarnings("ignore:datetime.datetime.utcfromtimestamp")


@pytest.fixture
def name(ask, instance):
    """Of a topic with two partitions."""
    made = ask("CreateDatahubTopic", Name=f"{instance.id}-my-orders", PartitionNum=2, RetentionMs=90_000)["Result"]
    assert made == {"TopicName": "my-orders", "TopicId": "my-orders"}
    return f"{instance.id}-my-orders"


@pytest.fixture
def physical(name, instance):
    return names_of(instance.id).topic_in("my-orders")


def test_a_topic_is_shown_as_it_is_in_its_instance(ask, name, instance):
    own = ask("DescribeTopicAttributes", InstanceId=instance.id, TopicName="my-orders")["Result"]
    assert (own["PartitionNum"], own["Config"]["Retention"]) == (2, 90_000)
    shown = ask("DescribeDatahubTopic", Name=name)["Result"]
    assert (shown["Name"], shown["TopicName"], shown["PartitionNum"]) == (name, "my-orders", 2)
    assert (shown["RetentionMs"], shown["Status"], shown["UserName"], shown["Password"]) == (90_000, 1, "", "")
    vips = ask("DescribeInstanceAttributes", InstanceId=instance.id)["Result"]["VipList"]
    assert shown["Address"] == ",".join(f"{vip['Vip']}:{vip['Vport']}" for vip in vips)


def test_a_topic_is_changed_and_deleted(ask, name, instance):
    ask("ModifyDatahubTopic", Name=name, RetentionMs=60_000)
    assert ask("DescribeDatahubTopic", Name=name)["Result"]["RetentionMs"] == 60_000
    ask("DeleteDatahubTopic", Name=name)
    assert ask("DescribeTopic", InstanceId=instance.id)["Result"]["TotalCount"] == 0


def test_the_list_is_of_all_instances_and_of_nobody_elses(ask, wire, name, alice, charlie, instance):
    other, theirs = (
        instances.instance_create(organisation=person.organisation, actor="a", **{**WANTED, "name": "more"})
        for person in (alice, charlie)
    )
    for made, operation in (other, theirs):
        run_to_the_end(operation.id)
        made.refresh_from_db()
    ask("CreateTopic", InstanceId=other[0].id, TopicName="clicks", PartitionNum=3, ReplicaNum=1)
    stranger = sdk_of(access_key(charlie), wire)
    secret = {"Name": f"{theirs[0].id}-secret", "PartitionNum": 1, "RetentionMs": 60_000}
    stranger.call_json("CreateDatahubTopic", secret)

    listed = ask("DescribeDatahubTopics")["Result"]
    found = sorted([(name, 2, 90_000), (f"{other[0].id}-clicks", 3, 604_800_000)])
    assert listed["TotalCount"] == 2
    assert [(row["Name"], row["PartitionNum"], row["RetentionMs"]) for row in listed["TopicList"]] == found
    second = ask("DescribeDatahubTopics", Offset=1, Limit=1)["Result"]["TopicList"]
    assert [row["Name"] for row in second] == [found[1][0]]
    assert ask("DescribeDatahubTopics", SearchWord="click")["Result"]["TotalCount"] == 1
    assert stranger.call_json("DescribeDatahubTopics", {})["Response"]["Result"]["TotalCount"] == 1
    for action, parameters in {
        "DescribeDatahubTopic": {"Name": name},
        "DeleteDatahubTopic": {"Name": name},
        "ModifyDatahubTopic": {"Name": name, "RetentionMs": 60_000},
        "CreateDatahubTopic": {"Name": f"{instance.id}-mine", "PartitionNum": 1, "RetentionMs": 60_000},
        "DescribeDatahubGroupOffsets": {"Name": instance.id, "Group": "billing"},
        "FetchDatahubMessageByOffset": {"Name": name, "Partition": 0, "Offset": 0},
        "FetchLatestDatahubMessageList": {"Name": name, "Partition": 0, "Offset": 0},
        "SendMessage": {"DataHubId": name, "Message": [{"Body": "a"}]},
    }.items():
        code, _ = refused(lambda action=action, parameters=parameters: stranger.call_json(action, parameters))
        assert code == "InvalidParameterValue.InstanceNotExist", action


def test_an_instance_that_does_not_run_has_no_topics_to_list(ask, name, instance):
    ask("DeleteInstancePost", InstanceId=instance.id)
    assert ask("DescribeDatahubTopics")["Result"]["TotalCount"] == 0


def test_offsets_of_a_group_are_of_the_topic_or_of_all_of_the_instance(ask, admin, instance, name, physical):
    ask("CreateTopic", InstanceId=instance.id, TopicName="orders", PartitionNum=2, ReplicaNum=1)
    group_of(admin, instance).offsets[physical, 1] = 0
    shown = ask("DescribeDatahubGroupOffsets", Name=name, Group="billing")["Result"]
    assert [(row["Topic"], row["Partitions"][0]["Partition"]) for row in shown["TopicList"]] == [("my-orders", 1)]
    every = ask("DescribeDatahubGroupOffsets", Name=instance.id, Group="billing")["Result"]
    assert [row["Topic"] for row in every["TopicList"]] == ["my-orders", "orders"]


def test_messages_are_sent_and_read_from_an_offset_on(ask, name):
    sent = [{"Body": f"body {n}", "Key": "k"} for n in range(3)] + [{"Body": ""}]
    assert ask("SendMessage", DataHubId=name, Message=sent)["MessageId"] == ["0-0", "0-1", "0-2", "0-3"]
    rows = ask("FetchLatestDatahubMessageList", Name=name, Partition=0, Offset=1)["Result"]
    assert [(row["Offset"], row["Key"], row["Value"]) for row in rows] == [
        (1, "k", "body 1"),
        (2, "k", "body 2"),
        (3, None, ""),
    ]
    assert len(ask("FetchLatestDatahubMessageList", Name=name, Partition=0, Offset=1, MessageCount=2)["Result"]) == 2
    one = ask("FetchDatahubMessageByOffset", Name=name, Partition=0, Offset=2)["Result"]
    assert (one["Topic"], one["Value"], json.loads(one["Headers"])) == ("my-orders", "body 2", {})
    entry = AuditEntry.objects.unscoped("a test").get(action="message.produce")
    assert entry.detail == {"messages": 4, "bytes": 21}


def test_messages_that_are_sent_again_under_the_same_signature_are_written_once(ask, wire, admin, name, physical):
    first = ask("SendMessage", DataHubId=name, Message=[{"Body": "a"}])
    again = json.loads(wire.send(wire.sent[-1]).content)["Response"]
    assert again["MessageId"] == first["MessageId"] == ["0-0"]
    assert len(admin.groups.logs[physical, 0][1]) == 1


def test_of_messages_some_of_which_are_refused_it_is_said_how_many_were_written(sdk, admin, name, physical):
    admin.messages.largest = 10
    sent = {"DataHubId": name, "Message": [{"Body": "a"}, {"Body": "b" * 11}, {"Body": "c"}]}
    code, sentence = refused(lambda: sdk.call_json("SendMessage", sent))
    assert code == "InvalidParameterValue"
    assert "2 of 3 messages are known to be written" in sentence
    assert len(admin.groups.logs[physical, 0][1]) == 2


def test_a_list_holds_whole_messages_only(ask, admin, name, physical, monkeypatch):
    monkeypatch.setattr("controlplane.messages.selectors.PAGE_BYTES", 100)
    for size in (40, 200, 30):
        admin.messages.write(physical, 0, b"x" * size)
    place = {"Name": name, "Partition": 0}
    sizes = [
        [len(row["Value"]) for row in ask("FetchLatestDatahubMessageList", **place, Offset=offset)["Result"]]
        for offset in (0, 1, 2, 3)
    ]
    assert sizes == [[40], [200], [30], []]


@pytest.mark.parametrize(
    ("action", "parameters", "code"),
    [
        ("CreateDatahubTopic", {"PartitionNum": 0, "RetentionMs": 60_000}, "InvalidParameterValue"),
        ("CreateDatahubTopic", {"PartitionNum": 501, "RetentionMs": 60_000}, "InvalidParameterValue"),
        ("CreateDatahubTopic", {"PartitionNum": 1, "RetentionMs": 59_999}, "InvalidParameterValue"),
        ("CreateDatahubTopic", {"PartitionNum": 1}, "MissingParameter"),
        ("CreateDatahubTopic", {"PartitionNum": 1, "RetentionMs": 60_000, "Note": "mine"}, "UnsupportedOperation"),
        (
            "CreateDatahubTopic",
            {"PartitionNum": 1, "RetentionMs": 60_000},
            "InvalidParameterValue.TopicNameAlreadyExist",
        ),
        ("CreateDatahubTopic", {"Name": "orders", "PartitionNum": 1, "RetentionMs": 60_000}, "InvalidParameterValue"),
        ("ModifyDatahubTopic", {}, "InvalidParameterValue"),
        ("ModifyDatahubTopic", {"RetentionMs": 1}, "InvalidParameterValue"),
        ("DescribeDatahubTopics", {"TopicRegularExpression": ".*"}, "UnsupportedOperation"),
        ("DescribeDatahubTopics", {"Limit": 101}, "InvalidParameterValue"),
        ("FetchLatestDatahubMessageList", {"Partition": 0, "Offset": 0, "MessageCount": 101}, "InvalidParameterValue"),
        ("FetchLatestDatahubMessageList", {"Partition": 0, "Offset": 9}, "InvalidParameterValue"),
        ("FetchDatahubMessageByOffset", {"Partition": 0, "Offset": 9}, "ResourceNotFound"),
        ("SendMessage", {"Message": []}, "InvalidParameterValue"),
        ("SendMessage", {"Message": [{"Body": "a"}] * 501}, "InvalidParameterValue"),
        ("SendMessage", {"Message": [{"Key": "a"}]}, "MissingParameter"),
        ("SendMessage", {"Message": [{"Body": 5}]}, "InvalidParameter"),
    ],
)
def test_what_is_wrong_is_refused(action, parameters, code, sdk, name):
    known = "DataHubId" if action == "SendMessage" else "Name"
    place = {} if action == "DescribeDatahubTopics" else {known: name}
    assert refused(lambda: sdk.call_json(action, {**place, **parameters}))[0] == code


@pytest.mark.parametrize("topic", ["nothere", "a b", "my-orders-"])
def test_a_topic_that_is_not_there(topic, sdk, name, instance):
    for action, parameters in {
        "DescribeDatahubTopic": {},
        "DeleteDatahubTopic": {},
        "FetchLatestDatahubMessageList": {"Partition": 0, "Offset": 0},
    }.items():
        wanted = {"Name": f"{instance.id}-{topic}", **parameters}
        code, _ = refused(lambda action=action, wanted=wanted: sdk.call_json(action, wanted))
        assert code == "ResourceNotFound"


def test_a_viewer_sends_nothing_and_reads_no_messages(viewer, wire, name):
    sdk = sdk_of(access_key(viewer), wire)
    assert sdk.call_json("DescribeDatahubTopics", {})["Response"]["Result"]["TotalCount"] == 1
    for action, parameters in {
        "FetchLatestDatahubMessageList": {"Name": name, "Partition": 0, "Offset": 0},
        "FetchDatahubMessageByOffset": {"Name": name, "Partition": 0, "Offset": 0},
        "SendMessage": {"DataHubId": name, "Message": [{"Body": "a"}]},
        "CreateDatahubTopic": {"Name": f"{name}2", "PartitionNum": 1, "RetentionMs": 60_000},
    }.items():
        code, _ = refused(lambda action=action, parameters=parameters: sdk.call_json(action, parameters))
        assert code == "UnauthorizedOperation", action
