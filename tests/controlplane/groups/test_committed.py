"""Offsets are asked of the coordinator itself: an answer that ends librdkafka's admin client is an error code here."""

from __future__ import annotations

import io
import struct
from concurrent.futures import Future
from contextlib import nullcontext
from datetime import timedelta
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException
from kio.schema.errors import ErrorCode
from kio.schema.offset_fetch.v8 import request, response
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i32, i64

from controlplane.clusters.address import ClusterAddress
from controlplane.clusters.coordination import LiveBroker
from controlplane.clusters.identification import Identification
from controlplane.core.errors import ClusterUnavailable
from controlplane.kafka import client, committed, group_door, leaving

CLUSTER = ClusterAddress(0, "")
COORDINATOR = ("127.0.0.1", 9092)


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def partition(number: int, offset: int, error: int = 0, metadata: bytes = struct.pack(">h", -1)) -> bytes:
    return struct.pack(">iq", number, offset) + metadata + struct.pack(">h", error)


def answer(*topics: tuple[str, list[bytes]], error: int = 0) -> bytes:
    rows = [text(name) + struct.pack(">i", len(parts)) + b"".join(parts) for name, parts in topics]
    return struct.pack(">ii", 0, len(rows)) + b"".join(rows) + struct.pack(">h", error)


def test_every_partition_that_has_an_offset_is_read():
    found = committed.offsets_in(
        answer(
            ("a", [partition(0, 7), partition(1, -1)]), ("b", [partition(2, 9, metadata=text("m")), partition(3, 1, 3)])
        )
    )
    assert found == (0, {("a", 0): 7, ("b", 2): 9})


def test_the_error_of_the_group_is_answered():
    assert committed.offsets_in(answer(error=KafkaError.NOT_COORDINATOR)) == (KafkaError.NOT_COORDINATOR, {})


@pytest.mark.parametrize("size", range(4, 30))
def test_an_answer_that_ends_early_is_an_error(size):
    with pytest.raises(struct.error):
        committed.offsets_in(answer(("topic", [partition(0, 7)]))[:size])


@pytest.fixture
def forgotten(monkeypatch):
    """Clients that were given up."""
    found = []
    monkeypatch.setattr(client, "forget", lambda _cluster, admin: found.append(admin))
    return found


def door(**calls):
    admin = SimpleNamespace(kafka=SimpleNamespace(**calls), who=Identification("s"), settings={})
    return admin, group_door.KafkaGroups(CLUSTER, admin)


def refused(code: int) -> Future:
    future = Future()
    future.set_exception(KafkaException(KafkaError(code)))
    return future


def described(monkeypatch):
    monkeypatch.setattr(
        group_door.KafkaGroups,
        "described",
        lambda _self, names: {name: group_door.DescribedGroup(name, "Empty", "", (), COORDINATOR) for name in names},
    )


def test_a_coordinator_that_has_moved_makes_the_next_look_begin_anew(monkeypatch, forgotten):
    described(monkeypatch)
    monkeypatch.setattr(committed, "fetch", lambda *_args, **_named: {"g": (KafkaError.NOT_COORDINATOR, {})})
    admin, asked = door()
    with pytest.raises(client.ClusterChanging):
        asked.committed(["g"])
    assert forgotten == [admin]


def test_a_coordinator_that_does_not_answer_makes_the_next_look_begin_anew(monkeypatch, forgotten):
    def away(*_args, **_named):
        raise ClusterUnavailable("the group's coordinator does not answer")

    described(monkeypatch)
    monkeypatch.setattr(committed, "fetch", away)
    admin, asked = door()
    with pytest.raises(ClusterUnavailable):
        asked.read(["g"])
    assert forgotten == [admin]


@pytest.mark.parametrize("code", [KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN])
def test_a_client_that_knows_no_leader_is_given_up_whatever_it_says(forgotten, code):
    admin, asked = door(list_offsets=lambda wanted, **_named: {place: refused(code) for place in wanted})
    with pytest.raises(ClusterUnavailable):
        asked.spans([("t", 0)])
    assert admin in forgotten


@pytest.fixture
def connected(monkeypatch):
    """A broker that answers what it is told to, one after the other; what it was asked."""
    asked = []

    def told(*answers):
        left = list(answers)
        monkeypatch.setattr(leaving, "signed_in", lambda *_args, **_named: nullcontext("a connection"))
        monkeypatch.setattr(
            leaving,
            "ask",
            lambda _connection, key, _version, body, **_named: asked.append((key, body)) or left.pop(0),
        )
        return asked

    return told


