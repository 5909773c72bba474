"""Operators see, register and change clusters by REST, and say of which one they speak where there are several."""

from __future__ import annotations

import pytest

from controlplane.admission.models import ClusterRoom
from controlplane.clusters import zookeeper
from controlplane.clusters.models import Broker, ClusterEvent, PhysicalCluster
from controlplane.rebalancing.models import Rebalance
from tests.controlplane.conftest import WANTED
from tests.controlplane.fakes import FakeTree
from tests.controlplane.test_instances_api import URL, problem

CLUSTERS, ZONES = "/api/v1/clusters", "/api/v1/zones"
SECOND = {"name": "second", "zookeeper_hosts": "z1:2181/kafka", "zones": ["b"], "capacity": 40}
ROOM = {"resource": "storage_gib", "per_broker": 10, "overcommit": 1, "reason": "x"}


@pytest.fixture
def second(operator, tree):
    """Registered while no broker of it runs."""
    answer = operator.api.post(CLUSTERS, SECOND)
    assert answer.status_code == 201, answer.content
    return PhysicalCluster.objects.get(name="second")


def test_a_cluster_is_registered_and_shown_with_what_it_has(operator, instance, monkeypatch):
    monkeypatch.setattr(zookeeper, "tree", lambda _cluster: FakeTree())  # another one's, without brokers
    made = operator.api.post(CLUSTERS, SECOND)
    assert made.status_code == 201
    assert {name: made.json()[name] for name in ("name", "state", "zones", "capacity", "instances", "brokers")} == {
        "name": "second", "state": "open", "zones": ["b"], "capacity": 40, "instances": 0, "brokers": 0,
    }  # fmt: skip
    listed = operator.api.get(CLUSTERS).json()["items"]
    assert [(each["name"], each["instances"], each["brokers"], each["brokers_there"]) for each in listed] == [
        ("default", 1, 3, 3), ("second", 0, 0, 0),
    ]  # fmt: skip
    of_instances = next(each for each in listed[0]["resources"] if each["resource"] == "instances")
    assert of_instances == {"resource": "instances", "capacity": 500, "sold": 1, "percent": 0}


def test_the_brokers_of_a_cluster_that_is_known_are_not_registered_under_another_name(operator, instance):
    """The fake ZooKeeper is one for all: what is registered there is the default cluster's."""
    problem(operator.api.post(CLUSTERS, SECOND), 409, "already_exists")


@pytest.mark.parametrize(
    ("wrong", "field"),
    [({"name": "Second"}, "name"), ({"zookeeper_hosts": "z1"}, "zookeeper_hosts"), ({"zones": ["a b"]}, "zones"),
     ({"capacity": -1}, "capacity"), ({"size": 1}, "size")],
)  # fmt: skip
def test_what_is_wrong_is_named(operator, wrong, field):
    answer = problem(operator.api.post(CLUSTERS, SECOND | wrong), 400, "invalid")
    assert answer["errors"][0]["field"].startswith(field)


def test_a_cluster_is_cordoned_and_opened_again_and_it_is_on_record(operator, second):
    path = f"{CLUSTERS}/second"
    for state in ("cordoned", "draining", "open"):
        answer = operator.api.patch(path, {"state": state, "reason": f"to {state}"})
        assert (answer.status_code, answer.json()["state"]) == (200, state)
    events = operator.api.get(f"{path}/events").json()
    assert [(each["action"], each["reason"]) for each in events] == [
        ("change", "to open"), ("change", "to draining"), ("change", "to cordoned"), ("register", ""),
    ]  # fmt: skip
    assert events[0]["changes"] == {"state": {"from": "draining", "to": "open"}}
    assert events[0]["actor"] == operator.user.email
    problem(operator.api.patch(path, {"state": "open"}), 400, "invalid")
    problem(operator.api.patch(path, {"reason": "x"}), 400, "invalid")
    assert ClusterEvent.objects.count() == 4


