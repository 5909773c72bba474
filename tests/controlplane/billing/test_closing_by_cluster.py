"""Invoices wait for the metering of their instance's cluster, and for no other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.billing import closing, services
from controlplane.billing.metrics import billing_text
from controlplane.billing.models import Invoice, MeteringWaiver
from controlplane.billing.pricing.rating import Month
from controlplane.billing.waiting import months_waiting, state_of, waiting, waiting_ids
from controlplane.clusters.models import Broker, PhysicalCluster
from controlplane.console.forms.billing import WaiverForm
from controlplane.core.errors import NotFound
from controlplane.core.models import AuditEntry
from controlplane.instances import services as instances
from controlplane.instances.models import Instance, SpecChange
from controlplane.metering.models import BrokerWaiver, Progress, Statement
from controlplane.metering.selectors import completeness_by_cluster
from tests.controlplane.conftest import WANTED
from tests.controlplane.fakes import ManualClock
from tests.support.usage import usage_complete

MAY = Month(2026, 5)


@pytest.fixture
def clock():
    found = ManualClock()
    found.time = MAY.end + timedelta(hours=8)
    return found


@pytest.fixture
def other(alice, instance):
    """An instance on a second cluster; both are since 1 May. The first cluster's usage of May is complete."""
    second = PhysicalCluster.objects.create(name="second", zookeeper_hosts="z:2181")
    made, _ = instances.instance_create(
        organisation=alice.organisation, actor="a", cluster=second, **{**WANTED, "name": "other"}
    )
    opened = datetime(2026, 5, 1, tzinfo=UTC)
    Instance.objects.unscoped("a test").update(created_at=opened)
    SpecChange.objects.unscoped("a test").update(at=opened)
    usage_complete(MAY.end + timedelta(hours=2))
    return made


def second_is_complete():
    """Its only broker has told May, and all of it has been read."""
    to_ms = int((MAY.end + timedelta(hours=2)).timestamp() * 1000)
    Broker.objects.create(cluster=PhysicalCluster.objects.get(name="second"), broker_id=1, host="h", port=1)
    Statement.objects.create(
        cluster="second", broker=1, hour="2026-06-01T01:00:00Z", boot="b", after="", said_at_ms=to_ms, topic_id="s",
        source_partition=0, source_offset=0,
    )  # fmt: skip
    Progress.objects.create(
        cluster="second", partition=0, topic_id="s", next_offset=1, end_offset=1, looked_at_ms=0, complete_to_ms=to_ms
    )


def invoiced():
    return set(Invoice.objects.unscoped("a test").values_list("instance_id", flat=True))


def test_a_cluster_that_is_behind_holds_up_its_own_invoices_alone(alice, instance, other, clock):
    closing.invoices_close(clock=clock)
    assert invoiced() == {instance.id}
    (waits,) = waiting(clock.now())
    assert (str(waits.month), waits.cluster, waits.invoices) == ("2026-05", "second", 1)
    assert months_waiting(organisation=alice.organisation, now=clock.now()) == [MAY]
    assert waiting_ids(MAY, [instance.id, other.id]) == {other.id}
    second_is_complete()
    assert waiting(clock.now()) == []
    closing.invoices_close(clock=clock)
    assert invoiced() == {instance.id, other.id}


def test_what_was_on_a_retired_cluster_is_adjusted_though_its_meter_stands_still(instance, other, clock):
    """It is retired when all is invoiced; a counter may be capped, and money be due back, long after."""
    assert why_of("second")
    PhysicalCluster.objects.filter(name="second").update(state="retired")
    assert why_of("second") == ""
    assert [each.cluster for each in waiting(clock.now())] == []


def why_of(cluster):
    return completeness_by_cluster()[cluster].why_not(until=MAY.end)


def test_what_a_bill_waits_for_is_its_own_cluster(instance, other, clock):
    states = [
        state_of(instance=each, month=MAY, now=clock.now(), invoice=None, lines=[1]) for each in (instance, other)
    ]
    assert states == ["closing", "waiting_for_metering"]