def written(*groups):
    """An answer in version 8, by a library of Kafka's schemas: of groups name, error, and offsets of each topic's partitions."""

    def partitions(offsets):
        return tuple(
            response.OffsetFetchResponsePartitions(
                partition_index=i32(number), committed_offset=i64(offset), committed_leader_epoch=i32(3),
                metadata="a client's words", error_code=ErrorCode.none,
            )
            for number, offset in enumerate(offsets)
        )  # fmt: skip

    rows = tuple(
        response.OffsetFetchResponseGroup(
            group_id=name,
            error_code=ErrorCode(error),
            topics=tuple(
                response.OffsetFetchResponseTopics(name=topic, partitions=partitions(offsets))
                for topic, offsets in topics.items()
            ),
        )
        for name, error, topics in groups
    )
    out = io.BytesIO()
    entity_writer(response.OffsetFetchResponse)(
        out, response.OffsetFetchResponse(throttle_time=timedelta(0), groups=rows)
    )
    return out.getvalue()


def test_offsets_of_many_are_asked_for_a_hundred_groups_at_a_time_without_those_that_have_moved(connected, monkeypatch):
    monkeypatch.setattr(committed, "GROUPS_AT_ONCE", 2)
    asked = connected(
        written(("a", 0, {"t": [7, -1, 8]}), ("b", KafkaError.NOT_COORDINATOR, {})), written(("c", 0, {}))
    )
    _, door_of = door()
    assert door_of.offsets(COORDINATOR, ["a", "b", "c"], within_s=9) == {"a": {("t", 0): 7, ("t", 2): 8}, "c": {}}
    assert [key for key, _ in asked] == [committed.OFFSET_FETCH] * 2
    first, size = entity_reader(request.OffsetFetchRequest)(asked[0][1], 0)
    assert size == len(asked[0][1])
    assert [(each.group_id, each.topics) for each in first.groups] == [("a", None), ("b", None)]
    assert first.require_stable is False


@pytest.mark.parametrize("size", range(0, 40, 3))
def test_an_answer_of_many_that_ends_early_is_an_error(size):
    with pytest.raises(struct.error):
        committed.offsets_of_each(written(("a", 0, {"topic": [7]}))[:size])


def test_a_group_whose_answer_is_too_long_hides_none_that_is_asked_for_together_with_it(monkeypatch):
    """Its clients wrote some KiB beside the offset of each partition: another tenant's lag is known all the same."""
    asked = []

    def answered(_connection, _key, _version, body, **_named):
        names = [group.group_id for group in entity_reader(request.OffsetFetchRequest)(body, 0)[0].groups]
        asked.append(names)
        if "huge" in names:
            raise leaving.TooLong("an answer of the group's coordinator is too long")
        return written(*((name, 0, {"t": [7]}) for name in names))

    monkeypatch.setattr(leaving, "signed_in", lambda *_args, **_named: nullcontext("a connection"))
    monkeypatch.setattr(leaving, "ask", answered)
    _, door_of = door()
    found = door_of.offsets(COORDINATOR, ["a", "b", "huge", "c", "d"], within_s=9)
    assert found == {name: {("t", 0): 7} for name in "abcd"}
    assert asked[0] == ["a", "b", "huge", "c", "d"]


def test_what_was_told_before_a_broker_went_away_is_known(connected, monkeypatch):
    monkeypatch.setattr(committed, "GROUPS_AT_ONCE", 1)
    connected(written(("a", 0, {"t": [7]})))
    first = leaving.ask

    def ask(*args, **named):
        monkeypatch.setattr(leaving, "ask", away)
        return first(*args, **named)

    def away(*_args, **_named):
        raise ClusterUnavailable("the group's coordinator does not answer")

    monkeypatch.setattr(leaving, "ask", ask)
    _, door_of = door()
    assert door_of.offsets(COORDINATOR, ["a", "b"], within_s=9) == {"a": {("t", 0): 7}}
    with pytest.raises(ClusterUnavailable):
        door_of.offsets(COORDINATOR, ["b"], within_s=9)


def test_offsets_that_do_not_come_in_time_are_left_out(connected):
    connected()
    _, door_of = door()
    assert door_of.offsets(COORDINATOR, ["a"], within_s=0) == {}


def test_a_broker_that_does_not_name_its_groups_hides_no_others(monkeypatch):
    brokers = [LiveBroker(id=number, host="h", port=number) for number in (1, 2)]
    monkeypatch.setattr(group_door.coordination, "live_brokers", lambda _tree: brokers)

    def first_is_away(address, _who, *, timeout_s):
        if address[1] == 1:
            raise ClusterUnavailable("the group's coordinator does not answer")
        return 14, {"a": "Stable", "b": "Empty"}  # and it still loads others

    monkeypatch.setattr(committed, "listed", first_is_away)
    _, door_of = door()
    assert door_of.coordinated() == {("h", 2): {"a": "Stable", "b": "Empty"}}
    brokers.pop()
    with pytest.raises(ClusterUnavailable):
        door_of.coordinated()
