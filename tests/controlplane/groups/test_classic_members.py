"""ConsumerGroupDescribe as bytes, as brokers read and write it: who speaks the classic protocol."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from uuid import uuid4

import pytest
from confluent_kafka import KafkaError

from controlplane.clusters.address import ClusterAddress
from controlplane.clusters.identification import Identification
from controlplane.core.errors import ClusterUnavailable, NotFound
from controlplane.kafka import classic_members, client, group_door
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeAssignment,
    ConsumerGroupDescribeGroup,
    ConsumerGroupDescribeMember,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeTopicPartitions,
)

COORDINATOR = ("127.0.0.1", 9092)


def member(name: str, kind: int) -> ConsumerGroupDescribeMember:
    has = ConsumerGroupDescribeAssignment((ConsumerGroupDescribeTopicPartitions(uuid4(), "k.öl", (0, 7)),))
    return ConsumerGroupDescribeMember(
        member_id=name,
        instance_id="static" if kind else None,
        rack_id="a" if kind else None,
        member_epoch=3,
        client_id="c",
        client_host="10.0.0.7",
        subscribed_topic_names=("k.öl", "k.b"),
        subscribed_topic_regex="k[.].*" if kind else None,
        assignment=has,
        target_assignment=has,
        member_type=kind,
    )


def answer(*members: ConsumerGroupDescribeMember, error: int = 0) -> bytes:
    group = ConsumerGroupDescribeGroup(
        error_code=error, error_message="why" if error else None, group_id="k.readers", members=members
    )
    return encode(ConsumerGroupDescribeResponse(groups=(group,)), 1)


def test_one_group_is_asked_for():
    asked = decode(ConsumerGroupDescribeRequest, 1, classic_members.request("k.öl"))
    assert (asked.group_ids, asked.include_authorized_operations) == (("k.öl",), False)


def test_those_of_the_classic_protocol_are_found_among_the_others():
    found = classic_members.members_in(answer(member("new", 1), member("old", 0), member("ö", 0), member("newer", 1)))
    assert found == (0, {"old", "ö"})


def test_the_error_of_the_group_is_answered():
    assert classic_members.members_in(answer(error=KafkaError.NOT_COORDINATOR)) == (KafkaError.NOT_COORDINATOR, set())


def test_an_answer_that_ends_early_or_names_no_group_is_an_error():
    whole = answer(member("old", 0))
    for size in range(4, len(whole) - 7):  # the rest is not read: operations, and tags
        with pytest.raises(struct.error):
            classic_members.members_in(whole[:size])
    with pytest.raises(struct.error):
        classic_members.members_in(encode(ConsumerGroupDescribeResponse(), 1))


@pytest.mark.parametrize(
    ("code", "raised"),
    [(KafkaError.GROUP_ID_NOT_FOUND, NotFound), (KafkaError.NOT_COORDINATOR, client.ClusterChanging)],
)
def test_what_a_coordinator_refuses(monkeypatch, code, raised):
    monkeypatch.setattr(classic_members, "fetch", lambda *_asked, **_named: (code, frozenset()))
    monkeypatch.setattr(client, "forget", lambda *_: None)
    with pytest.raises(raised):
        door(monkeypatch, COORDINATOR).classic_members("k.readers")


def test_without_a_coordinator_nobody_is_asked(monkeypatch):
    with pytest.raises(ClusterUnavailable):
        door(monkeypatch, None).classic_members("k.readers")


def door(monkeypatch, coordinator):
    described = {"k.readers": group_door.DescribedGroup("k.readers", "Stable", "", (), coordinator)}
    monkeypatch.setattr(group_door.KafkaGroups, "described", lambda _self, _names: described)
    admin = SimpleNamespace(kafka=SimpleNamespace(), who=Identification("s"), settings={})
    return group_door.KafkaGroups(ClusterAddress(0, ""), admin)
