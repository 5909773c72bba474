"""Every ten seconds one row of each instance, whatever is the matter with others, and none where nothing is known."""

from __future__ import annotations

import json
import logging
from copy import deepcopy

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.clusters.services import cluster_ensure
from controlplane.history import services
from controlplane.history.models import Sample
from controlplane.history.rows import figures_of
from controlplane.instances.models import Instance
from controlplane.quotas.figures import figures_get
from controlplane.quotas.selectors import flows_get
from quota.master.service import Service
from quota.master.views import allocations_document
from tests.controlplane.console.test_instance_pages import flowing, share
from tests.quota.samples import INSTANCE, flow, report, spec

from .conftest import MIB, NOON

GIB = 2**30


@pytest.fixture
def crowd(alice, flow_master, clock):
    """Running instances as rows, which the master knows."""

    def make(count, *, first=0):
        cluster = cluster_ensure()
        made = Instance.objects.unscoped("a test").bulk_create(
            Instance(
                id=f"ins-{number:08}", organisation=alice.organisation, cluster=cluster, name=f"n{number}",
                bandwidth_mib_per_s=5, storage_gib=10, partitions=60, state="running", created_at=clock.now(),
            )
            for number in range(first, first + count)
        )  # fmt: skip
        flow_master.answers |= {each.id: flowing() for each in made}
        return [each.id for each in made]

    return make


