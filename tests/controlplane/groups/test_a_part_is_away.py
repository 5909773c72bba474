"""One coordinator hangs: what the others say of groups is shown, and who did not answer is named."""

from __future__ import annotations

import struct
import threading
from concurrent.futures import Future
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupType, KafkaError, KafkaException

from controlplane.clusters.address import ClusterAddress
from controlplane.clusters.coordination import LiveBroker
from controlplane.clusters.identification import Identification
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import ClusterUnavailable
from controlplane.groups import selectors
from controlplane.kafka import at_once, client, committed, group_door, leaving
from dataplane.protocol.codec import encode
from dataplane.protocol.messages.groups import ListedGroup, ListGroupsResponse
from tests.controlplane.fakes import FakeGroup
from tests.controlplane.history.test_lag_api import lag_of
from tests.controlplane.test_instances_api import problem

from .conftest import ALIVE

CLUSTER = ClusterAddress(0, "")


@pytest.fixture
def audit(hers):
    """A group whose coordinator, broker 2, hangs."""
    name = f"{hers.key}.audit"
    hers.groups.found[name] = FakeGroup({(f"{hers.key}.orders", 0): 101}, members=[ALIVE])
    hers.groups.silent.add(("127.0.0.1", 2))
    hers.groups.hidden.add(name)
    return name


def now_s():
    return int(SYSTEM_CLOCK.now().timestamp()) // 60 * 60


# --- REST -------------------------------------------------------------------------------------------------------------


def test_the_list_has_what_is_known_and_names_the_broker(alice, hers, audit):
    body = alice.api.get(hers.url).json()
    assert (body["missing_brokers"], [row["name"] for row in body["items"]]) == ([2], ["billing"])
    assert (body["items"][0]["lag_messages"], body["items"][0]["known"]) == (2, True)


def test_a_group_that_the_history_knew_a_minute_ago_is_named_without_figures(alice, hers, audit):
    lag_of(hers.instance_id, "audit", now_s() - 60, 5, 30, 900)
    lag_of(hers.instance_id, "long-gone", now_s() - 3600, 5, 30, 900)
    items = alice.api.get(hers.url).json()["items"]
    assert items[0] == {
        "name": "audit",
        "state": "Unknown",
        "protocol": "",
        "members": None,
        "lag_messages": None,
        "lag_bytes": None,
        "lag_seconds": None,
        "lag_seconds_at": None,
        "partitions": None,
        "known": False,
    }
    assert [row["name"] for row in items] == ["audit", "billing"]
    assert [row["name"] for row in alice.api.get(hers.url, {"prefix": "b"}).json()["items"]] == ["billing"]


def test_one_that_is_named_and_then_does_not_answer_is_there_as_well(alice, hers, audit):
    hers.groups.silent.clear()
    body = alice.api.get(hers.url).json()
    assert [(row["name"], row["known"]) for row in body["items"]] == [("audit", False), ("billing", True)]
    assert body["missing_brokers"] == []


def test_partitions_without_a_leader_leave_the_rest_of_the_list(alice, hers, monkeypatch):
    def away(_places):
        raise ClusterUnavailable("the leaders of the partitions do not answer")

    monkeypatch.setattr(hers.groups, "spans", away)
    (item,) = alice.api.get(hers.url).json()["items"]
    assert (item["state"], item["lag_messages"], item["known"]) == ("Empty", None, True)
    assert [(row["offset"], row["lag_messages"]) for row in item["partitions"]] == [(102, None), (2, None)]


def test_what_counts_on_all_groups_being_there_is_refused(alice, hers, audit):
    with pytest.raises(ClusterUnavailable):
        selectors.group_names(organisation=alice.organisation, instance_id=hers.instance_id)


def test_where_nobody_answers_it_is_a_retriable_503(alice, hers, admin):
    admin.away = True
    assert problem(alice.api.get(hers.url), 503, "cluster_unavailable")["retriable"]


# --- the door ---------------------------------------------------------------------------------------------------------


def states(*rows: tuple[str, str], error: int = 0) -> bytes:
    return encode(ListGroupsResponse(0, error, tuple(ListedGroup(name, "consumer", state) for name, state in rows)), 4)


def test_names_and_states_are_read():
    whole = states(("a.öl", "Stable"), ("b.x", "Empty"), error=14)
    assert committed.states_in(whole) == (14, {"a.öl": "Stable", "b.x": "Empty"})
    for size in range(len(whole)):
        with pytest.raises(struct.error):
            committed.states_in(whole[:size])


