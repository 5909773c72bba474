"""Operators register clusters, change what they may be used for, and have it on record."""

from __future__ import annotations

import pytest

from controlplane.clusters import coordination, zookeeper
from controlplane.clusters.models import Broker, ClusterEvent, PhysicalCluster
from controlplane.clusters.registering import (
    brokers_compare,
    cluster_change,
    cluster_register,
    hosts_problem,
    hosts_sorted,
)
from controlplane.clusters.services import brokers_watch, cluster_ensure, cluster_named
from controlplane.core.errors import AlreadyExists, Invalid, NotFound

from .fakes import FakeBrokers, FakeTree

ELSEWHERE = "z1:2181,z2:2181/kafka"


@pytest.fixture
def elsewhere(db, tree, monkeypatch):
    """Another ZooKeeper than that of the default cluster."""
    other = FakeTree()
    monkeypatch.setattr(zookeeper, "tree", lambda address: other if address.zookeeper_hosts.startswith("z") else tree)
    return other


def registered(**members):
    return cluster_register(**{"actor": "olga@example.com", "name": "second", "zookeeper_hosts": ELSEWHERE, **members})


def test_a_cluster_is_registered_with_zones_and_capacity(elsewhere, clock):
    row = registered(zones=["b", "a", "a"], capacity=40, reason="the first is full", clock=clock)
    assert (row.zones, row.capacity, row.state) == (["a", "b"], 40, "open")
    assert row.address.zookeeper_hosts == ELSEWHERE
    event = ClusterEvent.objects.get(cluster=row)
    assert (event.actor, event.action, event.reason) == ("olga@example.com", "register", "the first is full")
    assert event.detail["zones"] == {"from": None, "to": ["a", "b"]}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "Second"), ("name", ""), ("name", "-x"), ("name", "x" * 64), ("name", "a/b"),
        ("zookeeper_hosts", ""), ("zookeeper_hosts", "z1"), ("zookeeper_hosts", "z1:0"), ("zookeeper_hosts", "z1:2181/"),
        ("zookeeper_hosts", "z1:2181/a//b"), ("zookeeper_hosts", "169.254.169.254:80"), ("zookeeper_hosts", "z1:2181," * 40),
        ("zones", ["a b"]), ("zones", [""]), ("zones", ["x"] * 21), ("zones", [1]), ("capacity", -1), ("capacity", 5001),
        ("capacity", True), ("reason", "x" * 1001),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_field(elsewhere, field, value):
    with pytest.raises(Invalid) as refused:
        registered(**{field: value})
    assert [problem.field for problem in refused.value.errors] == [field]
    assert PhysicalCluster.objects.filter(name="second").count() == 0


def test_the_order_and_case_of_servers_say_nothing():
    assert hosts_sorted(" Z2:2181, z1:2181/Kafka") == "z1:2181,z2:2181/Kafka"
    assert hosts_problem("z1:2181, z2:2181/kafka/second") is None
    assert hosts_problem("[::1]:2181") is None


def test_one_cluster_is_not_registered_twice(elsewhere):
    registered()
    for again in ({}, {"name": "third", "zookeeper_hosts": "z2:2181,Z1:2181/kafka"}):
        with pytest.raises(AlreadyExists):
            registered(**again)


def test_the_installations_own_cannot_be_registered_under_its_hosts(elsewhere, settings):
    cluster_ensure()
    with pytest.raises(AlreadyExists, match="cluster default has this ZooKeeper already"):
        registered(zookeeper_hosts=settings.ENVIRONMENT.zookeeper_hosts)


def test_nor_by_another_name_of_its_servers(elsewhere):
    """Its brokers tell: they register in one place."""
    FakeBrokers(elsewhere, 3)
    for each in coordination.live_brokers(elsewhere):
        Broker.objects.create(cluster=cluster_ensure(), broker_id=each.id, host=each.host, port=each.port)
    with pytest.raises(AlreadyExists, match="of cluster default is: they are one cluster"):
        registered()


def test_one_whose_zookeeper_is_away_is_registered_all_the_same(elsewhere):
    elsewhere.away = True
    assert registered().name == "second"