def test_a_sample_has_what_the_master_says_and_what_was_bought(instance, flow_master, at_noon):
    document = flowing(produce=3 * MIB)
    document["produce"]["brokers"].append(share(2, MIB // 2, 2 * MIB))
    flow_master.answers[instance.id] = document
    at_noon.advance(7.9)
    assert services.sample(clock=at_noon) == 1
    row = Sample.objects.values().get()
    assert row == {
        "instance": instance.id,
        "at": NOON,
        "produce_bytes_per_s": 3 * MIB + MIB // 2,
        "produce_limit_bytes_per_s": 5 * MIB,
        "produce_allocated_bytes_per_s": 7 * MIB,
        "consume_bytes_per_s": 0,
        "consume_limit_bytes_per_s": 5 * MIB,
        "consume_allocated_bytes_per_s": 5 * MIB,
        "storage_used_bytes": 3 * GIB,
        "storage_limit_bytes": 10 * GIB,
        "connections": 7,
    }


def test_unlimited_is_no_number(instance, flow_master, at_noon):
    document = flowing()
    document["produce"] |= {"limit": None, "brokers": [share(1, MIB, None)]}
    flow_master.answers[instance.id] = document
    services.sample(clock=at_noon)
    row = Sample.objects.get()
    assert (row.produce_limit_bytes_per_s, row.produce_allocated_bytes_per_s, row.produce_bytes_per_s) == (
        None, None, MIB,
    )  # fmt: skip


def test_ten_seconds_have_one_sample_however_often_it_is_taken(instance, flow_master, at_noon):
    flow_master.answers[instance.id] = flowing(produce=MIB)
    services.sample(clock=at_noon)
    flow_master.answers[instance.id] = flowing(produce=2 * MIB)
    asked = flow_master.asked
    at_noon.advance(9)
    assert services.sample(clock=at_noon) == 0
    assert flow_master.asked == asked
    at_noon.advance(1)
    services.sample(clock=at_noon)
    assert list(Sample.objects.order_by("at").values_list("at", "produce_bytes_per_s")) == [
        (NOON, MIB), (NOON + 10, 2 * MIB),
    ]  # fmt: skip


def test_of_two_workers_at_once_the_first_one_counts(instance, flow_master, at_noon, monkeypatch):
    flow_master.answers[instance.id] = flowing(produce=MIB)
    ask = services.figures_keep

    def other_worker_is_quicker(*, clock):
        with monkeypatch.context() as patched:
            patched.setattr(services, "figures_keep", ask)
            services.sample(clock=clock)
        flow_master.answers[instance.id] = flowing(produce=2 * MIB)
        return ask(clock=clock)

    monkeypatch.setattr(services, "figures_keep", other_worker_is_quicker)
    services.sample(clock=at_noon)
    assert Sample.objects.get().produce_bytes_per_s == MIB


def test_without_a_master_there_is_no_row(instance, flow_master, at_noon):
    services.sample(clock=at_noon)
    assert not Sample.objects.exists()


def test_a_master_that_has_just_taken_over_has_nothing_to_say_yet(instance, flow_master, at_noon):
    flow_master.answers[instance.id] = flowing() | {"learning": True}
    assert services.sample(clock=at_noon) == 0
    flow_master.answers[instance.id] = flowing() | {"learning": False}
    assert services.sample(clock=at_noon) == 1


def test_a_master_that_hears_of_no_broker_says_zero_of_everything_which_is_not_known(instance, flow_master, at_noon):
    flow_master.answers[instance.id] = flowing(produce=0)
    flow_master.broker_rows = [{"broker": 1, "reporting": False}, {"broker": 2, "reporting": False}]
    assert services.sample(clock=at_noon) == 0
    flow_master.broker_rows[1]["reporting"] = True
    assert services.sample(clock=at_noon) == 1


def test_what_a_real_master_answers_is_understood():
    clock = [0.0]
    ledger_of = Service(period_ms=1000, lease_ms=10_000, now=lambda: clock[0])
    ledger_of.set_specs({INSTANCE: spec()})
    ledger_of.won(6)
    clock[0] = 100.0
    ledger_of.report(report(1, flow(200), flow(7), storage=40, connections=2))
    ledger_of.report(report(2, flow(100), storage=2, connections=1))
    answered = json.loads(json.dumps(allocations_document(ledger_of.ledger, [INSTANCE], clock[0])))
    (document,) = answered["instances"]
    assert document["learning"] is False
    found = figures_of(document, storage_gib=1)
    assert (found["produce_bytes_per_s"], found["consume_bytes_per_s"]) == (300, 7)
    assert (found["storage_used_bytes"], found["connections"], found["produce_limit_bytes_per_s"]) == (42, 3, 300)
    allocations = [broker["allocation"] for broker in document["produce"]["brokers"]]
    assert found["produce_allocated_bytes_per_s"] == sum(allocations) > 0


def test_an_instance_that_does_not_run_has_no_row(crowd, at_noon):
    first, second = crowd(2)
    Instance.objects.unscoped("a test").filter(pk=first).update(state="deleting")
    services.sample(clock=at_noon)
    assert Sample.objects.get().instance == second


BROKEN = {
    "no producing": lambda document: document.pop("produce"),
    "producing that is none": lambda document: document.update(produce=5),
    "no brokers": lambda document: document["consume"].pop("brokers"),
    "brokers that are none": lambda document: document["consume"].update(brokers=[7]),
    "no storage": lambda document: document.pop("storage_used_bytes"),
    "negative storage": lambda document: document.update(storage_used_bytes=-1),
    "storage beyond every database": lambda document: document.update(storage_used_bytes=2**70),
    "connections that are no number": lambda document: document.update(connections="many"),
    "no connections": lambda document: document.update(connections=None),
}


@pytest.mark.parametrize("how", BROKEN)
def test_an_instance_of_which_nobody_understands_anything_has_a_gap_and_the_others_their_rows(
    crowd, flow_master, at_noon, how, caplog
):
    names = crowd(3)
    flow_master.answers[names[1]] = deepcopy(flowing())
    BROKEN[how](flow_master.answers[names[1]])
    with caplog.at_level(logging.WARNING):
        assert services.sample(clock=at_noon) == 2
    assert set(Sample.objects.values_list("instance", flat=True)) == {names[0], names[2]}
    assert names[1] in caplog.text


def test_figures_for_when_no_master_answers_come_from_the_same_question(instance, flow_master, at_noon):
    flow_master.answers[instance.id] = flowing(produce=MIB)
    services.sample(clock=at_noon)
    flow_master.answers.clear()
    at_noon.advance(5)
    assert figures_get([instance], flows_get, clock=at_noon).documents[instance.id]["produce"]["flow"] == MIB


def asked_by(clock):
    with CaptureQueriesContext(connection) as queries:
        services.sample(clock=clock)
    return [each["sql"] for each in queries if not each["sql"].startswith(("SAVEPOINT", "RELEASE"))]


def test_five_hundred_instances_are_one_pass(crowd, flow_master, at_noon):
    crowd(5)
    few = asked_by(at_noon)
    crowd(495, first=5)
    at_noon.advance(10)
    asked = flow_master.asked
    many = asked_by(at_noon)
    assert Sample.objects.filter(at=NOON + 10).count() == 500
    inserts = [sql for sql in many if sql.startswith("INSERT")]
    assert len(many) - len(inserts) == len(few) - 1
    columns = len(Sample._meta.local_concrete_fields)
    most = connection.features.max_query_params  # SQLite's; PostgreSQL takes all rows in one
    assert len(inserts) <= -(-500 // (most // columns))
    assert flow_master.asked - asked == 3  # 200 instances a question
