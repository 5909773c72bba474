"""What librdkafka does not read of a group is read here without its assignments; it hides no other group."""

from __future__ import annotations

import struct
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupType, KafkaError, KafkaException, Node

from controlplane.clusters import coordination, zookeeper
from controlplane.clusters.address import ClusterAddress
from controlplane.clusters.coordination import LiveBroker
from controlplane.clusters.identification import Identification
from controlplane.core.errors import ClusterUnavailable
from controlplane.kafka import bare_groups, client, group_door
from controlplane.kafka.bare_groups import BareGroup, BareMember
from dataplane.protocol.codec import encode
from dataplane.protocol.messages.discovery import FindCoordinatorResponse
from dataplane.protocol.messages.groups import DescribedGroup, DescribedGroupMember, DescribeGroupsResponse

CLUSTER = ClusterAddress(0, "")
BROKER, COORDINATOR = ("127.0.0.1", 9091), ("127.0.0.1", 9092)
MEMBER = DescribedGroupMember("w-1-uuid", None, "w-1", "/10.0.0.7", b"\xff\xfe", b"\xfe\xff\xff")
CONNECT = DescribedGroup(0, None, "k.sink", "Stable", "connect", "sessioned", (MEMBER,))
ANSWER = encode(DescribeGroupsResponse(0, (CONNECT, DescribedGroup(16, None, "k.x", "", "", "", ()))), 1)


def test_state_protocol_and_members_are_read_whatever_they_have_been_assigned():
    worker = BareMember("w-1-uuid", "w-1", "/10.0.0.7")
    assert bare_groups.groups_in(ANSWER) == [
        (0, BareGroup("Stable", "connect", "sessioned", (worker,))),
        (KafkaError.NOT_COORDINATOR, BareGroup("", "", "", ())),
    ]


def test_a_coordinator_is_read_with_the_error_or_without():
    found = encode(FindCoordinatorResponse(0, 0, None, 2, *COORDINATOR, ()), 1)
    assert bare_groups.coordinator_in(found) == (0, COORDINATOR)
    none = encode(FindCoordinatorResponse(0, 15, "not now", -1, "", -1, ()), 1)
    assert bare_groups.coordinator_in(none) == (KafkaError.COORDINATOR_NOT_AVAILABLE, ("", -1))


@pytest.mark.parametrize("size", range(0, len(ANSWER), 7))
def test_an_answer_that_ends_early_is_an_error(size):
    with pytest.raises(struct.error):
        bare_groups.groups_in(ANSWER[:size])


# --- at the door ------------------------------------------------------------------------------------------------------


def legible(name):
    return SimpleNamespace(
        group_id=name,
        state=ConsumerGroupState.EMPTY,
        members=[],
        coordinator=Node(1, *COORDINATOR),
        partition_assignor="",
        type=ConsumerGroupType.CLASSIC,
        is_simple_consumer_group=True,
    )


def told(result):
    future = Future()
    future.set_exception(result) if isinstance(result, Exception) else future.set_result(result)
    return future


@pytest.fixture
def door(monkeypatch):
    """(what librdkafka says of so many names) -> a door; brokers know the groups that librdkafka does not read."""
    given_up = []
    monkeypatch.setattr(client, "forget", lambda _cluster, admin: given_up.append(admin))
    monkeypatch.setattr(zookeeper, "tree", lambda _cluster: None)
    monkeypatch.setattr(coordination, "live_brokers", lambda _tree: [LiveBroker(7, "gone", 1), LiveBroker(1, *BROKER)])

    def coordinators(address, _who, names, **_):
        if address[0] == "gone":
            raise ClusterUnavailable("it does not answer")
        return dict.fromkeys(names, (0, COORDINATOR))

    def fetch(address, _who, names, **_):
        assert address == COORDINATOR
        worker = BareMember("w-1-uuid", "w-1", "/10.0.0.7")
        return {name: (0, BareGroup("Stable", "connect", "sessioned", (worker,))) for name in names}

    monkeypatch.setattr(bare_groups, "coordinators", coordinators)
    monkeypatch.setattr(bare_groups, "fetch", fetch)

    def made(describe):
        calls = SimpleNamespace(
            describe_consumer_groups=lambda names, **_: {n: told(describe(n, names)) for n in names}
        )
        found = group_door.KafkaGroups(CLUSTER, SimpleNamespace(kafka=calls, who=Identification("s"), settings={}))
        found.given_up = given_up
        return found

    return made


@pytest.mark.parametrize("code", [KafkaError._INVALID_ARG, KafkaError._DESTROY])
def test_a_group_that_is_none_of_consumers_is_shown_and_hides_no_other(door, code):
    def describe(name, _names):
        return KafkaException(KafkaError(code)) if name == "k.sink" else legible(name)

    asked = door(describe)
    found = asked.described(["k.billing", "k.sink"])
    assert found["k.billing"].state == "Empty"
    sink = found["k.sink"]
    assert (sink.state, sink.protocol, sink.coordinator) == ("Stable", "sessioned", COORDINATOR)
    assert sink.members == (group_door.Member("w-1-uuid", "w-1", "10.0.0.7", ()),)
    assert (sink.is_of_consumers, sink.is_offsets_alone) == (False, False)
    assert asked.given_up == [], "the client is as good as before"


@pytest.mark.parametrize(
    "problem", [UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"), SystemError("with an exception set")]
)
def test_a_name_that_is_not_utf_8_takes_no_answer_away_that_was_asked_for_with_it(door, problem):
    def describe(name, names):
        return problem if "k.odd" in names else legible(name)

    found = door(describe).described(["k.a", "k.odd", "k.b"])
    assert [found[name].state for name in ("k.a", "k.odd", "k.b")] == ["Empty", "Stable", "Empty"]


def test_what_is_away_is_away_all_the_same(door):
    asked = door(lambda _name, _names: KafkaException(KafkaError(KafkaError.COORDINATOR_NOT_AVAILABLE)))
    with pytest.raises(ClusterUnavailable):
        asked.described(["k.a"])
    assert asked.given_up
