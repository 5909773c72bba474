"""A cluster is retired when nothing is on it and nobody owes anything for it; then nothing asks it, and its bills stay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.admission import places
from controlplane.admission.retiring import cluster_set
from controlplane.billing import closing
from controlplane.billing.models import Invoice
from controlplane.billing.pricing.rating import Month
from controlplane.clusters import zookeeper
from controlplane.clusters.models import ClusterEvent, PhysicalCluster
from controlplane.clusters.services import cluster_list, cluster_named, clusters_known
from controlplane.core.errors import Conflict, Invalid
from controlplane.instances.models import Instance, SpecChange
from controlplane.metering.selectors import completeness_by_cluster, statuses
from tests.controlplane.fakes import FakeTree, ManualClock
from tests.controlplane.test_instances_api import problem
from tests.support.usage import usage_complete

MAY = Month(2026, 5)


@pytest.fixture
def clock():
    found = ManualClock()
    found.time = MAY.end + timedelta(hours=8)
    return found


@pytest.fixture
def home(instance):
    """The cluster of alice's instance, which is since 1 May; there is a second one."""
    PhysicalCluster.objects.create(name="second", zookeeper_hosts="z:2181", zones=["b"])
    opened = datetime(2026, 5, 1, tzinfo=UTC)
    Instance.objects.unscoped("a test").update(created_at=opened)
    SpecChange.objects.unscoped("a test").update(at=opened)
    return instance.cluster


def gone(moment):
    Instance.objects.unscoped("a test").update(state="deleted", deleted_at=moment)


def retired(cluster, clock, state="retired"):
    return cluster_set(cluster=cluster, actor="o", changes={"state": state}, reason="sold", clock=clock)


def test_while_anything_is_on_it_it_is_not(home, clock):
    for state in ("running", "isolated", "deleting"):
        Instance.objects.unscoped("a test").update(state=state)
        with pytest.raises(Conflict, match="instances that are on it: 1"):
            retired(home, clock)
    home.refresh_from_db()
    assert home.state == "open"
    assert not ClusterEvent.objects.exists()


def test_until_every_invoice_is_written_it_is_not(home, clock):
    gone(datetime(2026, 5, 20, tzinfo=UTC))
    with pytest.raises(Conflict, match="lack an invoice: 1"):
        retired(home, clock)
    usage_complete(MAY.end + timedelta(hours=2))
    closing.invoices_close(clock=clock)
    assert Invoice.objects.unscoped("a test").count() == 1
    assert retired(home, clock).state == "retired"
    assert ClusterEvent.objects.get().detail == {"state": {"from": "open", "to": "retired"}}


def test_the_present_month_counts_though_no_invoice_of_it_is_due(home, clock):
    usage_complete(MAY.end + timedelta(hours=2))
    closing.invoices_close(clock=clock)
    gone(MAY.end + timedelta(hours=3))
    with pytest.raises(Conflict, match="lack an invoice: 1"):
        retired(home, clock)


class TestOneThatIs:
    @pytest.fixture(autouse=True)
    def switched_off(self, home):
        """As if all had gone well."""
        PhysicalCluster.objects.filter(pk=home.pk).update(state="retired")

    def test_nobody_asks_it_and_nothing_is_placed_on_it(self, home):
        assert [each.name for each in cluster_list()] == ["second"]
        assert [each.name for each in clusters_known()] == ["default", "second"]
        assert cluster_named(None).name == "second", "the only one that is in use"
        assert [each.cluster for each in statuses()] == ["second"]
        assert set(places.zones_offered()) == {"b"}

    def test_its_bills_are_told_as_before(self):
        assert set(completeness_by_cluster()) == {"default", "second"}

    def test_the_last_one_in_use_cannot_be(self, home, clock):
        with pytest.raises(Conflict, match="the only cluster that is in use"):
            retired(cluster_named("second"), clock)

    def test_it_can_be_taken_back(self, home, clock):
        assert retired(home, clock, state="cordoned").state == "cordoned"
        assert [each.name for each in cluster_list()] == ["default", "second"]

    def test_twice_is_once(self, home, clock):
        retired(home, clock)
        assert not ClusterEvent.objects.exists()

    def test_it_is_listed_by_rest(self, home, charlie, monkeypatch):
        charlie.user.is_staff = True
        charlie.user.save(update_fields=["is_staff"])
        monkeypatch.setattr(zookeeper, "tree", lambda _cluster: pytest.fail("it was asked"))
        listed = charlie.api.get("/api/v1/clusters").json()["items"]
        assert [(each["name"], each["state"]) for each in listed] == [("default", "retired"), ("second", "open")]


def test_by_rest_it_is_a_state_like_any_other_and_a_conflict_where_it_cannot_be(charlie, home, monkeypatch):
    charlie.user.is_staff = True
    charlie.user.save(update_fields=["is_staff"])
    monkeypatch.setattr(zookeeper, "tree", lambda _cluster: FakeTree())
    change = {"state": "retired", "reason": "sold"}
    refused = problem(charlie.api.patch("/api/v1/clusters/default", change), 409, "cluster_in_use")
    assert "instances that are on it: 1" in refused["detail"]
    assert charlie.api.patch("/api/v1/clusters/second", change).json()["state"] == "retired"


def test_what_else_is_changed_is_judged_as_before(home, clock):
    with pytest.raises(Invalid):
        cluster_set(cluster=home, actor="o", changes={"capacity": -1}, reason="x", clock=clock)
    assert cluster_set(cluster=home, actor="o", changes={"capacity": 7}, reason="x", clock=clock).capacity == 7
