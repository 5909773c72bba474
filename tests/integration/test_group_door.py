"""The control plane's door to consumer groups, against real brokers and real consumers."""

from __future__ import annotations

import os
import signal
import struct
import threading
import time
import warnings
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer, TopicPartition

from controlplane.clusters import zookeeper
from controlplane.clusters.address import ClusterAddress
from controlplane.clusters.identification import Identification
from controlplane.core.errors import Conflict, NotFound
from controlplane.groups import rounds
from controlplane.kafka import backlog_door, client, group_door, groups, topics
from dataplane.protocol.messages.groups import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from quota.contracts.identity import credential
from quota.contracts.zookeeper import Party
from quota.contracts.zookeeper_login import access_by_secret
from tests.integration.clients import QUIET, admin, consumer, create_topic, produce, take
from tests.support.processes import HOST, SECRET
from tests.support.waiting import promised, wait_for
from tests.support.wire import Wire

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python reads its schemas in a way that Python 3.11 calls old
    from kafka import KafkaConsumer

pytestmark = pytest.mark.integration

MOST_ERROR_S = 1.0
CLUSTER = ClusterAddress(0, "")  # what the doors below are handed out for


@pytest.fixture(autouse=True)
def door(cluster, monkeypatch, patient_doors):
    """As a process of the control plane has it."""
    bootstrap = ",".join(f"{HOST}:{broker.ports['internal']}" for broker in cluster.brokers.values())
    who = Identification(credential(SECRET, "controlplane"))
    asks = client.KafkaAdmin(bootstrap, who)
    made = group_door.KafkaGroups(CLUSTER, asks)
    hosts = ",".join(f"{host}:{port}" for host, port in cluster.zookeeper.hosts)
    tree = zookeeper.KazooTree(hosts, access_by_secret((SECRET,), Party.CONTROL_PLANE))
    tree.wait_connected(30)
    monkeypatch.setattr(client, "admin", lambda _cluster: asks)
    monkeypatch.setattr(group_door, "door", lambda _cluster: made)
    monkeypatch.setattr(backlog_door, "to_brokers", lambda: who)
    monkeypatch.setattr(zookeeper, "tree", lambda _cluster: tree)
    yield made
    tree.close()


def commit(tenant, group, offsets, topic="orders"):
    with consumer(tenant, group) as reader:
        wanted = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
        reader.commit(offsets=wanted, asynchronous=False)


def stamped(tenant, ages_s, **config):
    """Records of these ages, one batch each unless lingering; the moments in seconds."""
    now, producer = time.time(), Producer({"bootstrap.servers": tenant.bootstrap, "acks": "all", **QUIET, **config})
    for age in ages_s:
        producer.produce("orders", os.urandom(100), partition=0, timestamp=int(1000 * (now - age)))
        if not config:
            assert producer.flush(20) == 0
    assert producer.flush(20) == 0
    return [now - age for age in ages_s]


@contextmanager
def polling(tenant, group, **config):
    """A consumer that lives, in a thread of its own."""
    over = threading.Event()
    with consumer(tenant, group, client_id="reader-1", session_timeout_ms=6000, **config) as reader:
        reader.subscribe(["orders"])
        thread = threading.Thread(target=lambda: [reader.poll(0.1) for _ in iter(over.is_set, True)])
        thread.start()
        try:
            yield reader
        finally:
            over.set()
            thread.join()


def state(tenant, group):
    return groups.get(CLUSTER, tenant.id, group).described.state


def members(tenant, group):
    return groups.get(CLUSTER, tenant.id, group).described.members


