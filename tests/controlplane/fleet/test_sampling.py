"""Each minute a row of each broker, of what is known already; a gap where nothing is; forgotten after a day."""

from __future__ import annotations

import pytest
from django.core.cache import cache

from controlplane.clusters.models import PhysicalCluster
from controlplane.clusters.services import cluster_ensure
from controlplane.fleet import services
from controlplane.fleet.models import BrokerSample
from controlplane.quotas.figures import figures_keep
from controlplane.rebalancing.kept import _key
from tests.controlplane.console.test_instance_pages import MIB, flowing


def told(broker, *, flow=MIB, **members):
    return {
        "broker": broker,
        "reporting": True,
        "instances": 4,
        "leaders": 10 * broker,
        "produce": {"flow": flow, "allocation": 2 * flow},
        "consume": {"flow": 0, "allocation": 3 * flow},
        **members,
    }


@pytest.fixture
def reporting(instance, flow_master, clock):
    """Two brokers; of the second two replicas are behind."""
    flow_master.broker_rows = [told(1), told(2, missing={"replicas_behind": 2}, reporting=False)]
    document = flowing(produce=MIB)
    document["broker_time"] = {"limit": 600, "brokers": [{"broker": 1, "flow": 12.5, "allocation": 300}]}
    flow_master.answers[instance.id] = document
    figures_keep(clock=clock)
    return flow_master


def seen(cluster, clock, **disks):
    brokers = [
        {"broker": int(name[1:]), "away": False, "loads": {"disk": size}} for name, size in disks.items()
    ]  # fmt: skip
    cache.set(_key(cluster), {"at": clock.now(), "document": {"brokers": brokers}})


def test_a_sample_has_what_the_master_said_and_how_full_disks_were(reporting, clock):
    seen(cluster_ensure(), clock, b1=77)
    assert services.sample(clock=clock) == 2
    one, two = BrokerSample.objects.order_by("broker")
    assert (one.leaders, one.instances, one.reporting) == (10, 4, True)
    assert (one.produce_bytes_per_s, one.produce_allocated_bytes_per_s) == (MIB, 2 * MIB)
    assert (one.consume_bytes_per_s, one.consume_allocated_bytes_per_s) == (0, 3 * MIB)
    assert (one.loop_us_per_s, one.disk_bytes, one.behind) == (12_500, 77, 0)
    assert (two.behind, two.disk_bytes, two.reporting) == (2, None, False)
    assert one.at % 60 == 0


def test_a_minute_has_one_sample_however_often_it_is_taken(reporting, clock):
    assert [services.sample(clock=clock) for _ in range(3)] == [2, 0, 0]
    clock.advance(60)
    figures_keep(clock=clock)
    assert services.sample(clock=clock) == 2
    assert BrokerSample.objects.count() == 4


def test_where_no_master_was_heard_lately_there_is_a_gap(reporting, clock):
    clock.advance(91)
    assert services.sample(clock=clock) == 0
    assert not BrokerSample.objects.exists()


def test_a_broker_of_which_the_master_says_nothing_legible_costs_the_others_nothing(reporting, clock):
    reporting.broker_rows = [told(1), {"broker": 2}]
    figures_keep(clock=clock)
    assert services.sample(clock=clock) == 1


def test_brokers_of_two_clusters_with_the_same_ids_have_rows_of_their_own(reporting, clock):
    second = PhysicalCluster.objects.create(name="second", zookeeper_hosts="z:2181")
    figures_keep(clock=clock)
    assert services.sample(clock=clock) == 4
    assert set(BrokerSample.objects.values_list("cluster", "broker")) == {
        (cluster_ensure().pk, 1), (cluster_ensure().pk, 2), (second.pk, 1), (second.pk, 2),
    }  # fmt: skip


def test_how_full_disks_were_long_ago_is_not_said_of_now(reporting, clock):
    seen(cluster_ensure(), clock, b1=77)
    clock.advance(601)
    figures_keep(clock=clock)
    services.sample(clock=clock)
    assert BrokerSample.objects.get(broker=1).disk_bytes is None


def test_what_nobody_can_ask_for_is_forgotten(reporting, clock):
    services.sample(clock=clock)
    clock.advance(services.KEPT_S - 120)
    services.purge(clock=clock)
    assert BrokerSample.objects.count() == 2
    clock.advance(240)
    services.purge(clock=clock)
    assert not BrokerSample.objects.exists()
