"""Groups by the vendor's SDK: what is read of them, and where their offsets are moved to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controlplane.core.models import AuditEntry
from controlplane.kafka.topics import names_of

from .conftest import group_of, refused

pytestmark = pytest.mark.filterwarnings("ignore:datetime.datetime.utcfromtimestamp")


@pytest.fixture
def orders(ask, instance):
    ask("CreateTopic", InstanceId=instance.id, TopicName="orders", PartitionNum=2, ReplicaNum=1)
    return instance


@pytest.fixture
def offset(admin, orders):
    """Where the group stands in partition 0 after the calls of a test."""
    group = group_of(admin, orders)
    return lambda: group.offsets[names_of(orders.id).topic_in("orders"), 0]


def test_a_group_is_listed_with_what_it_reads(ask, admin, orders):
    group_of(admin, orders, members=True)
    place = {"InstanceId": orders.id}
    listed = ask("DescribeGroup", **place)["Result"]
    assert (listed["TotalCount"], listed["GroupList"]) == (1, [{"Group": "billing", "Protocol": "range"}])
    assert ask("DescribeGroup", **place, SearchWord="x")["Result"]["GroupList"] == []
    stable = [{"Name": "GroupState", "Values": ["Empty"]}]
    assert ask("DescribeGroup", **place, Filters=stable)["Result"]["TotalCount"] == 0
    known, unknown = ask("DescribeGroupInfo", **place, GroupList=["billing", "nothere"])["Result"]
    assert (known["State"], known["Protocol"], known["ProtocolType"]) == ("Stable", "range", "consumer")
    assert known["Members"][0]["ClientId"] == "app"
    assert known["Members"][0]["Assignment"]["Topics"] == [{"Topic": "orders", "Partitions": [0, 1]}]
    assert unknown["State"] == "Dead"
    found = ask("DescribeConsumerGroup", **place)["Result"]
    info = found["GroupList"][0]["SubscribedInfo"][0]
    assert (info["TopicName"], info["PartitionOffset"]) == ("orders", [{"Partition": "0", "Offset": 3}])
    readers = ask("DescribeTopicSubscribeGroup", **place, TopicName="orders")["Result"]
    assert (readers["TotalCount"], readers["StatusCountInfo"], readers["Status"]) == (1, "Stable:1", 1)


def test_offsets_are_shown_with_the_lag(ask, offset, orders):
    shown = ask("DescribeGroupOffsets", InstanceId=orders.id, Group="billing")["Result"]
    row = shown["TopicList"][0]["Partitions"][0]
    assert (row["Partition"], row["Offset"], row["LogEndOffset"], row["Lag"]) == (0, 3, 5, 2)
    other = ask("DescribeGroupOffsets", InstanceId=orders.id, Group="billing", Topics=["others"])["Result"]
    assert other["TotalCount"] == 0


@pytest.mark.parametrize(
    ("asked", "to"),
    [
        ({"Strategy": 0, "Shift": -2}, 1),
        ({"Strategy": 0, "Shift": 100}, 5),
        ({"Strategy": 1, "ShiftTimestamp": -2}, 0),
        ({"Strategy": 1, "ShiftTimestamp": -1}, 5),
        ({"Strategy": 1, "ShiftTimestamp": 2000}, 1),
        ({"Strategy": 2, "Offset": 4}, 4),
        ({"Strategy": 2, "Offset": 4, "Topics": ["orders"], "Partitions": [0]}, 4),
        ({"Strategy": 2, "Offset": 4, "Partitions": [0]}, 4),
    ],
)
def test_offsets_are_moved(asked, to, ask, offset, orders):
    ask("ModifyGroupOffsets", InstanceId=orders.id, Group="billing", **asked)
    assert offset() == to


def test_each_partition_may_have_its_offset(ask, offset, orders):
    ask(
        "BatchModifyGroupOffsets", InstanceId=orders.id, GroupName="billing", TopicName=["orders"],
        Partitions=[{"Partition": 0, "Offset": 1}, {"Partition": 1, "Offset": 0}],
    )  # fmt: skip
    assert offset() == 1


@pytest.mark.parametrize(
    ("action", "asked", "code"),
    [
        ("ModifyGroupOffsets", {"Group": "billing", "Strategy": 3}, "InvalidParameterValue"),
        ("ModifyGroupOffsets", {"Group": "billing", "Strategy": 0}, "MissingParameter"),
        ("ModifyGroupOffsets", {"Group": "nothere", "Strategy": 2, "Offset": 0}, "ResourceNotFound"),
        ("BatchModifyGroupOffsets", {"GroupName": "billing", "Partitions": [{"Partition": 0}]}, "MissingParameter"),
        (
            "BatchModifyGroupOffsets",
            {"GroupName": "billing", "Partitions": [{"Partition": 0, "Offset": 1}] * 501},
            "InvalidParameterValue",
        ),
        (
            "ModifyGroupOffsets",
            {"Group": "billing", "Strategy": 2, "Offset": 0, "Topics": ["orders"] * 501},
            "InvalidParameterValue",
        ),
        ("CreateConsumer", {"GroupName": "new", "TopicNameList": ["orders"] * 101}, "InvalidParameterValue"),
        ("DescribeGroupOffsets", {"Group": "nothere"}, "ResourceNotFound"),
        ("DescribeGroupInfo", {"GroupList": []}, "InvalidParameterValue"),
        ("DeleteGroup", {"Group": "nothere"}, "ResourceNotFound"),
        ("DeleteGroupSubscribeTopic", {"Group": "nothere", "Topic": "orders"}, "ResourceNotFound"),
        ("DeleteGroupSubscribeTopic", {"Group": "billing", "Topic": "clicks"}, "ResourceNotFound"),
        ("DeleteGroupSubscribeTopic", {"Group": "billing"}, "MissingParameter"),
        ("CreateConsumer", {"GroupName": "new"}, "MissingParameter"),
        ("CreateConsumer", {"GroupName": "new", "TopicName": "nothere"}, "ResourceNotFound"),
        ("CreateConsumer", {"GroupName": "new", "TopicNameList": ["orders", "nothere"]}, "ResourceNotFound"),
        ("CreateConsumer", {"GroupName": "a\0b", "TopicName": "orders"}, "InvalidParameterValue"),
        ("CreateConsumer", {"GroupName": "n" * 1001, "TopicName": "orders"}, "InvalidParameterValue"),
        ("CreateConsumer", {"GroupName": "billing", "TopicName": "orders"}, "ResourceInUse"),
    ],
)
def test_what_is_wrong_is_refused(action, asked, code, sdk, offset, orders):
    assert refused(lambda: sdk.call_json(action, {"InstanceId": orders.id, **asked}))[0] == code
    assert offset() == 3


def test_a_group_that_is_read_is_not_moved_nor_deleted(sdk, admin, orders):
    group_of(admin, orders, members=True)
    place = {"InstanceId": orders.id, "Group": "billing"}
    moved = refused(lambda: sdk.call_json("ModifyGroupOffsets", {**place, "Strategy": 2, "Offset": 0}))
    deleted = refused(lambda: sdk.call_json("DeleteGroup", place))
    left = refused(lambda: sdk.call_json("DeleteGroupSubscribeTopic", {**place, "Topic": "orders"}))
    assert (moved[0], deleted[0], left[0]) == ("OperationDenied",) * 3


def test_a_group_is_deleted(ask, offset, orders):
    ask("DeleteGroup", InstanceId=orders.id, Group="billing")
    assert ask("DescribeGroup", InstanceId=orders.id)["Result"]["TotalCount"] == 0


def test_a_group_is_made_that_begins_with_what_comes(ask, admin, orders):
    group_of(admin, orders)
    ask("CreateTopic", InstanceId=orders.id, TopicName="clicks", PartitionNum=1, ReplicaNum=1)
    ask("CreateConsumer", InstanceId=orders.id, GroupName="new", TopicName="orders", TopicNameList=["clicks", "orders"])
    topics = ask("DescribeGroupOffsets", InstanceId=orders.id, Group="new")["Result"]["TopicList"]
    assert [(row["Topic"], [part["Offset"] for part in row["Partitions"]]) for row in topics] == [
        ("clicks", [0]),
        ("orders", [5, 0]),
    ]
    entry = AuditEntry.objects.unscoped("a test").get(action="group.create")
    assert entry.detail == {"group": "new", "topics": ["orders", "clicks"], "partitions": 3}


def test_a_group_is_not_made_while_a_partition_has_no_end_to_begin_with(sdk, admin, orders):
    name = names_of(orders.id).topic_in("orders")
    layout = admin.topics[name]
    leaderless = replace(layout.partitions[1], leader=None)
    admin.topics[name] = replace(layout, partitions=(layout.partitions[0], leaderless))
    wanted = {"InstanceId": orders.id, "GroupName": "new", "TopicName": "orders"}
    assert refused(lambda: sdk.call_json("CreateConsumer", wanted))[0] == "OperationDenied"
    assert admin.groups.found == {}


def test_a_group_leaves_a_topic_and_keeps_the_others(ask, admin, orders):
    group, clicks = group_of(admin, orders), names_of(orders.id).topic_in("clicks")
    group.offsets[clicks, 0] = 7
    place = {"InstanceId": orders.id, "Group": "billing"}
    assert ask("DeleteGroupSubscribeTopic", **place, Topic="orders")["Result"]["ReturnCode"] == "0"
    assert group.offsets == {(clicks, 0): 7}
    entry = AuditEntry.objects.unscoped("a test").get(action="group.offsets.delete")
    assert (entry.detail["topic"], entry.detail["deleted"]) == ("orders", [{"partition": 0, "offset": 3}])
    ask("DeleteGroupSubscribeTopic", **place, Topic="clicks")
    assert ask("DescribeGroup", InstanceId=orders.id)["Result"]["TotalCount"] == 0


def test_replicas_of_a_topic_are_shown_with_what_they_hold(ask, offset, orders):
    shown = ask("DescribeTopicSyncReplica", InstanceId=orders.id, TopicName="orders")["Result"]
    row = shown["TopicInSyncReplicaList"][0]
    assert (row["Partition"], row["Leader"], row["Replica"], row["InSyncReplica"]) == ("0", 1, "1", "1")
    assert (row["BeginOffset"], row["EndOffset"], row["MessageCount"], row["OutOfSyncReplica"]) == (0, 5, 5, "")
    late = ask("DescribeTopicSyncReplica", InstanceId=orders.id, TopicName="orders", OutOfSyncReplicaOnly=True)
    assert late["Result"]["TotalCount"] == 0