def observed(cluster, tree):
    """As every few seconds."""
    live = coordination.live_brokers(tree)
    brokers_watch(cluster=cluster, live=live)
    brokers_compare(cluster=cluster, live=live)


def test_one_that_turns_out_to_be_another_one_later_is_cordoned(elsewhere):
    """Its ZooKeeper was restarting when it was registered, under another name of its servers."""
    elsewhere.away = True
    second = registered()
    elsewhere.away = False
    FakeBrokers(elsewhere, 3)
    observed(cluster_ensure(), elsewhere)
    for _ in range(2):
        observed(second, elsewhere)
    second.refresh_from_db()
    assert second.state == "cordoned"
    assert cluster_ensure().state == "open"
    event = ClusterEvent.objects.get(action="change")
    assert (event.cluster, event.actor, event.detail) == (
        second, "system", {"state": {"from": "open", "to": "cordoned"}},
    )  # fmt: skip
    assert event.reason.endswith("is one of cluster default too: they are one cluster")
    assert all(broker.host in event.reason for broker in coordination.live_brokers(elsewhere)[:1])
    observed(cluster_ensure(), elsewhere)
    assert cluster_ensure().state == "open", "whichever of them is looked at, it is the newer one"


def test_brokers_at_other_addresses_or_of_a_cluster_that_is_switched_off_are_no_matter(elsewhere):
    FakeBrokers(elsewhere, 3)
    second = registered()
    for each in coordination.live_brokers(elsewhere):
        Broker.objects.create(cluster=cluster_ensure(), broker_id=each.id, host=each.host, port=each.port + 100)
        Broker.objects.create(
            cluster=PhysicalCluster.objects.get_or_create(name="old", zookeeper_hosts="y:1", state="retired")[0],
            broker_id=each.id, host=each.host, port=each.port,
        )  # fmt: skip
    observed(second, elsewhere)
    assert not ClusterEvent.objects.filter(action="change").exists()


def test_one_that_was_retired_is_looked_at_before_it_is_taken_back(elsewhere):
    FakeBrokers(elsewhere, 3)
    second = registered()
    observed(second, elsewhere)
    cluster_change(cluster=second, actor="o", changes={"state": "retired"}, reason="it is old")
    again = registered(name="again", zookeeper_hosts="z3:2181/kafka")
    observed(again, elsewhere)
    with pytest.raises(AlreadyExists, match="of cluster again is: they are one cluster"):
        cluster_change(cluster=second, actor="o", changes={"state": "open"}, reason="it is needed")
    second.refresh_from_db()
    assert second.state == "retired"
    cluster_change(cluster=again, actor="o", changes={"state": "retired"}, reason="a mistake")
    assert cluster_change(cluster=second, actor="o", changes={"state": "open"}, reason="it is needed").state == "open"


def test_what_is_changed_is_on_record_and_what_is_asked_for_twice_is_decided_once(elsewhere):
    row = registered()
    for _ in range(2):
        changed = cluster_change(cluster=row, actor="o", changes={"state": "cordoned", "capacity": 7}, reason=" full ")
    assert (changed.state, changed.capacity) == ("cordoned", 7)
    event = ClusterEvent.objects.get(action="change")
    assert event.detail == {"state": {"from": "open", "to": "cordoned"}, "capacity": {"from": 500, "to": 7}}
    assert event.reason == "full"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({}, "x"), ({"state": "gone"}, "x"), ({"state": "open"}, " "), ({"capacity": 1.5}, "x"), ({"zones": "a"}, "x")],
)
def test_a_change_says_what_and_why(elsewhere, changes, reason):
    row = registered()
    with pytest.raises(Invalid):
        cluster_change(cluster=row, actor="o", changes=changes, reason=reason)
    assert not ClusterEvent.objects.filter(action="change").exists()


def test_without_a_name_the_only_cluster_is_meant_and_where_there_are_two_nobody_guesses(elsewhere):
    assert cluster_named(None).name == cluster_named("").name == "default"
    registered()
    with pytest.raises(Invalid, match="must say which of the clusters: default, second"):
        cluster_named(None)
    assert cluster_named("second").name == "second"
    with pytest.raises(NotFound):
        cluster_named("third")
