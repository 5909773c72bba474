"""OffsetDelete as bytes, as brokers read and write it, and what a coordinator's refusals become."""

from __future__ import annotations

import struct
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError

from controlplane.clusters.address import ClusterAddress
from controlplane.clusters.identification import Identification
from controlplane.core.errors import ClusterUnavailable, Conflict, NotFound
from controlplane.kafka import client, forgetting, group_door
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.messages.offsets import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

CLUSTER = ClusterAddress(0, "")
COORDINATOR = ("127.0.0.1", 9092)


def answer(*errors: int, error: int = 0) -> bytes:
    parts = tuple(OffsetDeleteResponsePartition(number, code) for number, code in enumerate(errors))
    return encode(OffsetDeleteResponse(error, 100, (OffsetDeleteResponseTopic("k.öl", parts),)), 0)


def test_places_are_named_by_topic():
    asked = decode(OffsetDeleteRequest, 0, forgetting.request("k.readers", [("k.öl", 0), ("k.b", 3), ("k.öl", 2)]))
    assert asked.group_id == "k.readers"
    assert [(topic.name, [part.partition_index for part in topic.partitions]) for topic in asked.topics] == [
        ("k.öl", [0, 2]),
        ("k.b", [3]),
    ]


def test_errors_are_of_the_group_and_of_each_partition():
    assert forgetting.errors_in(answer(0, 86, error=16)) == (16, {("k.öl", 0): 0, ("k.öl", 1): 86})


def test_an_answer_that_ends_early_is_an_error():
    whole = answer(0, 0)
    for size in range(len(whole)):
        with pytest.raises(struct.error):
            forgetting.errors_in(whole[:size])


@pytest.mark.parametrize(
    ("of_group", "of_partition", "raised"),
    [
        (0, 0, None),
        (KafkaError.GROUP_ID_NOT_FOUND, 0, NotFound),
        (KafkaError.NON_EMPTY_GROUP, 0, Conflict),
        (0, KafkaError.GROUP_SUBSCRIBED_TO_TOPIC, Conflict),
        (0, KafkaError.UNKNOWN_TOPIC_OR_PART, NotFound),
        (KafkaError.NOT_COORDINATOR, 0, client.ClusterChanging),
    ],
)
def test_what_a_coordinator_refuses(of_group, of_partition, raised, monkeypatch):
    errors = lambda *_asked, **_named: (of_group, {("k.orders", 0): of_partition})  # noqa: E731
    monkeypatch.setattr(forgetting, "forget", errors)
    monkeypatch.setattr(client, "forget", lambda *_: None)
    asks = door(monkeypatch, COORDINATOR)
    if raised is None:
        asks.forget("k.readers", [("k.orders", 0)])
    else:
        with pytest.raises(raised):
            asks.forget("k.readers", [("k.orders", 0)])


def test_without_a_coordinator_it_is_not_done(monkeypatch):
    with pytest.raises(ClusterUnavailable):
        door(monkeypatch, None).forget("k.readers", [("k.orders", 0)])


def door(monkeypatch, coordinator):
    described = {"k.readers": group_door.DescribedGroup("k.readers", "Empty", "", (), coordinator)}
    monkeypatch.setattr(group_door.KafkaGroups, "described", lambda _self, _names: described)
    admin = SimpleNamespace(kafka=SimpleNamespace(), who=Identification("s"), settings={})
    return group_door.KafkaGroups(CLUSTER, admin)
