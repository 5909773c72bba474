"""Messages by the vendor's SDK: lists say where they are, one is read by its offset."""

from __future__ import annotations

import json

import pytest

from controlplane.kafka.topics import names_of

from .conftest import access_key, refused, sdk_of

pytestmark = pytest.mark.filterwarnings("ignore:datetime.datetime.utcfromtimestamp")


@pytest.fixture
def asked(ask, instance, admin):
    """Of partition 1 of a topic with 25 messages."""
    ask("CreateTopic", InstanceId=instance.id, TopicName="orders", PartitionNum=2, ReplicaNum=1)
    for n in range(25):
        value = b"\xffvalue %d" % n
        headers = (("a", b"1"), ("b", None))
        physical = names_of(instance.id).topic_in("orders")
        admin.messages.write(physical, 1, value, key=b"key", headers=headers, timestamp_ms=1000 + n)
    return {"InstanceId": instance.id, "Topic": "orders", "Partition": 1}


def test_one_message_is_read_as_text(ask, asked):
    found = ask("FetchMessageByOffset", **asked, Offset=3)["Result"]
    assert (found["Topic"], found["Partition"], found["Offset"], found["Timestamp"]) == ("orders", 1, 3, 1003)
    assert (found["Key"], found["Value"]) == ("key", "\N{REPLACEMENT CHARACTER}value 3")
    assert json.loads(found["Headers"]) == {"a": "1", "b": None}


def test_lists_begin_at_an_offset_or_a_time_and_hold_no_content(ask, asked):
    by_offset = ask("FetchMessageListByOffset", **asked, Offset=2)["Result"]
    assert [row["Offset"] for row in by_offset] == list(range(2, 22))
    by_time = ask("FetchMessageListByTimestamp", **asked, StartTime=1020, SinglePartitionRecordNumber=3)["Result"]
    assert [row["Offset"] for row in by_time] == [20, 21, 22]
    assert {row[name] for row in by_offset + by_time for name in ("Key", "Value", "Headers")} == {None}


@pytest.mark.parametrize(
    ("action", "parameters", "code"),
    [
        ("FetchMessageByOffset", {"Offset": 99}, "ResourceNotFound"),
        ("FetchMessageByOffset", {"Offset": -1}, "InvalidParameterValue"),
        ("FetchMessageListByTimestamp", {"StartTime": 2**70}, "InvalidParameterValue"),
        ("FetchMessageListByOffset", {"Offset": 99}, "InvalidParameterValue"),
        ("FetchMessageListByOffset", {"Offset": 0, "SinglePartitionRecordNumber": 21}, "InvalidParameterValue"),
        ("FetchMessageListByTimestamp", {"StartTime": 0, "Topic": "nothere"}, "ResourceNotFound"),
        ("FetchMessageListByTimestamp", {"StartTime": 0, "Partition": 7}, "InvalidParameterValue"),
    ],
)
def test_what_is_not_there_is_refused(ask, asked, action, parameters, code):
    assert refused(lambda: ask(action, **{**asked, **parameters}))[0] == code


def test_a_viewer_lists_messages_and_reads_none(viewer, wire, asked):
    sdk = sdk_of(access_key(viewer), wire)
    listed = sdk.call_json("FetchMessageListByOffset", {**asked, "Offset": 0})["Response"]["Result"]
    assert len(listed) == 20
    code, _ = refused(lambda: sdk.call_json("FetchMessageByOffset", {**asked, "Offset": 0}))
    assert code == "UnauthorizedOperation"
