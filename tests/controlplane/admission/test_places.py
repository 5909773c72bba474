"""Buying where there are several clusters: by free capacity and as the tenant wishes; and what has to leave one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controlplane.admission import places, purchases, services
from controlplane.admission.metrics import clusters_text
from controlplane.clusters.models import Broker, PhysicalCluster
from controlplane.clusters.services import cluster_ensure
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import ClusterFull, Invalid, NoPlace
from controlplane.instances.models import Instance
from tests.controlplane.conftest import WANTED
from tests.controlplane.test_instances_api import URL, problem


@pytest.fixture
def clusters(db):
    """Three, each with three brokers: the default one in zone a, one in a and b, one in c."""
    made = {"default": cluster_ensure()}
    for number, name in enumerate(("second", "third")):
        made[name] = PhysicalCluster.objects.create(name=name, zookeeper_hosts=f"z{number}:2181")
    for (name, row), zones in zip(made.items(), (["a"], ["a", "b"], ["c"]), strict=True):
        PhysicalCluster.objects.filter(pk=row.pk).update(zones=zones)
        for broker in (1, 2, 3):
            Broker.objects.create(cluster=row, broker_id=broker, host=name, port=9000 + broker)
    return made


def bought(person, **members):
    instance, _ = purchases.instance_buy(organisation=person.organisation, actor="a", **{**WANTED, **members})
    return instance


def on(clusters):
    """How many instances are on each."""
    rows = Instance.objects.unscoped("a test").exclude(state="deleted")
    return {name: rows.filter(cluster=row).count() for name, row in clusters.items()}


def set_state(row, state):
    PhysicalCluster.objects.filter(pk=row.pk).update(state=state)


def test_clusters_fill_up_evenly(alice, clusters):
    for number in range(7):
        bought(alice, name=f"n{number}")
    assert on(clusters) == {"default": 3, "second": 2, "third": 2}


def test_a_cluster_with_more_to_sell_gets_more(alice, clusters):
    for name, factor in (("default", 1.0), ("second", 3.0), ("third", 1.0)):
        services.room_set(
            cluster=clusters[name], actor="o", resource="bandwidth_mib_per_s", per_broker=5, overcommit=factor, reason="x"
        )  # fmt: skip
    for number in range(10):
        bought(alice, name=f"n{number}")
    assert on(clusters) == {"default": 2, "second": 6, "third": 2}


def test_200_instances_are_placed_on_two_clusters_and_one_is_drained(alice, clusters, installed):
    installed(caps={"instances": 1000, "bandwidth_mib_per_s": 10_000, "storage_gib": 100_000, "partitions": 100_000,
                    "price_per_month": 10_000_000})  # fmt: skip
    set_state(clusters["third"], "cordoned")
    for number in range(200):
        bought(alice, name=f"n{number}")
    assert on(clusters) == {"default": 100, "second": 100, "third": 0}
    set_state(clusters["default"], "draining")
    set_state(clusters["third"], "open")
    left = places.leaving(clusters["default"])
    assert len(left) == 100
    assert {each.destination.name for each in left} == {"third"}, "it has sold nothing yet"
    assert bought(alice, name="later").cluster.name == "third"
    assert on(clusters)["default"] == 100


def test_nothing_is_placed_on_a_cluster_that_takes_nothing_new(alice, clusters):
    set_state(clusters["default"], "cordoned")
    set_state(clusters["second"], "draining")
    assert {bought(alice, name=f"n{number}").cluster.name for number in range(3)} == {"third"}
    set_state(clusters["third"], "cordoned")
    with pytest.raises(NoPlace, match="no cluster takes new instances at present"):
        bought(alice)


def test_what_is_there_may_grow_whatever_its_clusters_state(alice, clusters):
    instance = bought(alice)
    set_state(instance.cluster, "draining")
    purchases.instance_change(
        organisation=alice.organisation, actor="a", instance_id=instance.id, changes={"storage_gib": 20}
    )
    instance.refresh_from_db()
    assert instance.storage_gib == 20


def test_a_zone_is_kept_to_though_others_have_more_room(alice, clusters):
    found = [bought(alice, name=f"n{number}", placement={"zones": ["c"]}) for number in range(3)]
    assert {each.cluster.name for each in found} == {"third"}
    assert found[0].placement == {"zones": ["c"]}
    assert bought(alice, placement={"zones": ["b", "a", "a"]}).cluster.name == "second"


def test_a_zone_that_is_not_there_and_one_whose_clusters_are_closed_are_told_apart(alice, clusters):
    with pytest.raises(Invalid, match=r"there is no zone x; there are a, b, c") as refused:
        bought(alice, placement={"zones": ["x"]})
    assert refused.value.errors[0].field == "placement.zones"
    set_state(clusters["third"], "cordoned")
    with pytest.raises(NoPlace, match="no cluster that takes new instances is in c"):
        bought(alice, placement={"zones": ["c"]})
    with pytest.raises(NoPlace, match="is in a and c"):
        bought(alice, placement={"zones": ["c", "a"]})


def test_an_instance_is_kept_apart_from_others_of_its_tenant(alice, charlie, clusters):
    first = bought(alice)
    second = bought(alice, placement={"apart_from": [first.id]})
    third = bought(alice, placement={"apart_from": [first.id, second.id]})
    assert len({each.cluster_id for each in (first, second, third)}) == 3
    with pytest.raises(NoPlace, match="each cluster that it could be on has one of the instances") as refused:
        bought(alice, placement={"apart_from": [first.id, second.id, third.id]})
    assert refused.value.errors[0].field == "placement.apart_from"
    with pytest.raises(Invalid, match=f"no instance {first.id}"):
        bought(charlie, placement={"apart_from": [first.id]})


def test_a_full_cluster_is_passed_over_and_where_all_are_full_it_is_said_what_is_exceeded(alice, clusters):
    for row in clusters.values():
        services.room_set(cluster=row, actor="o", resource="storage_gib", per_broker=4, overcommit=1, reason="small")
    assert sorted(bought(alice, name=f"n{number}").cluster.name for number in range(3)) == sorted(clusters)
    with pytest.raises(ClusterFull, match="storage: the cluster has 12 GiB"):
        bought(alice)


def test_who_was_faster_sends_the_purchase_to_the_next_cluster(alice, clusters, monkeypatch):
    """The cluster that was chosen is cordoned before its row is locked."""
    set_state(clusters["default"], "cordoned")
    stale = [PhysicalCluster.objects.get(pk=clusters[name].pk) for name in ("default", "second")]
    monkeypatch.setattr(purchases, "clusters_to_try", lambda **_: stale)
    assert bought(alice).cluster.name == "second"
    assert Instance.objects.unscoped("a test").count() == 1, "what was refused was never there"
    monkeypatch.setattr(purchases, "clusters_to_try", lambda **_: stale[:1])
    with pytest.raises(ClusterFull, match="takes no new instances"):
        bought(alice, name="n2")


def test_a_cluster_whose_brokers_are_all_away_comes_last(alice, clusters):
    away = SYSTEM_CLOCK.now() - timedelta(minutes=1)
    Broker.objects.filter(cluster__in=[clusters["default"], clusters["second"]]).update(away_since=away)
    assert {bought(alice, name=f"n{number}").cluster.name for number in range(3)} == {"third"}
    Broker.objects.update(away_since=away)
    assert bought(alice, name="n4").cluster.name == "default"


def test_where_one_cluster_suits_nobody_is_counted(alice, clusters, monkeypatch):
    monkeypatch.setattr(places, "places_of", lambda *_, **__: pytest.fail("counted"))
    assert bought(alice, placement={"zones": ["b"]}).cluster.name == "second"


def test_sizes_that_are_none_are_refused_as_with_one_cluster(alice, clusters):
    with pytest.raises(Invalid) as refused:
        bought(alice, bandwidth_mib_per_s=-1, storage_gib="x", partitions=0)
    assert {each.field for each in refused.value.errors} == {"bandwidth_mib_per_s", "storage_gib", "partitions"}


@pytest.mark.parametrize(
    ("placement", "field"),
    [
        ({"zone": "a"}, "zone"), ({"zones": "a"}, "zones"), ({"zones": [""]}, "zones"), ({"zones": [1]}, "zones"),
        ({"apart_from": ["x"] * 21}, "apart_from"), ({"zones": ["x" * 64]}, "zones"),
    ],
)  # fmt: skip
def test_a_wish_that_is_none_is_refused_by_its_member(alice, clusters, placement, field):
    answer = problem(alice.api.post(URL, {**WANTED, "placement": placement}), 400, "invalid")
    assert any(each["field"].startswith(f"placement.{field}") for each in answer["errors"])


def test_wishes_by_rest_are_kept_and_shown(alice, clusters, brokers):
    made = alice.api.post(URL, {**WANTED, "placement": {"zones": ["c"]}})
    assert made.status_code == 202
    shown = alice.api.get(f"{URL}/{made.json()['id']}").json()
    assert (shown["placement"], shown["zones"]) == ({"zones": ["c"], "apart_from": []}, ["c"])
    refused = problem(alice.api.post(URL, {**WANTED, "placement": {"zones": ["x"]}}), 400, "invalid")
    assert refused["errors"][0]["field"] == "placement.zones"
    set_state(clusters["third"], "cordoned")
    problem(alice.api.post(URL, {**WANTED, "placement": {"zones": ["c"]}}), 409, "no_place")


class TestLeaving:
    def test_the_largest_is_placed_first_and_wishes_are_kept(self, alice, clusters):
        home = clusters["second"]
        small = bought(alice, name="small", cluster=home)
        large = bought(alice, name="large", bandwidth_mib_per_s=50, cluster=home)
        bound = bought(alice, name="bound", cluster=home, placement={"zones": ["b"]})
        left = {each.instance.id: each for each in places.leaving(home)}
        assert next(iter(left)) == large.id
        assert left[bound.id].destination is None
        assert left[bound.id].obstacle == "zones"
        assert left[small.id].destination != left[large.id].destination

    def test_apart_holds_for_both_whoever_has_wished_it(self, alice, clusters):
        first = bought(alice, cluster=clusters["second"])
        bought(alice, cluster=clusters["default"], placement={"apart_from": [first.id]})
        (left,) = places.leaving(clusters["second"])
        assert left.destination.name == "third"

    def test_what_is_being_deleted_goes_by_itself(self, alice, clusters):
        instance = bought(alice)
        Instance.objects.unscoped("a test").filter(pk=instance.pk).update(state="deleting")
        assert places.leaving(instance.cluster) == []

    def test_with_nowhere_to_go_all_is_named(self, alice, db):
        instance = bought(alice)
        (left,) = places.leaving(instance.cluster)
        assert (left.instance, left.destination, left.obstacle) == (instance, None, "closed")


def test_metrics_say_how_much_of_each_is_sold(alice, clusters):
    services.room_set(
        cluster=clusters["default"], actor="o", resource="storage_gib", per_broker=10, overcommit=1, reason="small"
    )
    bought(alice, cluster=clusters["default"])
    set_state(clusters["second"], "cordoned")
    set_state(clusters["third"], "retired")
    text = clusters_text()
    assert 'sluice_cluster_sold_percent{cluster="default",resource="storage_gib"} 33' in text
    assert 'sluice_cluster_sold_percent{cluster="second",resource="storage_gib"} 0' in text
    assert 'sluice_cluster_takes_new{cluster="default"} 1' in text
    assert 'sluice_cluster_takes_new{cluster="second"} 0' in text
    assert "third" not in text


def test_three_questions_however_many_clusters(alice, clusters, django_assert_num_queries):
    bought(alice)
    rows = list(PhysicalCluster.objects.all())
    with django_assert_num_queries(3):
        found = places.places_of(rows)
    assert [place.instances for place in found] == [1, 0, 0]
    assert found[0].fullest[0] in found[0].capacity
