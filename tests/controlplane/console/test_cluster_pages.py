"""Operators register clusters, see how full each is, cordon and drain them, and say which one they mean."""

from __future__ import annotations

import pytest

from controlplane.admission.models import ClusterRoom
from controlplane.clusters import zookeeper
from controlplane.clusters.models import ClusterEvent, PhysicalCluster
from tests.controlplane.fakes import FakeTree

from .conftest import text_of

REGISTER = {
    "name": "second",
    "zookeeper_hosts": "z1:2181/kafka",
    "zones": "eu-1b eu-1a",
    "capacity": "40",
    "reason": "",
}


@pytest.fixture
def second(instance):
    return PhysicalCluster.objects.create(name="second", zookeeper_hosts="z1:2181", zones=["eu-1a"])


def changed(state, reason="x", **members):
    return {"state": state, "zones": "", "capacity": "500", "reason": reason, **members}


def test_clusters_are_listed_with_what_is_sold(at_staff, second):
    text = text_of(at_staff.get("/fleet/clusters"))
    assert "default Open \N{EN DASH} 3 1 of 500" in text
    assert "second Open eu-1a 0 0 of 500" in text


def test_a_cluster_is_registered(at_staff, instance, monkeypatch):
    monkeypatch.setattr(zookeeper, "tree", lambda _cluster: FakeTree())
    page = at_staff.post("/fleet/clusters", REGISTER)
    assert (page.status_code, page["Location"]) == (302, "/fleet/clusters/second")
    made = PhysicalCluster.objects.get(name="second")
    assert (made.zones, made.capacity) == (["eu-1a", "eu-1b"], 40)
    assert ClusterEvent.objects.get(cluster=made).actor == "admin@example.com"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"name": "Second"}, "Must begin with a lower-case letter"), ({"zones": "a!"}, "Must hold names"),
     ({"zookeeper_hosts": "nowhere"}, "Must be host:port"), ({"name": "default"}, "There is a cluster default already.")],
)  # fmt: skip
def test_what_cannot_be_registered_is_said(at_staff, instance, wrong, said):
    page = at_staff.post("/fleet/clusters", REGISTER | wrong)
    assert page.status_code == 422
    assert said in text_of(page)


def test_a_cluster_is_cordoned_with_a_reason(at_staff, instance):
    assert at_staff.post("/fleet/clusters/default", changed("cordoned", reason="")).status_code == 422
    assert at_staff.post("/fleet/clusters/default", changed("cordoned", reason="old machines")).status_code == 302
    text = text_of(at_staff.get("/fleet/clusters/default"))
    assert "State: open → cordoned" in text
    assert "admin@example.com old machines" in text
    assert "Broker 1" in text
    assert "Still to be moved" not in text


def test_nothing_is_written_where_nothing_changes(at_staff, instance):
    assert at_staff.post("/fleet/clusters/default", changed("open")).status_code == 302
    assert not ClusterEvent.objects.exists()


def test_what_has_to_leave_a_cluster_is_listed_and_where_it_could_go(at_staff, second, instance):
    at_staff.post("/fleet/clusters/default", changed("draining"))
    text = text_of(at_staff.get("/fleet/clusters/default"))
    assert "Still to be moved" in text
    assert "Nothing is moved by itself" in text
    assert f"events {instance.id} alice's 5 MiB/s 10 GiB second" in text
    at_staff.post("/fleet/clusters/second", changed("cordoned"))
    assert "No other cluster takes new instances." in text_of(at_staff.get("/fleet/clusters/default"))


def test_a_cluster_with_instances_is_not_retired_and_one_that_is_is_not_asked(at_staff, second, instance, monkeypatch):
    page = at_staff.post("/fleet/clusters/default", changed("retired"))
    assert page.status_code == 422
    assert "Instances that are on it: 1." in text_of(page)
    assert at_staff.post("/fleet/clusters/second", changed("retired")).status_code == 302
    monkeypatch.setattr(zookeeper, "tree", lambda _cluster: pytest.fail("it was asked"))
    text = text_of(at_staff.get("/fleet/clusters/second"))
    assert "Retired" in text
    assert "No broker has registered" not in text
    assert "second Retired" in text_of(at_staff.get("/fleet/clusters"))


def test_brokers_of_one_cluster_come_again_by_themselves(at_staff, second):
    page = at_staff.get("/fleet/clusters/default").content.decode()
    assert 'hx-get="/fleet/brokers?cluster=default"' in page
    part = at_staff.get("/fleet/brokers?cluster=default").content.decode()
    assert 'hx-get="/fleet/brokers?cluster=default"' in part
    assert "Cluster second" not in part
    assert at_staff.get("/fleet/brokers?cluster=other").status_code == 404
    assert at_staff.get("/fleet/clusters/other").status_code == 404


def test_capacity_is_of_the_cluster_that_is_chosen(at_staff, second):
    room = {"resource": "storage_gib", "per_broker": "7", "overcommit": "1", "reason": "x"}
    page = at_staff.get("/fleet/capacity").content.decode()
    assert 'href="?cluster=second"' in page
    answer = at_staff.post("/fleet/capacity?cluster=second", room)
    assert (answer.status_code, answer["Location"]) == (302, "/fleet/capacity?cluster=second")
    assert ClusterRoom.objects.get().cluster == second
    assert "sold of the cluster “second” with its 1 broker" in text_of(at_staff.get("/fleet/capacity?cluster=second"))
    assert at_staff.get("/fleet/capacity?cluster=other").status_code == 404


def test_with_one_cluster_there_is_nothing_to_choose(at_staff, instance):
    assert "?cluster=" not in at_staff.get("/fleet/capacity").content.decode()


def test_nobody_else_sees_them(at_alice, instance):
    for path in ("/fleet/clusters", "/fleet/clusters/default"):
        assert at_alice.client.get(path).status_code == 404
        assert at_alice.client.post(path, changed("draining")).status_code == 404
