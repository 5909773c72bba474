"""Maps of heat and the page of a broker: what they show, that few questions are enough, and 500 instances on 50 brokers."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.clusters.models import Broker, BrokerAbsence, PhysicalCluster
from controlplane.clusters.services import cluster_ensure
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.fleet.models import BrokerSample
from controlplane.history.models import Minute, RequestSample
from controlplane.history.requests.sampling import broker_name
from controlplane.instances.models import Instance
from controlplane.quotas.figures import figures_keep
from tests.controlplane.alarms.rows import absence
from tests.controlplane.fleet.test_sampling import told
from tests.controlplane.history.conftest import counts_of, keep_requests, rolled

from .conftest import text_of
from .test_instance_pages import MIB

MOST_QUERIES = 12
MOST_S = 0.3
HEAT = "/fleet/heat"


def sampled(broker, *, minutes=60, cluster=None, **members):
    """A row for each of the last minutes."""
    now = int(time.time()) // 60 * 60
    BrokerSample.objects.bulk_create(
        BrokerSample(
            **{
                "cluster": (cluster or cluster_ensure()).pk, "broker": broker, "at": now - 60 * number, "reporting": True,
                "leaders": 10, "instances": 4, "produce_bytes_per_s": broker * MIB, "consume_bytes_per_s": 0,
                "produce_allocated_bytes_per_s": 10 * MIB, "consume_allocated_bytes_per_s": 10 * MIB,
                "loop_us_per_s": 5000, "disk_bytes": 2**30, "behind": 0, **members,
            }
        )
        for number in range(minutes)
    )  # fmt: skip


def crowd(organisation, flow_master, *, instances, brokers):
    """Running instances, each on every broker, as the master says it."""
    cluster, now = cluster_ensure(), SYSTEM_CLOCK.now()
    for broker in range(1, brokers + 1):
        Broker.objects.get_or_create(cluster=cluster, broker_id=broker, defaults={"host": "h", "port": broker})
    made = Instance.objects.unscoped("a test").bulk_create(
        Instance(
            id=f"ins-{number:08}", organisation=organisation, cluster=cluster, name=f"instance {number}",
            bandwidth_mib_per_s=20, storage_gib=100, partitions=300, state="running", created_at=now,
        )
        for number in range(instances)
    )  # fmt: skip
    for number, each in enumerate(made):
        shares = [
            {
                "broker": broker,
                "leaders": 2,
                "initial_share": 1,
                "flow": (number * broker) % 97 * 1000,
                "allocation": 10**6,
            }
            for broker in range(1, brokers + 1)
        ]
        times = [{"broker": share["broker"], "flow": 1.5} for share in shares]
        flow_master.answers[each.id] = {
            "limit": None, "produce": {"limit": 20 * MIB, "branch": "initial", "brokers": shares},
            "consume": {"limit": 20 * MIB, "branch": "initial", "brokers": shares}, "storage_used_bytes": 10**9,
            "broker_time": {"limit": 600, "branch": "initial", "brokers": times},
        }  # fmt: skip
    flow_master.broker_rows = [told(broker) for broker in range(1, brokers + 1)]
    figures_keep()
    return made


def test_without_samples_it_says_so(at_staff, instance):
    for query in ("", "?of=instances", "?of=now"):
        assert "Nothing is known yet" in text_of(at_staff.get(f"{HEAT}{query}"))


def test_brokers_over_time_are_drawn_and_those_that_have_most_are_named(at_staff, instance):
    for broker in (1, 2, 3):
        sampled(broker)
    page = at_staff.get(HEAT)
    body, text = page.content.decode(), text_of(page)
    assert 'viewBox="0 0 60 3"' in body
    assert "Broker 3 3 MiB/s 3 MiB/s Broker 2 2 MiB/s" in text
    assert 'href="/fleet/clusters/default/brokers/3"' in body
    assert "<title>Broker 3: 3 MiB/s</title>" in body


@pytest.mark.parametrize(
    ("measure", "said"),
    [("allocation", "30 %"), ("loop", "5 ms/s"), ("leaders", "10"), ("disk", "1 GiB"), ("skew", "50 %"), ("isr", "0")],
)
def test_each_measure_has_its_unit(at_staff, instance, measure, said):
    for broker in (1, 2, 3):
        sampled(broker)
    text = text_of(at_staff.get(f"{HEAT}?measure={measure}"))
    assert f"Broker 3 {said}" in text


def test_replicas_that_are_not_in_sync_are_trouble_however_short(at_staff, instance):
    sampled(1, minutes=1, behind=4)
    page = at_staff.get(f"{HEAT}?measure=isr&range=24h")
    assert 'class="heat trouble"' in page.content.decode()
    assert "Broker 1 4 4" in text_of(page), "the largest of a step, not its average"


def test_each_cluster_has_a_map(at_staff, instance):
    second = PhysicalCluster.objects.create(name="second", zookeeper_hosts="z:2181")
    sampled(1)
    sampled(1, cluster=second, produce_bytes_per_s=9 * MIB)
    assert "Broker 1 1 MiB/s" in text_of(at_staff.get(HEAT))
    page = at_staff.get(f"{HEAT}?cluster=second")
    assert "Broker 1 9 MiB/s" in text_of(page)
    assert "cluster=second" in page.content.decode()
    assert at_staff.get(f"{HEAT}?cluster=other").status_code == 404


def test_what_is_asked_and_is_not_there_is_the_first_that_there_is(at_staff, instance):
    assert at_staff.get(f"{HEAT}?of=x&measure=y&range=z").status_code == 200


def test_instances_over_time_come_from_their_history(at_staff, instance):
    at = int(time.time()) // 60 * 60 - 120
    Minute.objects.bulk_create([rolled(Minute, at - 60 * number, instance.id) for number in range(10)])
    page = at_staff.get(f"{HEAT}?of=instances")
    assert "events" in text_of(page)
    assert f'href="/fleet/instances/{instance.id}"' in page.content.decode()


def test_instances_by_broker_are_as_the_master_said_last(at_staff, alice, flow_master):
    crowd(alice.organisation, flow_master, instances=3, brokers=4)
    page = at_staff.get(f"{HEAT}?of=now")
    body = page.content.decode()
    assert 'viewBox="0 0 4 3"' in body
    assert body.index("instance 2:") < body.index("instance 1:"), "those that have most come first"
    assert "As the flow master said it" in text_of(page)
    cache.clear()
    assert "Nothing is known yet" in text_of(at_staff.get(f"{HEAT}?of=now"))


def test_the_page_of_a_broker_has_its_measures_instances_and_absences(at_staff, alice, brokers, flow_master):
    crowd(alice.organisation, flow_master, instances=3, brokers=3)
    sampled(1)
    BrokerAbsence.objects.create(cluster=cluster_ensure(), broker_id=1, began_at=SYSTEM_CLOCK.now())
    text = text_of(at_staff.get("/fleet/clusters/default/brokers/1"))
    for measure in ("Flow", "Allocation used", "Broker time", "Leaders", "Disk", "Replicas not in sync"):
        assert measure in text
    assert "instance 2" in text
    assert "It still is" in text
    assert "Reporting" in text


def test_a_broker_that_is_not_there_is_not_found(at_staff, instance):
    assert at_staff.get("/fleet/clusters/default/brokers/77").status_code == 404
    assert at_staff.get("/fleet/clusters/other/brokers/1").status_code == 404


def test_nobody_else_sees_them(at_alice, instance):
    for path in (HEAT, "/fleet/clusters/default/brokers/1"):
        assert at_alice.client.get(path).status_code == 404


PAGES = [
    HEAT, f"{HEAT}?range=24h&measure=skew", f"{HEAT}?of=instances", f"{HEAT}?of=now", f"{HEAT}?of=now&measure=allocation",
    "/fleet/clusters/default/brokers/7?range=24h",
]  # fmt: skip


def cost(at_staff, address):
    at_staff.get(address)  # which compiles templates
    with CaptureQueriesContext(connection) as queries:
        began = time.thread_time()
        page = at_staff.get(address)
        took_s = time.thread_time() - began
    assert page.status_code == 200
    return len(queries), took_s


def test_no_map_asks_more_as_there_is_more(at_staff, alice, flow_master):
    found = []
    for instances, brokers in ((3, 8), (40, 20)):
        Instance.objects.unscoped("a test").all().delete()
        BrokerSample.objects.all().delete()
        crowd(alice.organisation, flow_master, instances=instances, brokers=brokers)
        for broker in range(1, brokers + 1):
            sampled(broker)
        found.append([cost(at_staff, address)[0] for address in PAGES])
    assert found[0] == found[1]
    assert max(found[0][:-1]) <= MOST_QUERIES
    assert found[0][-1] <= 2 * MOST_QUERIES, "seven measures of one broker"


@pytest.mark.long
@pytest.mark.timeout(600)
def test_500_instances_on_50_brokers_are_quick_to_look_at(at_staff, alice, flow_master):
    made = crowd(alice.organisation, flow_master, instances=500, brokers=50)
    for broker in range(1, 51):
        sampled(broker, minutes=24 * 60)
    now = int(time.time()) // 60 * 60
    for number in range(60):
        Minute.objects.bulk_create([rolled(Minute, now - 60 * (number + 1), each.id) for each in made])
    found = {address: cost(at_staff, address) for address in [*PAGES, "/fleet", "/fleet/clusters/default"]}
    for address, (queries, took_s) in found.items():
        print(f"{queries:3} queries {1000 * took_s:6.0f} ms  {address}")
    assert {address: took_s for address, (_, took_s) in found.items() if took_s >= MOST_S} == {}


def test_the_page_of_a_broker_has_what_all_instances_asked_of_it(at_staff, instance, flow_master):
    last = int(SYSTEM_CLOCK.now().timestamp()) // 10 * 10 - 60
    cluster = instance.cluster
    assert "Requests of all instances" not in text_of(at_staff.get("/fleet/clusters/default/brokers/1"))
    counts = counts_of(200, took_us=2_000, errors={"NOT_LEADER_OR_FOLLOWER": 3})
    counts.produced_bytes, counts.carried_windows = 30 * MIB, 1
    RequestSample.objects.create(instance=broker_name(cluster.pk, 1), at=last, windows=1, counts=counts.to_text())
    keep_requests(instance, {}, known_to=last + 10)
    text = text_of(at_staff.get("/fleet/clusters/default/brokers/1"))
    assert "Requests of all instances" in text
    assert "20/s" in text
    assert "3 MiB/s" in text
    assert "Produce latency as a table" in text
    assert "broker of the cluster went away" not in text
    went = datetime.fromtimestamp(last - 120, UTC)
    absence(instance, went, went + timedelta(seconds=30), broker=1)
    absence(instance, went, went + timedelta(seconds=30), broker=2)
    body = at_staff.get("/fleet/clusters/default/brokers/1").content.decode()
    assert body.count('"kind": "failover"') == 4, "a mark in each chart, of this broker alone"
    assert at_staff.get("/fleet/clusters/default/brokers/1?range=24h").status_code == 200