def test_lists_hold_ones_own_groups_whatever_the_others_are_called(tenant, new_tenant):
    other = new_tenant()
    for one in (tenant, other):
        create_topic(one, "orders", 2)
        commit(one, "readers", {0: 0})
    commit(other, "secret", {1: 0})
    assert [(group.name, group.state) for group in groups.list_all(CLUSTER, tenant.id)] == [("readers", "Empty")]
    assert [group.name for group in groups.list_all(CLUSTER, other.id)] == ["readers", "secret"]
    with pytest.raises(NotFound) as missing:
        groups.get(CLUSTER, tenant.id, "secret")
    assert missing.value.detail == "no group secret"


def test_members_are_shown_with_client_address_and_assignment(tenant):
    create_topic(tenant, "orders", 3)
    with polling(tenant, "readers"):
        wait_for(lambda: state(tenant, "readers") == "Stable", 20, "a stable group")
        (member,) = members(tenant, "readers")
        assert (member.client_id, member.host) == ("reader-1", "127.0.0.1")
        assert member.partitions == (("orders", 0), ("orders", 1), ("orders", 2))
        assert groups.get(CLUSTER, tenant.id, "readers").described.protocol == "range"
    wait_for(lambda: state(tenant, "readers") == "Empty" if groups.list_all(CLUSTER, tenant.id) else True, 20, "nobody")


def mark(door, tenant, group):
    """What tells one assignment of the group from the next, as its coordinator says it."""
    address = next(each.coordinator for each in groups.list_known(CLUSTER, tenant.id).groups if each.name == group)
    physical = f"{tenant.key}.{group}"
    return door.marks(address, [physical], within_s=10.0)[physical]


def reads(reader):
    wait_for(lambda: reader.poll(0.2) is not None or bool(reader.assignment()), 30, "an assignment")


def test_a_group_has_another_mark_after_each_rebalance_and_the_same_where_a_static_member_was_restarted(tenant, door):
    create_topic(tenant, "orders", 2)
    marks = []
    for _ in range(2):
        with consumer(tenant, "static", group_instance_id="one") as reader:
            reader.subscribe(["orders"])
            reads(reader)
            wait_for(lambda: state(tenant, "static") == "Stable", 20, "a stable group")
            marks.append(mark(door, tenant, "static"))
            assert [member.group_instance_id for member in members(tenant, "static")] == ["one"]
    assert marks[0] == marks[1]
    assert marks[0].state == "Stable"
    with polling(tenant, "readers"):
        wait_for(lambda: state(tenant, "readers") == "Stable", 20, "a stable group")
        alone = mark(door, tenant, "readers")
        with consumer(tenant, "readers") as second:
            second.subscribe(["orders"])
            reads(second)
            wait_for(lambda: state(tenant, "readers") == "Stable", 20, "a stable group of two")
            assert mark(door, tenant, "readers").mark != alone.mark


def test_a_kafka_python_consumer_is_shown_too(tenant):
    create_topic(tenant, "orders", 2)
    options = {"bootstrap_servers": tenant.bootstrap.split(","), "group_id": "billing", "client_id": "py-1"}
    with KafkaConsumer("orders", **options) as reader:
        wait_for(lambda: reader.poll(500) is not None and bool(reader.assignment()), 30, "an assignment")
        (member,) = members(tenant, "billing")
        assert member.group_instance_id is None
        assert (member.client_id, member.partitions) == ("py-1", (("orders", 0), ("orders", 1)))


@pytest.mark.parametrize("at", [0, 1, 3])
def test_the_oldest_unread_record_has_its_time(tenant, at):
    create_topic(tenant, "orders")
    moments = stamped(tenant, [400.0, 300.0, 20.0, 5.0])
    commit(tenant, "readers", {0: at})
    committed = groups.get(CLUSTER, tenant.id, "readers").committed
    assert committed == {("orders", 0): at}
    found = groups.oldest(CLUSTER, tenant.id, committed)
    assert found["orders", 0] / 1000 == pytest.approx(moments[at], abs=MOST_ERROR_S)