def test_they_are_asked_for_in_the_version_that_says_states(monkeypatch):
    asked = []
    monkeypatch.setattr(leaving, "signed_in", lambda *_args, **_named: nullcontext("a connection"))

    def ask(_connection, key, version, body, *, flexible):
        asked.append((key, version, body, flexible))
        return states(("a", "Stable"))

    monkeypatch.setattr(leaving, "ask", ask)
    assert committed.listed(("h", 1), Identification("s"), timeout_s=1) == (0, {"a": "Stable"})
    assert asked == [(16, 4, b"\x01\x00", True)]


@pytest.fixture
def forgotten(monkeypatch):
    """Clients that were given up."""
    found = []
    monkeypatch.setattr(client, "forget", lambda _cluster, admin: found.append(admin))
    return found


@pytest.fixture
def three(monkeypatch):
    """Three are registered; what each answers to ListGroups."""
    there = [LiveBroker(id=number, host="h", port=number) for number in (1, 2, 3)]
    monkeypatch.setattr(group_door.running, "brokers", lambda _cluster: there)
    answers = {1: (0, {"k.a": "Stable", "other.b": "Stable"}), 2: (0, {"k.c": "Assigning"}), 3: (0, {})}

    def listed(address, _who, *, timeout_s):
        assert timeout_s == group_door.LIST_S
        found = answers[address[1]]
        if found is None:
            raise ClusterUnavailable("the group's coordinator does not answer")
        return found

    monkeypatch.setattr(committed, "listed", listed)
    return answers


def door(**calls):
    admin = SimpleNamespace(kafka=SimpleNamespace(**calls), who=Identification("s"), settings={})
    return admin, group_door.KafkaGroups(CLUSTER, admin)


def ours(name):
    return name.startswith("k.")


def test_each_broker_names_its_own(three, forgotten):
    found = door()[1].listed(ours)
    assert [(group.name, group.state, group.coordinator) for group in found.groups] == [
        ("k.a", "Stable", ("h", 1)),
        ("k.c", "PreparingRebalance", ("h", 2)),
    ]
    assert (found.missing, forgotten) == ((), [])


@pytest.mark.parametrize("silent", [None, (KafkaError.COORDINATOR_LOAD_IN_PROGRESS, {"k.loaded": "Empty"})])
def test_one_that_says_nothing_or_not_all_is_missing_and_the_old_client_is_given_up(three, forgotten, silent):
    three[2] = silent
    admin, asked = door()
    found = asked.listed(ours)
    assert found.missing == (2,)
    assert [group.name for group in found.groups] == ["k.a", *(["k.loaded"] if silent else [])]
    assert forgotten == [admin]


def test_where_nobody_answers_there_is_no_list(three, forgotten):
    three.update(dict.fromkeys(three))
    with pytest.raises(ClusterUnavailable):
        door()[1].listed(ours)


def test_all_are_asked_at_the_same_time():
    meeting = threading.Barrier(3, timeout=10)
    assert at_once.each(lambda number: (meeting.wait(), number)[1], [1, 2, 3]) == {1: 1, 2: 2, 3: 3}
    assert at_once.each(lambda number: number, []) == {}


def description(name, coordinator):
    return SimpleNamespace(
        group_id=name,
        state=ConsumerGroupState.EMPTY,
        partition_assignor="",
        members=[],
        coordinator=coordinator,
        type=ConsumerGroupType.CLASSIC,
        is_simple_consumer_group=False,
    )


def done(result):
    future = Future()
    future.set_result(result)
    return future


def refused(code):
    future = Future()
    future.set_exception(KafkaException(KafkaError(code)))
    return future


def test_groups_that_answer_are_known_whatever_the_others_do(monkeypatch, forgotten):
    first, second = SimpleNamespace(host="h", port=1), SimpleNamespace(host="h", port=2)
    answers = {
        "a": done(description("a", first)),
        "moved": done(description("moved", first)),
        "b": done(description("b", second)),
        "nobody": done(description("nobody", None)),
        "slow": refused(KafkaError._TIMED_OUT),
    }

    def fetch(address, _who, names, *, timeout_s):
        if address[1] == 2:
            raise ClusterUnavailable("the group's coordinator does not answer")
        return {name: (0, {("t", 0): 7}) if name == "a" else (KafkaError.NOT_COORDINATOR, {}) for name in names}

    monkeypatch.setattr(committed, "fetch", fetch)
    _, asked = door(describe_consumer_groups=lambda names, **_named: {name: answers[name] for name in names})
    found = asked.known(list(answers))
    assert found.committed == {"a": {("t", 0): 7}}
    assert found.described.keys() == {"a"}
    assert forgotten