def test_a_month_is_waived_for_those_that_wait(alice, instance, other, clock):
    services.metering_waive(month=MAY, instance_id=None, actor="o", reason="enough", clock=clock)
    assert MeteringWaiver.objects.get().waited_for == "the meter has not said yet how far it has come"
    closing.invoices_close(clock=clock)
    assert invoiced() == {instance.id, other.id}
    inputs = dict(Invoice.objects.unscoped("a test").values_list("instance_id", "inputs"))
    assert inputs[other.id] != inputs[instance.id]


def test_a_month_is_waived_on_one_cluster_and_waits_on_the_other(instance, other, clock):
    Progress.objects.all().delete()
    services.metering_waive(month=MAY, instance_id=None, cluster="second", actor="o", reason="enough", clock=clock)
    assert [(each.cluster, each.invoices) for each in waiting(clock.now())] == [("default", 1)]
    states = [
        state_of(instance=each, month=MAY, now=clock.now(), invoice=None, lines=[1]) for each in (instance, other)
    ]
    assert states == ["waiting_for_metering", "closing"]
    closing.invoices_close(clock=clock)
    assert invoiced() == {other.id}
    services.metering_waive(month=MAY, instance_id=None, cluster="default", actor="o", reason="it too", clock=clock)
    closing.invoices_close(clock=clock)
    assert invoiced() == {instance.id, other.id}
    assert MeteringWaiver.objects.count() == 2


def test_an_unknown_cluster_is_not_waived(instance, other, clock):
    with pytest.raises(NotFound):
        services.metering_waive(month=MAY, instance_id=None, cluster="third", actor="o", reason="enough", clock=clock)


def test_operators_choose_the_line():
    form = WaiverForm({"month": "2026-05 second", "reason": "r"}, lines=[("2026-05", "default"), ("2026-05", "second")])
    assert form.is_valid()
    assert form.fields["month"].choices == [
        ("2026-05 default", "2026-05, default"),
        ("2026-05 second", "2026-05, second"),
    ]
    alone = WaiverForm({"month": "2026-05", "reason": "r"}, lines=[("2026-05", "")])
    assert alone.is_valid()


def test_a_broker_is_waived_in_its_own_cluster_and_that_is_on_record_where_invoices_waited_for_it(
    alice, instance, other, clock
):
    Progress.objects.all().delete()
    for cluster in PhysicalCluster.objects.all():
        Broker.objects.update_or_create(
            cluster=cluster, broker_id=1, defaults={"host": "h", "port": cluster.pk, "away_since": MAY.start}
        )
        Progress.objects.create(
            cluster=cluster.name, partition=0, topic_id=cluster.name, next_offset=1, end_offset=1, looked_at_ms=0,
            complete_to_ms=int((MAY.end + timedelta(hours=2)).timestamp() * 1000),
        )  # fmt: skip
    Statement.objects.all().delete()
    services.broker_waive(broker=1, cluster="second", reason="it burned", actor="o", clock=clock)
    assert [(row.cluster, row.broker) for row in BrokerWaiver.objects.all()] == [("second", 1)]
    [entry] = AuditEntry.objects.unscoped("a test").filter(action="invoice.waive_broker")
    assert (entry.organisation_id, entry.detail["cluster"], entry.detail["months"]) == (
        alice.organisation.id, "second", ["2026-05"],
    )  # fmt: skip
    assert closing.invoices_close(clock=clock) == 1
    assert invoiced() == {other.id}


def test_a_month_that_waits_in_two_clusters_is_one_sample(instance, other, clock):
    Progress.objects.all().delete()
    waits = waiting(clock.now())
    assert [(str(each.month), each.cluster) for each in waits] == [("2026-05", "default"), ("2026-05", "second")]
    assert 'sluice_invoices_waiting{month="2026-05"} 2' in billing_text(waits, [])