def test_within_a_batch_it_is_the_records_own_time_and_a_large_batch_is_read_whole(tenant):
    create_topic(tenant, "orders")
    moments = stamped(tenant, [900.0 - age for age in range(800)], **{"linger.ms": 300, "compression.type": "lz4"})
    found = groups.oldest(CLUSTER, tenant.id, {("orders", 0): 700})
    assert found["orders", 0] / 1000 == pytest.approx(moments[700], abs=MOST_ERROR_S)


def test_many_partitions_are_asked_at_once(tenant):
    """Within two seconds on a machine that does nothing else; what is not read in its time is left out."""
    create_topic(tenant, "orders", 60)
    began = time.time()
    produce(tenant, "orders", (os.urandom(500) for _ in range(3000)))
    held = groups.spans(CLUSTER, tenant.id, [("orders", partition) for partition in range(60)])
    behind = {place: span.start for place, span in held.items() if span.end}
    started = time.monotonic()
    found = groups.oldest(CLUSTER, tenant.id, behind)
    print(f"{len(found)} partitions in {time.monotonic() - started:.2f} s")
    assert found.keys() == behind.keys()
    assert all(began - 1 <= at / 1000 <= time.time() for at in found.values())


def test_a_round_of_all_groups_has_what_one_question_about_each_has(tenant, new_tenant):
    other = new_tenant()
    for one in (tenant, other):
        create_topic(one, "orders", 2)
    moments = stamped(tenant, [400.0, 300.0, 20.0])
    for number in range(5):
        commit(tenant, f"readers-{number}", {0: min(number, 3)})
    commit(other, "readers-0", {0: 0})
    found = rounds.round_of(CLUSTER, [tenant.id, other.id], known={})
    assert found.lags[other.id] == {"readers-0": rounds.Lag(0, group_door.NOTHING_LEFT, size=0)}
    mine = found.lags[tenant.id]
    assert {name: lag.messages for name, lag in mine.items()} == {
        "readers-0": 3, "readers-1": 2, "readers-2": 1, "readers-3": 0, "readers-4": 0,
    }  # fmt: skip
    sizes = [mine[f"readers-{number}"].size for number in range(5)]
    assert sizes[0] > sizes[1] > sizes[2] > sizes[3] == sizes[4] == 0, "each record is a batch"
    for number, moment in enumerate(moments):
        assert mine[f"readers-{number}"].oldest_ms / 1000 == pytest.approx(moment, abs=MOST_ERROR_S)
    assert rounds.round_of(CLUSTER, [tenant.id], known=found.dated).lags[tenant.id] == mine


def test_at_the_end_there_is_nothing_to_read(tenant):
    create_topic(tenant, "orders")
    produce(tenant, "orders", [b"1"])
    assert groups.oldest(CLUSTER, tenant.id, {("orders", 0): 1}) == {("orders", 0): group_door.NOTHING_LEFT}


def test_spans_leave_out_a_topic_that_is_gone(tenant):
    create_topic(tenant, "orders")
    produce(tenant, "orders", [b"1", b"2"])
    found = groups.spans(CLUSTER, tenant.id, [("orders", 0), ("gone", 0)])
    assert found == {("orders", 0): group_door.Span(0, 2)}


def test_a_time_is_the_first_record_from_then_on(tenant):
    create_topic(tenant, "orders")
    moments = stamped(tenant, [400.0, 300.0, 20.0])
    at = int(1000 * moments[1])
    assert groups.offsets_at(CLUSTER, tenant.id, [("orders", 0)], at) == {("orders", 0): 1}
    assert groups.offsets_at(CLUSTER, tenant.id, [("orders", 0)], at + 10**9) == {("orders", 0): None}


def test_a_moved_offset_is_where_the_next_consumer_begins(tenant):
    create_topic(tenant, "orders")
    produce(tenant, "orders", [b"%d" % number for number in range(10)])
    commit(tenant, "readers", {0: 10})
    groups.commit(CLUSTER, tenant.id, "readers", {("orders", 0): 7})
    with consumer(tenant, "readers") as reader:
        reader.subscribe(["orders"])
        assert [message.value() for message in take(reader, 3)] == [b"7", b"8", b"9"]


