"""Each cluster has a meter, brokers and a topic of its own: what is known of one says nothing of another."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from controlplane.clusters.models import Broker, PhysicalCluster
from controlplane.clusters.services import cluster_ensure
from controlplane.core.errors import Conflict
from controlplane.metering import finality
from controlplane.metering.metrics import metrics_text
from controlplane.metering.models import Boot, BrokerWaiver, Loss, PipelineStatus, Progress, Statement
from controlplane.metering.selectors import (
    complete_to,
    complete_to_everywhere,
    completeness,
    losses_open,
    partitions,
    status,
    status_of,
    statuses,
)
from tests.controlplane.test_instances_api import problem

READ_TO = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def both(db):
    """Names and rows, with a broker 1 each."""
    made = {
        "default": cluster_ensure(),
        "second": PhysicalCluster.objects.create(name="second", zookeeper_hosts="z:2181"),
    }
    for cluster in made.values():
        Broker.objects.create(cluster=cluster, broker_id=1, host="h", port=cluster.pk)
    return made


def said(cluster, hour):
    Statement.objects.create(
        cluster=cluster, broker=1, hour=hour, boot=f"boot of {cluster}", after="", said_at_ms=1, topic_id=cluster,
        source_partition=0, source_offset=0,
    )  # fmt: skip


def read(cluster, complete_to_ms, partition=0):
    Progress.objects.create(
        cluster=cluster, partition=partition, topic_id=cluster, next_offset=1, end_offset=4, looked_at_ms=0,
        complete_to_ms=complete_to_ms,
    )  # fmt: skip


def test_brokers_with_the_same_id_are_two(both):
    said("default", "2026-05-01T09:00:00Z")
    said("second", "2026-05-01T05:00:00Z")
    (one,) = finality.broker_hours(READ_TO, "default")
    (other,) = finality.broker_hours(READ_TO, "second")
    assert (one.cluster, one.told_to) == ("default", datetime(2026, 5, 1, 10, tzinfo=UTC))
    assert (other.cluster, other.told_to) == ("second", datetime(2026, 5, 1, 6, tzinfo=UTC))


def test_boots_of_a_broker_with_the_same_id_are_no_matter_to_the_other(both):
    for cluster in both:
        Boot.objects.create(
            cluster=cluster, broker=1, boot=f"boot of {cluster}", first_hour="2026-05-01T04:00:00Z",
            last_hour="2026-05-01T05:00:00Z", first_at_ms=0,
        )  # fmt: skip
        said(cluster, "2026-05-01T05:00:00Z")
    for cluster in both:
        (broker,) = finality.broker_hours(READ_TO, cluster)
        assert (broker.told_to, broker.lost_boots) == (datetime(2026, 5, 1, 6, tzinfo=UTC), ())
        assert broker.boots == (f"boot of {cluster}",)


def test_how_far_one_has_been_read_says_nothing_of_the_other(both):
    read("second", 1000)
    assert complete_to("default") is None
    assert complete_to("second") == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert complete_to_everywhere() is None, "nobody has said how far the first one is"
    read("default", 500)
    assert complete_to_everywhere() == datetime(1970, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)


def test_a_waiver_is_for_the_broker_of_one_cluster(both, clock):
    finality.broker_waive(broker=1, reason="gone", actor="o", read_to=READ_TO, cluster="second", clock=clock)
    assert [each.waived is not None for each in finality.broker_hours(READ_TO, "second")] == [True]
    assert [each.waived for each in finality.broker_hours(READ_TO, "default")] == [None]
    with pytest.raises(Conflict):
        finality.broker_waive(broker=1, reason="gone", actor="o", read_to=READ_TO, cluster="second", clock=clock)


def test_a_loss_keeps_its_own_cluster_waiting(both):
    Loss.objects.create(
        cluster="second", kind="cut", partition=0, start_offset=1, end_offset=2, topic_id="t", sentence="lost",
        found_at_ms=1,
    )  # fmt: skip
    assert (completeness("second").loss, completeness("default").loss) == ("lost", "")
    assert losses_open().count() == 1


def test_all_together_are_as_the_worst_of_them(both):
    now_ms = int(time.time() * 1000)
    about = {
        "query": "q",
        "batch": 1,
        "bad_records": 0,
        "started_at_ms": 0,
        "seen_at_ms": now_ms,
        "moved_at_ms": now_ms,
    }
    PipelineStatus.objects.create(cluster="default", problem="", records=5, **about)
    assert (status_of("default").state, status_of("second").state, status().state) == (
        "running",
        "starting",
        "starting",
    )
    PipelineStatus.objects.create(cluster="second", problem="the topic is not there", records=7, **about)
    found = status()
    assert (found.state, found.reason, found.records) == ("failing", "the topic is not there", 12)
    assert [each.cluster for each in statuses()] == ["default", "second"]


def test_metrics_name_the_cluster_where_there_are_several(both):
    read("default", None)
    one = metrics_text(status(), partitions(), open_losses=0, now=READ_TO)
    assert 'sluice_metering_lag_records{partition="0"} 3' in one
    read("second", None)
    both_of_them = metrics_text(status(), partitions(), open_losses=0, now=READ_TO)
    assert 'sluice_metering_lag_records{cluster="second",partition="0"} 3' in both_of_them
    assert 'sluice_metering_lag_records{cluster="default",partition="0"} 3' in both_of_them


def test_operators_say_whose_broker_they_do_not_wait_for(operator, both):
    shown = operator.api.get("/api/v1/metering/brokers").json()["items"]
    assert [(each["cluster"], each["broker"]) for each in shown] == [("default", 1), ("second", 1)]
    path, why = "/api/v1/metering/brokers/1/waiver", {"reason": "its disk burned"}
    problem(operator.api.post(path, why), 400, "invalid")
    problem(operator.api.post(f"{path}?cluster=other", why), 404, "not_found")
    assert operator.api.post(f"{path}?cluster=second", why).status_code == 201
    assert BrokerWaiver.objects.get().cluster == "second"


@pytest.fixture
def operator(charlie):
    charlie.user.is_staff = True
    charlie.user.save(update_fields=["is_staff"])
    return charlie
