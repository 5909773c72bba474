"""Where a new instance goes is asked for only where there is a choice."""

from __future__ import annotations

import pytest

from controlplane.clusters.models import PhysicalCluster
from controlplane.clusters.services import cluster_ensure
from controlplane.instances.models import Instance

from .conftest import text_of

NEW = "instances/new"
BOUGHT = {"name": "orders", "bandwidth_mib_per_s": "5", "storage_gib": "10", "partitions": "60", "whitelist": ""}


@pytest.fixture
def second(db):
    PhysicalCluster.objects.filter(pk=cluster_ensure().pk).update(zones=["a"])
    return PhysicalCluster.objects.create(name="second", zookeeper_hosts="second:2181", zones=["b"])


def bought():
    return Instance.objects.unscoped("a test").select_related("cluster").get(name="orders")


def test_with_one_cluster_in_no_zone_nothing_is_asked(at_alice, instance):
    page = at_alice.get(NEW).content.decode()
    assert 'name="zones"' not in page
    assert 'name="apart_from"' not in page
    assert at_alice.post(NEW, {**BOUGHT, "zones": "b", "apart_from": instance.id}).status_code == 302
    assert bought().placement == {}, "what is not asked for is not taken"


def test_a_zone_is_chosen(at_alice, second):
    assert 'value="b"' in at_alice.get(NEW).content.decode()
    assert at_alice.post(NEW, {**BOUGHT, "zones": "b"}).status_code == 302
    assert (bought().cluster, bought().placement) == (second, {"zones": ["b"]})


def test_zones_of_clusters_that_take_nothing_new_are_not_offered(at_alice, second):
    PhysicalCluster.objects.filter(pk=second.pk).update(state="draining")
    assert 'value="b"' not in at_alice.get(NEW).content.decode()
    page = at_alice.post(NEW, {**BOUGHT, "zones": "b"})
    assert page.status_code == 422


def test_a_wish_that_nobody_fulfils_is_said_beside_it(at_alice, instance, second):
    page = at_alice.post(NEW, {**BOUGHT, "zones": "a", "apart_from": instance.id})
    assert page.status_code == 422
    assert "Each cluster that it could be on has one of the instances that it is to be apart from" in text_of(page)
    page = at_alice.post(NEW, {**BOUGHT, "zones": ["a", "b"]})
    assert "No cluster that takes new instances is in a and b." in text_of(page)


def test_it_is_kept_apart_from_one_of_its_tenants_alone(at_alice, at_charlie, instance, second):
    assert instance.id in at_alice.get(NEW).content.decode()
    assert instance.id not in at_charlie.get(NEW).content.decode()
    assert at_charlie.post(NEW, {**BOUGHT, "name": "his own"}).status_code == 302  # from now on he is asked
    assert at_charlie.post(NEW, {**BOUGHT, "apart_from": instance.id}).status_code == 422
    assert at_alice.post(NEW, {**BOUGHT, "apart_from": instance.id}).status_code == 302
    assert bought().cluster == second