def test_a_group_that_is_committed_for_is_there_and_leaves_one_topic_after_the_other(tenant):
    for topic in ("orders", "clicks"):
        create_topic(tenant, topic, 2)
    begin = {("orders", 0): 0, ("orders", 1): 0, ("clicks", 1): 0}
    groups.commit(CLUSTER, tenant.id, "readers", begin)
    assert groups.get(CLUSTER, tenant.id, "readers").committed == begin
    groups.forget(CLUSTER, tenant.id, "readers", [("orders", 0), ("orders", 1)])
    assert groups.get(CLUSTER, tenant.id, "readers").committed == {("clicks", 1): 0}
    groups.forget(CLUSTER, tenant.id, "readers", [("clicks", 1)])
    with pytest.raises(NotFound):
        groups.get(CLUSTER, tenant.id, "readers")


def test_while_a_member_lives_nothing_is_moved_or_deleted(tenant):
    create_topic(tenant, "orders")
    commit(tenant, "readers", {0: 0})
    with polling(tenant, "readers"):
        wait_for(lambda: state(tenant, "readers") == "Stable", 20, "a stable group")
        for act in (
            lambda: groups.commit(CLUSTER, tenant.id, "readers", {("orders", 0): 0}),
            lambda: groups.delete(CLUSTER, tenant.id, "readers"),
            lambda: groups.forget(CLUSTER, tenant.id, "readers", [("orders", 0)]),
        ):
            with pytest.raises(Conflict) as refusal:
                act()
            assert refusal.value.code == "group_not_empty"
    groups.delete(CLUSTER, tenant.id, "readers")
    with pytest.raises(NotFound):
        groups.get(CLUSTER, tenant.id, "readers")
    with pytest.raises(NotFound):
        groups.delete(CLUSTER, tenant.id, "readers")


def test_a_member_that_hangs_is_removed_and_one_that_lives_comes_back(tenant):
    create_topic(tenant, "orders", 2)
    with polling(tenant, "readers"):
        wait_for(lambda: state(tenant, "readers") == "Stable", 20, "a stable group")
        (before,) = members(tenant, "readers")
        groups.remove(CLUSTER, tenant.id, "readers", before.id)
        with pytest.raises(NotFound):
            group_door.door(CLUSTER).remove(f"{tenant.key}.readers", before.id)
        wait_for(lambda: [m.id for m in members(tenant, "readers")] not in ([], [before.id]), 30, "it to come back")


def test_of_the_two_protocols_members_of_the_classic_one_alone_can_be_removed(tenant):
    create_topic(tenant, "orders", 2)
    with consumer(tenant, "readers", group_protocol="consumer") as reader:
        reader.subscribe(["orders"])
        wait_for(lambda: (reader.poll(0.2), bool(reader.assignment()))[1], 40, "an assignment")
        group = groups.get(CLUSTER, tenant.id, "readers")
        (member,) = group.described.members
        assert (group.described.is_of_consumers, group.described.is_offsets_alone) == (True, False)
        assert not groups.can_be_removed(CLUSTER, tenant.id, group, member.id)
        with pytest.raises(NotFound):
            groups.remove(CLUSTER, tenant.id, "readers", member.id)
        with polling(tenant, "readers"):
            wait_for(
                lambda: (reader.poll(0.2), len(members(tenant, "readers")) == 2)[1], 40, "one of the other protocol"
            )
            group = groups.get(CLUSTER, tenant.id, "readers")
            (classic,) = {each.id for each in group.described.members} - {member.id}
            assert groups.can_be_removed(CLUSTER, tenant.id, group, classic)
            assert not groups.can_be_removed(CLUSTER, tenant.id, group, member.id)
            groups.remove(CLUSTER, tenant.id, "readers", classic)


