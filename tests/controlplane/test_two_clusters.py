"""Two physical clusters never mix: what belongs to an instance of the second goes through the second's doors only."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from controlplane.accounts import services as accounts
from controlplane.alarms.evaluation import evaluate
from controlplane.clusters import master, zookeeper
from controlplane.clusters.models import Broker, PhysicalCluster, PortAllocation
from controlplane.clusters.services import cluster_ensure
from controlplane.core.errors import MasterUnavailable
from controlplane.health.models import HealthReason
from controlplane.health.selectors import health_get
from controlplane.health.services import health_observe
from controlplane.history.lag import looks
from controlplane.history.lag import sampling as lag
from controlplane.history.requests import sampling as requests
from controlplane.instances import lifecycle, reconcile, services
from controlplane.instances.tasks import changes_prune
from controlplane.kafka import client
from controlplane.quotas import figures
from controlplane.quotas.models import MasterJournal, RecordedInterval
from controlplane.quotas.selectors import brokers_get, flows_get
from controlplane.quotas.services import throttling_pull
from controlplane.throttle_rules.services import throttle_rule_create
from controlplane.topics.services import topic_create, topic_delete
from quota.contracts.apart import rules_path, spec_path
from quota.contracts.instance import MASTER_PATH
from quota.contracts.zookeeper import Party
from quota.contracts.zookeeper_login import access_by_secret

from .alarms.rows import alarm_row
from .conftest import WANTED, FakeMaster, run_to_the_end
from .console.test_instance_pages import flowing
from .fakes import FakeAdmin, FakeBrokers, FakeTree
from .quotas.conftest import document, interval

REAL_CONNECTION, REAL_ADMIN = zookeeper.connection, client.admin


class World:
    """One cluster with everything that is spoken to."""

    def __init__(self, cluster: PhysicalCluster, tree: FakeTree, admin: FakeAdmin, flow_master: FakeMaster) -> None:
        self.cluster, self.tree, self.admin, self.master = cluster, tree, admin, flow_master
        self.brokers = FakeBrokers(tree, 3)


@pytest.fixture
def worlds(db, monkeypatch):
    """The default cluster, and another one."""
    rows = [cluster_ensure(), PhysicalCluster.objects.create(name="second", zookeeper_hosts="second:2181/kafka")]
    made = {}
    for row in rows:
        tree = FakeTree()
        made[row.address] = World(row, tree, FakeAdmin(tree), FakeMaster())
    monkeypatch.setattr(zookeeper, "tree", lambda address: made[address].tree)
    monkeypatch.setattr(client, "admin", lambda address: made[address].admin)
    for name in ("allocation", "allocations", "short", "brokers"):

        def ask(address, *arguments, name=name):
            return getattr(made[address].master, name)(address, *arguments)

        monkeypatch.setattr(master, name, ask)
    return list(made.values())


@pytest.fixture
def pair(worlds, alice):
    """An instance on each, up and running."""
    made = []
    for world in worlds:
        instance, operation = services.instance_create(
            organisation=alice.organisation, actor="alice", cluster=world.cluster, **WANTED
        )
        assert run_to_the_end(operation.id).state == "succeeded"
        instance.refresh_from_db()
        made.append(instance)
    return made


def nodes_of(instance, world):
    return [path for path in world.tree.nodes if instance.id in path]


def test_an_instance_is_made_on_its_cluster_and_on_no_other(worlds, pair):
    (first, second), (one, other) = worlds, pair
    assert (one.cluster, other.cluster) == (first.cluster, second.cluster)
    assert (nodes_of(one, second), nodes_of(other, first)) == ([], [])
    assert nodes_of(one, first)
    assert nodes_of(other, second)
    for world, instance in zip(worlds, pair, strict=True):
        ports = PortAllocation.objects.filter(owner=instance.id)
        assert {port.broker.cluster for port in ports} == {world.cluster}
    every = PortAllocation.objects.values_list("host", "port")
    assert len(set(every)) == len(every) == 6


def test_an_instance_of_the_second_cluster_is_reconciled_through_its_doors(worlds, pair):
    (first, second), (_, other) = worlds, pair
    del second.tree.nodes[spec_path(other.id)]
    second.brokers.start(4)
    before = dict(first.tree.nodes)
    reconcile.reconcile_all()
    spec = second.tree.spec(other.id)
    assert {broker for route in spec.routes for broker in route.endpoints} == {1, 2, 3, 4}
    assert first.tree.nodes == before
    assert Broker.objects.filter(cluster=first.cluster).count() == 3


def test_a_cluster_that_does_not_answer_keeps_nobody_elses_instances_waiting(worlds, pair):
    (first, second), (_, other) = worlds, pair
    first.tree.away = True
    del second.tree.nodes[spec_path(other.id)]
    reconcile.reconcile_all()
    assert second.tree.spec(other.id)
    changes_prune()


def test_an_unexpected_error_with_one_cluster_ends_no_round_over_the_others(worlds, pair, monkeypatch, clock):
    """What nobody foresaw, of each round that goes over all clusters: of health, of alarms, and of the history."""
    (first, second), (one, other) = worlds, pair
    first.tree.children = unforeseen
    second.brokers.kill(2)
    health_observe(clock=clock)
    assert set(HealthReason.objects.filter(code="route_down").values_list("instance", flat=True)) == {other.id}
    first.master.answers[one.id] = second.master.answers[other.id] = flowing()
    first.master.brokers = unforeseen
    assert list(figures.figures_keep(clock=clock)) == [other.id]
    asked: list[int] = []
    for module, name in ((requests, "_sample_of"), (requests, "_finished"), (lag, "_minute_of"), (looks, "_look_at")):
        monkeypatch.setattr(module, name, partial(of_the_second, first.cluster, asked))
    assert (requests.sample(clock=clock), lag.sample(clock=clock), looks.look(clock=clock)) == (1, 1, 1)
    requests.finish(clock=clock)
    assert asked == [second.cluster.pk] * 4
    for instance in pair:
        alarm_row(instance, f"alm-{instance.id}", watch="health_level", threshold=0.0)
    assert evaluate(clock=clock)["firing"] == 2


def unforeseen(*_arguments, **_options):
    raise KeyError("nobody has thought of it")


def of_the_second(first, asked, cluster, *_more):
    if cluster == first:
        unforeseen()
    asked.append(cluster.pk)
    return 1


def test_whitelists_and_rules_are_written_to_the_instances_own_cluster(worlds, pair, alice):
    (first, second), (_, other) = worlds, pair
    before = dict(first.tree.nodes)
    who = {"organisation": alice.organisation, "actor": "alice", "instance_id": other.id}
    services.instance_whitelist_set(cidrs=["10.0.0.0/8"], **who)
    throttle_rule_create(kind="topic", topics=["orders"], produce_mib_per_s=1.0, **who)
    assert [str(block) for block in second.tree.spec(other.id).whitelist] == ["10.0.0.0/8"]
    assert rules_path(other.id) in second.tree.nodes
    assert first.tree.nodes == before


def test_topics_are_made_and_deleted_on_the_instances_own_cluster(worlds, pair, alice):
    (first, second), (_, other) = worlds, pair
    who = {"organisation": alice.organisation, "actor": "alice", "instance_id": other.id, "name": "orders"}
    topic_create(**who)
    assert (len(first.admin.topics), len(second.admin.topics)) == (0, 1)
    topic_delete(**who)
    assert len(second.admin.topics) == 0


def test_an_instance_is_deleted_from_its_own_cluster(worlds, pair, alice):
    (first, second), (one, other) = worlds, pair
    before = dict(first.tree.nodes)
    operation = lifecycle.instance_delete(organisation=alice.organisation, actor="alice", instance_id=other.id)
    assert run_to_the_end(operation.id).state == "succeeded"
    assert nodes_of(other, second) == []
    assert first.tree.nodes == before
    assert nodes_of(one, first)


def test_each_cluster_has_brokers_of_its_own_although_they_have_the_same_ids(worlds, pair, clock):
    first, second = worlds
    second.brokers.kill(2)
    health_observe(clock=clock)
    away = Broker.objects.filter(away_since__isnull=False)
    assert [(row.cluster, row.broker_id) for row in away] == [(second.cluster, 2)]
    assert [row["is_registered"] for row in brokers_get(first.cluster)] == [True, True, True]
    assert [row["is_registered"] for row in brokers_get(second.cluster)] == [True, False, True]
    healths = health_get(pair, clock=clock)
    assert "route_down" not in [reason.code for reason in healths[pair[0].id].reasons]
    assert "route_down" in [reason.code for reason in healths[pair[1].id].reasons]


def test_a_master_that_is_away_takes_nothing_from_instances_of_another_cluster(worlds, pair, clock):
    (first, second), (one, other) = worlds, pair
    first.master.answers[one.id] = flowing()
    second.master.answers[other.id] = flowing()
    figures.figures_keep(clock=clock)
    second.master.answers.clear()
    found = figures.figures_get(pair, flows_get, clock=clock)
    assert isinstance(found.away, MasterUnavailable)
    assert (list(found.problems), list(found.fresh)) == ([other.id], [one.id])
    assert set(found.documents) == {one.id, other.id}  # the other's are the last known ones
    codes = {
        name: [reason.code for reason in health.reasons] for name, health in health_get(pair, figures=found).items()
    }
    assert codes[one.id] == []
    assert codes[other.id] != []


def test_journals_of_masters_with_the_same_id_are_read_each_from_its_own_position(worlds, monkeypatch, clock):
    journals = {}
    for number, world in enumerate(worlds):
        address = f"http://127.0.0.{number + 1}:1"
        world.tree.put(MASTER_PATH, b'{"id": 1, "report": "127.0.0.1:1", "http": "%s", "epoch": 1}' % address.encode())
        journals[address] = [document(interval(f"ins-{number}", throttled_ms=5))] * (number + 1)
    monkeypatch.setattr(master, "throttled", lambda http, position: (journals[http][position:], len(journals[http])))
    throttling_pull(clock=clock)
    assert [(row.cluster, row.master, row.position) for row in MasterJournal.objects.order_by("cluster")] == [
        (worlds[0].cluster, 1, 1),
        (worlds[1].cluster, 1, 2),
    ]
    assert set(RecordedInterval.objects.values_list("instance", flat=True)) == {"ins-0", "ins-1"}


def test_the_fleet_page_shows_each_cluster_and_says_which_does_not_answer(worlds, pair):
    worlds[1].tree.away = True
    at_staff = Client()
    at_staff.force_login(accounts.admin_ensure(email="admin@example.com", password=None)[0])
    page = at_staff.get("/fleet").content.decode()
    assert page.index("Cluster default") < page.index("Cluster second") < page.index("does not answer")


def test_a_process_has_a_connection_and_a_client_for_each_cluster(worlds, monkeypatch, settings, tmp_path):
    first, second = (world.cluster.address for world in worlds)
    secrets = tmp_path / "secrets.json"
    secrets.write_text('{"cluster_secret": "s"}')
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, secrets_file=secrets)
    monkeypatch.setattr(zookeeper, "_connections", {})
    monkeypatch.setattr(zookeeper, "KazooTree", Connection)
    assert REAL_CONNECTION(first) is REAL_CONNECTION(first)
    assert REAL_CONNECTION(second) is not REAL_CONNECTION(first)
    assert REAL_CONNECTION(second).hosts == "second:2181/kafka"
    assert REAL_CONNECTION(second).access == access_by_secret(("s",), Party.CONTROL_PLANE)
    monkeypatch.setattr(client, "_clients", {})
    monkeypatch.setattr(client, "KafkaAdmin", lambda _bootstrap, who: SimpleNamespace(who=who))
    made = REAL_ADMIN(first)
    assert REAL_ADMIN(second) is not made
    client.forget(second, made)  # another cluster's: nothing is forgotten
    assert REAL_ADMIN(first) is made
    client.forget(first, made)
    assert (os.getpid(), first) not in client._clients


class Connection:
    def __init__(self, hosts, access):
        self.hosts, self.access = hosts, access

    def wait_connected(self, timeout_s):
        pass


def test_two_clusters_cannot_have_one_zookeeper(worlds):
    with pytest.raises(IntegrityError), transaction.atomic():
        PhysicalCluster.objects.create(name="third", zookeeper_hosts="second:2181/kafka")
    with pytest.raises(IntegrityError), transaction.atomic():
        PhysicalCluster.objects.create(name="third")