def test_what_has_to_leave_is_listed_with_the_way_to_do_it(operator, second, instance):
    operator.api.patch(f"{CLUSTERS}/default", {"state": "draining", "reason": "old machines"})
    shown = operator.api.get(f"{CLUSTERS}/default/leaving").json()
    assert (shown["cluster"], shown["state"]) == ("default", "draining")
    (left,) = shown["instances"]
    assert (left["instance_id"], left["destination"], left["obstacle"]) == (instance.id, "second", None)
    assert "Nothing is moved by itself" in shown["how"]
    operator.api.patch(f"{CLUSTERS}/second", {"state": "cordoned", "reason": "x"})
    (left,) = operator.api.get(f"{CLUSTERS}/default/leaving").json()["instances"]
    assert (left["destination"], left["obstacle"]) == (None, "closed")


@pytest.mark.parametrize("path", ["", "/default", "/default/events", "/default/leaving"])
def test_clusters_are_for_operators(alice, instance, path):
    problem(alice.api.get(f"{CLUSTERS}{path}"), 403, "forbidden")
    problem(alice.api.post(f"{CLUSTERS}{path}", SECOND), 403, "forbidden")


def test_a_cluster_that_is_not_there_is_not_found(operator, instance):
    for path in ("", "/events", "/leaving"):
        problem(operator.api.get(f"{CLUSTERS}/other{path}"), 404, "not_found")


def test_tenants_see_zones_and_nothing_else_of_clusters(alice, operator, second):
    PhysicalCluster.objects.filter(name="default").update(zones=["a"], state="cordoned")
    shown = alice.api.get(ZONES)
    assert shown.json() == {"items": [{"name": "a", "takes_new": False}, {"name": "b", "takes_new": True}]}
    assert "second" not in shown.content.decode()


def test_where_there_is_one_cluster_nobody_names_it(operator, instance):
    assert operator.api.get("/api/v1/capacity").json()["cluster"] == "default"
    assert operator.api.put("/api/v1/capacity", ROOM).json()["cluster"] == "default"


def brokers_there(cluster):
    for broker in (1, 2, 3):
        Broker.objects.create(cluster=cluster, broker_id=broker, host=cluster.name, port=9000 + broker)


class TestOfSeveral:
    def test_capacity_is_of_the_one_that_is_named(self, operator, second):
        refused = problem(operator.api.put("/api/v1/capacity", ROOM), 400, "invalid")
        assert refused["errors"][0]["field"] == "cluster"
        assert not ClusterRoom.objects.exists()
        assert operator.api.put("/api/v1/capacity?cluster=second", ROOM).json()["cluster"] == "second"
        assert ClusterRoom.objects.get().cluster == second
        assert operator.api.get("/api/v1/capacity?cluster=default").json()["cluster"] == "default"
        problem(operator.api.get("/api/v1/capacity"), 400, "invalid")
        problem(operator.api.get("/api/v1/capacity?cluster=other"), 404, "not_found")

    def test_a_rebalance_is_of_the_one_that_is_named(self, operator, second):
        problem(operator.api.post("/api/v1/rebalances", {}), 400, "invalid")
        problem(operator.api.post("/api/v1/rebalances", {"cluster": "other"}), 400, "invalid")
        made = operator.api.post("/api/v1/rebalances", {"cluster": "second"})
        assert (made.status_code, made.json()["cluster"]) == (202, "second")
        assert Rebalance.objects.get().cluster == second
        problem(operator.api.get("/api/v1/balance"), 400, "invalid")

    def test_instances_are_bought_on_either(self, alice, operator, second):
        PhysicalCluster.objects.update(capacity=500)
        for cluster in PhysicalCluster.objects.all():
            brokers_there(cluster)
        for number in range(2):
            assert alice.api.post(URL, {**WANTED, "name": f"n{number}"}).status_code == 202
        homes = {each["instances"] for each in operator.api.get(CLUSTERS).json()["items"]}
        assert homes == {1}

    def test_where_no_broker_runs_nothing_is_bought_before_all_others_are_full(self, alice, operator, second):
        default = PhysicalCluster.objects.get(name="default")
        brokers_there(default)
        PhysicalCluster.objects.filter(pk=default.pk).update(capacity=2)
        for number in range(3):
            assert alice.api.post(URL, {**WANTED, "name": f"n{number}"}).status_code == 202
        assert [each["instances"] for each in operator.api.get(CLUSTERS).json()["items"]] == [2, 1]