def test_a_group_that_had_members_stays_empty_without_its_last_offset(tenant):
    create_topic(tenant, "orders")
    commit(tenant, "readers", {0: 0})
    assert groups.get(CLUSTER, tenant.id, "readers").described.is_offsets_alone
    with polling(tenant, "readers"):
        wait_for(lambda: state(tenant, "readers") == "Stable", 20, "a stable group")
        assert not groups.get(CLUSTER, tenant.id, "readers").described.is_offsets_alone
    wait_for(lambda: state(tenant, "readers") == "Empty", 20, "nobody")
    assert not groups.get(CLUSTER, tenant.id, "readers").described.is_offsets_alone
    groups.forget(CLUSTER, tenant.id, "readers", [("orders", 0)])
    left = groups.get(CLUSTER, tenant.id, "readers")
    assert (left.described.state, left.committed) == ("Empty", {})


def test_reading_lag_leaves_no_trace(tenant):
    """No group of its own, neither the tenant's nor the cluster's."""
    create_topic(tenant, "orders")
    produce(tenant, "orders", [b"1"])
    groups.oldest(CLUSTER, tenant.id, {("orders", 0): 0})
    assert not any(group.name == "sluice-lag" for group in group_door.door(CLUSTER).listed(lambda _name: True).groups)
    asks = admin(tenant)
    assert asks.list_consumer_groups(request_timeout=10).result(15).valid == []


def test_one_broker_hangs_and_the_groups_of_the_others_are_shown(cluster, tenant, door, monkeypatch):
    """As a page has it: hasty, and with a new client once it is known that a broker does not answer."""
    create_topic(tenant, "orders", 1)
    cluster.spread_coordinators()
    for number in range(12):
        commit(tenant, f"readers-{number}", {0: 0})
    wait_for(lambda: len(groups.list_known(CLUSTER, tenant.id).groups) == 12, 30, "the groups of all coordinators")
    whole = {group.name: group.coordinator for group in groups.list_known(CLUSTER, tenant.id).groups}
    ports = {(HOST, broker.ports["internal"]): number for number, broker in cluster.brokers.items()}
    hung = next(iter(whole.values()))
    theirs = sorted(name for name, address in whole.items() if address == hung)
    others = sorted(name for name, address in whole.items() if address != hung)
    assert (len(whole), bool(theirs), bool(others)) == (12, True, True)
    bootstrap, who = client.admin(CLUSTER).settings["bootstrap.servers"], client.admin(CLUSTER).who
    monkeypatch.setattr(
        group_door, "door", lambda _cluster: group_door.KafkaGroups(CLUSTER, client.KafkaAdmin(bootstrap, who))
    )
    monkeypatch.setattr(group_door, "LIST_S", 2.0)
    monkeypatch.setattr(group_door, "ROUND_S", 3.0)
    pid = cluster.brokers[ports[hung]].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        listing = groups.list_known(CLUSTER, tenant.id)
        found, silent = groups.read_known(CLUSTER, tenant.id, [group.name for group in listing.groups])
        took_s = time.monotonic() - began
        assert listing.missing == (ports[hung],)
        assert sorted(group.name for group in listing.groups) == others
        assert (sorted(group.name for group in found), silent) == (others, [])
        assert all(group.committed == {("orders", 0): 0} for group in found)
        print(f"{len(others)} of 12 groups in {took_s:.1f} s while their broker's neighbour hangs")
        assert took_s < promised(8)
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_for(lambda: len(groups.list_known(CLUSTER, tenant.id).groups) == 12, 60, "all of them again")


def join_as(wire, group, kind, assignment):
    """One member of a group of this type of protocol, which has assigned this to itself."""
    protocols = (JoinGroupRequestProtocol("range", b"\xff"),)
    joined = wire.call(JoinGroupRequest(group, 30_000, 30_000, "", None, kind, protocols, None), 2)
    assert joined.error_code == 0
    has = (SyncGroupRequestAssignment(joined.member_id, assignment),)
    assert (
        wire.call(SyncGroupRequest(group, joined.generation_id, joined.member_id, None, kind, None, has), 1).error_code
        == 0
    )
    return joined.member_id


def assigned(topic, *partitions):
    """As consumers write it."""
    name = struct.pack(">h", len(topic)) + topic + struct.pack(">i", len(partitions))
    return struct.pack(">hi", 0, 1) + name + struct.pack(f">{len(partitions)}i", *partitions) + struct.pack(">i", -1)


@pytest.mark.parametrize(
    ("kind", "assignment", "has"),
    [
        ("connect", b"\0\1whatever workers tell each other", ()),
        ("consumer", b"\xfe\xff\xff", ()),
        ("consumer", assigned(b"\xff\xfe", 0), ()),
        ("consumer", assigned(b"orders", 0, -3, 70_000), (("orders", 0), ("orders", 70_000))),
    ],
)
def test_a_member_with_any_assignment_hides_no_group_and_can_be_removed(cluster, tenant, kind, assignment, has):
    create_topic(tenant, "orders", 2)
    for name in ("audit", "odd", "readers"):
        commit(tenant, name, {0: 0})
    with Wire(tenant.addresses[cluster.coordinator(tenant, "odd")]) as wire:
        member = join_as(wire, "odd", kind, assignment)
        found = groups.read(CLUSTER, tenant.id, ["audit", "odd", "readers"])
        assert [(each.name, each.described.state) for each in found] == [
            ("audit", "Empty"), ("odd", "Stable"), ("readers", "Empty"),
        ]  # fmt: skip
        assert [(each.id, each.partitions) for each in found[1].described.members] == [(member, has)]
        assert all(each.committed == {("orders", 0): 0} for each in found)
        assert set(groups.spans(CLUSTER, tenant.id, has or [("orders", 0)])) == {("orders", 0)}
        with pytest.raises(Conflict):
            groups.delete(CLUSTER, tenant.id, "odd")
        groups.remove(CLUSTER, tenant.id, "odd", member)
    assert groups.get(CLUSTER, tenant.id, "odd").described.members == ()
    groups.delete(CLUSTER, tenant.id, "odd")


def test_cuts_are_asked_with_a_time_of_each_partition(tenant):
    create_topic(tenant, "orders", 2)
    old, middle, new = stamped(tenant, [300.0, 200.0, 100.0])
    times = {("orders", 0): int(1000 * middle), ("orders", 1): int(1000 * old)}
    assert groups.offsets_at_each(CLUSTER, tenant.id, times) == {("orders", 0): 1, ("orders", 1): None}
    assert groups.offsets_at_each(CLUSTER, tenant.id, {("orders", 0): int(1000 * new) + 1}) == {("orders", 0): None}


def test_settings_in_force_are_read_with_whose_they_are(tenant, new_tenant):
    other = new_tenant()
    for one in (tenant, other):
        create_topic(one, "orders", 1)
    create_topic(tenant, "logs", 1)
    topics.config_set(CLUSTER, tenant.id, "orders", {"retention.ms": "3600000"})

    def found(name):
        return topics.settings_all(CLUSTER, tenant.id)[name]["retention.ms"]

    wait_for(lambda: found("orders") == client.Setting("3600000", is_own=True), 20, "the setting on every broker")
    assert found("logs").is_own is False
    assert int(found("logs").value) > 0
    assert set(topics.settings_all(CLUSTER, tenant.id)) == {"orders", "logs"}
    assert topics.settings_all(CLUSTER, other.id)["orders"]["retention.ms"].is_own is False
    topics.config_set(CLUSTER, tenant.id, "orders", {"retention.ms": None})
    wait_for(lambda: found("orders") == found("logs"), 20, "the default on every broker")
