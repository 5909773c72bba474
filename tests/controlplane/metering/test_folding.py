"""When a day is folded and why it is not; what tenants and operators see of it."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime, timedelta

import pytest
from django.core.management import call_command
from django.urls import reverse

from controlplane.accounts.models import User
from controlplane.billing.closing import invoice_close
from controlplane.billing.pricing.rating import Month
from controlplane.billing.selectors import late_usage
from controlplane.clusters.models import Broker
from controlplane.core.errors import NotFound
from controlplane.metering import finality, folding, selectors, services
from controlplane.metering.models import (
    Difference,
    Fold,
    FoldedHour,
    FoldedTopicDay,
    InstanceMaximum,
    JobRun,
    Loss,
    Progress,
    Reconciliation,
    Statement,
    UsageMaximum,
)
from controlplane.metering.pipeline import folded
from controlplane.metering.pipeline.maxima import INSTANCES
from tests.support.usage import hours_told, instances_raise, usage_complete

from .conftest import raised, row

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 5, 6, 12, tzinfo=UTC)


class At:
    """A clock that stands."""

    def __init__(self, moment: datetime) -> None:
        self._moment = moment

    def now(self) -> datetime:
        return self._moment


def rounds(now: datetime = NOON, **about) -> folding.FoldShown:
    folding.days_fold(clock=At(now), **about)
    return folding.fold_get()


@pytest.fixture
def usage(instance):
    """Of the first to the fifth, an hour each day, of two topics; and of the instance."""
    raised(
        row(instance.id, f"2026-05-{day:02}T{hour:02}", 100 * day, topic=topic, stored=3600 * day)
        for day in range(1, 6)
        for hour, topic in ((7, "orders"), (20, "clicks"))
    )
    instances_raise([(instance.id, "b1", "2026-05-01T07:00:00Z", 1, 9, 8, 7, 6, 5, 0, 0, 0)])
    return instance


def looked_at(start: str, end: str, **about) -> Reconciliation:
    about = {"at_ms": 1, "compared": 1, "different": 0, "raised": 0} | about
    return Reconciliation.objects.create(start_hour=f"{start}T00:00:00Z", end_hour=f"{end}T00:00:00Z", **about)


class TestWhen:
    def test_whole_days_that_are_final_and_three_days_ago_are_folded(self, usage):
        usage_complete(NOON)
        before = selectors.usage_hours(instance=usage, start=NOON - timedelta(days=9), end=NOON, now=NOON)
        found = rounds()
        assert (found.folded_to, found.reason, found.is_sweeping) == (datetime(2026, 5, 3, tzinfo=UTC), "", False)
        assert rounds(datetime(2026, 5, 7, tzinfo=UTC)).folded_to == datetime(2026, 5, 4, tzinfo=UTC)
        assert sorted(set(FoldedTopicDay.objects.values_list("day", flat=True))) == [
            "2026-05-01", "2026-05-02", "2026-05-03",
        ]  # fmt: skip
        assert UsageMaximum.objects.filter(hour__lt="2026-05-04").count() == 2, "the anchors"
        assert selectors.usage_hours(instance=usage, start=NOON - timedelta(days=9), end=NOON, now=NOON) == before
        assert found.kept == 8 + 1

    def test_hours_that_a_broker_has_not_told_are_waited_for_and_it_is_named(self, usage):
        assert Broker.objects.filter(cluster=usage.cluster, broker_id=2).exists()
        usage_complete(NOON)
        Statement.objects.filter(broker=2).update(hour="2026-05-01T23:00:00Z")
        found = rounds()
        assert found.folded_to == datetime(2026, 5, 2, tzinfo=UTC)
        assert found.reason.startswith("broker 2 has told all up to 2026-05-02 00:00 UTC")

    def test_a_broker_that_was_waived_is_not_waited_for(self, usage):
        usage_complete(NOON)
        Statement.objects.filter(broker=2).delete()
        assert rounds().folded_to is None
        finality.broker_waive(broker=2, reason="it burnt down", actor="a", read_to=NOON, clock=At(NOON))
        assert rounds().folded_to == datetime(2026, 5, 3, tzinfo=UTC)

    def test_what_metering_has_not_read_and_losses_that_nobody_has_judged_are_waited_for(self, usage):
        usage_complete(datetime(2026, 5, 1, 23, tzinfo=UTC))
        assert rounds().reason.startswith("metering has come to 2026-05-01 23:00 UTC")
        Progress.objects.all().delete()
        usage_complete(NOON)
        Loss.objects.create(
            kind="cut",
            partition=0,
            start_offset=5,
            end_offset=9,
            topic_id="t",
            sentence="records are gone",
            found_at_ms=0,
        )
        assert rounds().reason == "records are gone; an operator has to judge it"

    def test_nothing_is_due_where_nothing_was_used(self, instance):
        assert rounds() == folding.FoldShown(None, "", NOON, 0, NOON, is_sweeping=False)

    def test_a_day_that_cannot_be_kept_longer_is_as_long_as_the_setting_says(self, usage, settings):
        import dataclasses

        settings.ENVIRONMENT = dataclasses.replace(settings.ENVIRONMENT, metering_keep_days=4)
        usage_complete(NOON)
        assert rounds().folded_to == datetime(2026, 5, 2, tzinfo=UTC)


class TestDamaged:
    def test_a_day_whose_sums_are_too_large_is_said_and_named_and_can_be_corrected(self, usage):
        usage_complete(NOON)
        raised(
            [row(usage.id, "2026-05-02T07", 2**60 - 1, topic="orders", boot=f"{each:016x}") for each in range(1, 10)]
        )
        found = rounds()
        assert found.folded_to == datetime(2026, 5, 2, tzinfo=UTC), "the day before is folded, and swept"
        assert not found.is_sweeping
        assert found.reason.startswith("2026-05-02 cannot be added up: ")
        assert f"{usage.id}/orders 2026-05-02T07:00:00Z of boot" in found.reason
        assert "usage_cap" in found.reason
        for each in range(1, 10):
            services.usage_cap(
                instance_id=usage.id, boot=f"{each:016x}", topic="orders", caps={"produced_bytes": 5}, reason="a torn page",
                actor="operator@example.com",
            )  # fmt: skip
        assert rounds().folded_to == datetime(2026, 5, 3, tzinfo=UTC)


class TestReconciled:
    @pytest.fixture(autouse=True)
    def final(self, usage):
        usage_complete(NOON)

    def test_a_day_waits_to_be_compared_where_this_installation_compares(self):
        JobRun.objects.create(job="reconcile", state="failed", asked_at_ms=0)
        assert "no reconciliation has succeeded yet" in rounds().reason
        looked_at("2026-05-01", "2026-05-02")
        found = rounds()
        assert found.folded_to == datetime(2026, 5, 2, tzinfo=UTC)
        assert found.reason.startswith("2026-05-02 was not compared with its raw records yet")

    def test_days_before_the_first_comparison_are_not_waited_for(self):
        looked_at("2026-05-02", "2026-05-03")
        assert rounds().folded_to == datetime(2026, 5, 3, tzinfo=UTC)

    def test_a_day_that_differs_is_not_folded_until_somebody_says_so_or_it_is_compared_again(self):
        looked_at("2026-05-01", "2026-05-02")
        run = looked_at("2026-05-02", "2026-05-03", different=1)
        Difference.objects.create(
            reconciliation=run, against="database", instance="i", hour="2026-05-02T07:00:00Z", counter="c",
            recomputed="1", known="2",
        )  # fmt: skip
        found = rounds()
        assert found.folded_to == datetime(2026, 5, 2, tzinfo=UTC)
        assert found.reason.startswith("2026-05-02 differs from its raw records in 1 counters")
        told = io.StringIO()
        call_command("usage_fold", stdout=told)
        assert told.getvalue().startswith("0 days folded; folded up to 2026-05-02")
        assert rounds(although_different=date(2026, 5, 2)).folded_to == datetime(2026, 5, 3, tzinfo=UTC)

    def test_what_differs_from_invoices_alone_will_be_adjusted_and_is_no_obstacle(self):
        run = looked_at("2026-05-01", "2026-05-03", different=1)
        Difference.objects.create(
            reconciliation=run, against="invoices", instance="i", hour="2026-05-02T07:00:00Z", counter="c",
            recomputed="1", known="2",
        )  # fmt: skip
        assert rounds().folded_to == datetime(2026, 5, 3, tzinfo=UTC)

    def test_a_cluster_without_raw_records_is_waited_for_where_it_has_usage_and_for_two_weeks(self, usage):
        looked_at("2026-05-01", "2026-05-03", gone=["another"])
        assert rounds().folded_to == datetime(2026, 5, 3, tzinfo=UTC)
        Fold.objects.all().delete()
        FoldedHour.objects.all().delete()
        FoldedTopicDay.objects.all().delete()
        looked_at("2026-05-03", "2026-05-04", gone=[usage.cluster.name])
        later = datetime(2026, 5, 8, tzinfo=UTC)
        usage_complete(later)
        folded.begin(folding.Django())
        Fold.objects.update(folded_to="2026-05-03T00:00:00Z")
        assert "2026-05-03 was not compared" in rounds(later).reason
        usage_complete(later + timedelta(days=14))
        assert rounds(later + timedelta(days=14)).folded_to == datetime(2026, 5, 4, tzinfo=UTC)

    def test_the_horizon_stands_while_a_reconciliation_is_under_way(self):
        looked_at("2026-05-01", "2026-05-05")
        JobRun.objects.create(
            job="reconcile", state="running", asked_at_ms=0, seen_at_ms=int(NOON.timestamp() * 1000) - 5000
        )
        assert rounds().reason == "a reconciliation is under way"
        assert rounds(NOON + timedelta(minutes=5)).folded_to == datetime(2026, 5, 3, tzinfo=UTC), "it has died"


class TestAfterwards:
    @pytest.fixture(autouse=True)
    def folded_days(self, usage):
        usage_complete(NOON)
        rounds()

    def test_records_are_said_to_be_elsewhere_by_rest_and_in_the_console(self, alice, client, usage):
        path = f"/api/v1/instances/{usage.id}/usage/records?from=2026-05-01&to=2026-05-06"
        found = alice.api.get(path).json()
        assert {each["hour"][:10] for each in found["items"]} == {"2026-05-03", "2026-05-04", "2026-05-05"}
        assert found["away"].startswith("records behind hours before 2026-05-03 are not kept here")
        assert alice.api.get(path.replace("from=2026-05-01", "from=2026-05-03")).json()["away"] == ""
        client.force_login(alice.user)
        pages = [
            client.get(reverse("console:usage_records", args=[usage.organisation_id, usage.id, hour])).content.decode()
            for hour in ("2026-05-01T07", "2026-05-04T07")
        ]
        assert ["Sums are kept of this day, not records" in page for page in pages] == [True, False]

    def test_hours_of_an_instance_that_is_gone_are_still_there(self, usage):
        raised([row("ins-gone0000", "2026-05-03T07", 5)])
        rounds(NOON + timedelta(days=3))
        assert list(FoldedHour.objects.filter(instance="ins-gone0000").values_list("hour", "produced_bytes")) == [
            ("2026-05-03T07:00:00Z", 5)
        ]

    def test_a_bill_by_topic_that_is_cut_within_a_folded_day_adds_up(self, usage):
        bounds = [datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 5, 2, 12, tzinfo=UTC), NOON]
        parts = selectors.usage_by_topic(instance=usage, bounds=bounds)
        for number, part in enumerate(parts):
            total = selectors.usage_total(instance=usage, start=bounds[number], end=bounds[number + 1])
            assert tuple(map(sum, zip(*part.values(), strict=True))) == total
        assert parts[0] == {"clicks": (150, 0, 5400), "orders": (150, 0, 5400)}, "half of each on the second"

    def test_of_a_topic_there_are_days_where_hours_are_folded(self, usage):
        found = selectors.topic_hours(instance=usage, topic="clicks", start=NOON - timedelta(days=9), end=NOON)
        assert {each.stored_byte_seconds for each in found} == {3600}
        assert [(each.hour, each.last_hour, each.produced_bytes) for each in found] == [
            ("2026-05-01T00:00:00Z", "2026-05-01T23:00:00Z", 100),
            ("2026-05-02T00:00:00Z", "2026-05-02T23:00:00Z", 100),
            ("2026-05-03T20:00:00Z", "2026-05-03T20:00:00Z", 100),
            ("2026-05-04T20:00:00Z", "2026-05-04T20:00:00Z", 100),
            ("2026-05-05T20:00:00Z", "2026-05-05T20:00:00Z", 100),
        ]

    def test_what_was_put_right_becomes_late_usage_of_an_invoice(self, usage):
        month = Month(2026, 5)
        closed = datetime(2026, 6, 2, tzinfo=UTC)
        usage_complete(closed)
        assert invoice_close(instance=usage, month=month, now=closed)
        assert not any(late.changed for late in late_usage(instance=usage))
        hour = FoldedHour.objects.get(instance=usage.id, hour="2026-05-01T07:00:00Z")
        FoldedHour.objects.filter(pk=hour.pk).update(produced_bytes=hour.produced_bytes + 77)
        (late,) = late_usage(instance=usage)
        assert [used.produced_bytes for used in late.changed.values()] == [77]

    def test_a_cap_lowers_what_is_kept_and_may_be_of_a_boot_of_which_sums_alone_are_left(self, usage):
        about = {
            "instance_id": usage.id,
            "reason": "r",
            "actor": "a",
            "clock": At(NOON),
            "caps": {"produced_bytes": 250},
        }
        assert services.usage_cap(boot="b1", topic="orders", **about) == 3
        assert services.usage_cap(boot="b0", topic="orders", **about) == 0
        told = io.StringIO()
        by = User.objects.create_user("opal@example.com", "a long pass phrase", is_staff=True).email
        call_command(
            "usage_cap", usage.id, "b0", "orders", "--produced-bytes", "9", "--reason", "r", by=by, stdout=told
        )
        assert "hours before 2026-05-03 follow when the job reconcile has run again" in told.getvalue()
        with pytest.raises(NotFound, match="no usage of that instance, boot and topic"):
            services.usage_cap(boot="b1", topic="never", **about)

    def test_a_round_that_is_out_of_time_is_gone_on_with(self, usage):
        later = NOON + timedelta(days=9)
        usage_complete(later)
        assert rounds(later, until_s=0).folded_to == datetime(2026, 5, 3, tzinfo=UTC)
        assert rounds(later).folded_to == datetime(2026, 5, 6, tzinfo=UTC)

    def test_anchors_of_boots_that_ended_are_deleted_with_the_time(self, usage):
        much_later = NOON + timedelta(days=60)
        hours_told(1, "2026-07-01T10", much_later, boot="b2", after="b1")
        raised([row(usage.id, "2026-06-20T07", 5, boot="b2")])
        usage_complete(much_later)
        assert UsageMaximum.objects.filter(boot="b1").exists()
        assert InstanceMaximum.objects.exists()
        assert rounds(much_later).folded_to == datetime(2026, 6, 21, tzinfo=UTC)
        assert list(UsageMaximum.objects.values_list("boot", flat=True)) == ["b2"]
        assert not InstanceMaximum.objects.exists()
        assert selectors.usage_total(instance=usage, start=NOON - timedelta(days=9), end=much_later)[0] == 1005


def test_operators_see_how_far_it_is_and_why_not_further(client, admin_user, usage):
    usage_complete(datetime(2026, 5, 1, 23, tzinfo=UTC))
    rounds()
    client.force_login(admin_user)
    page = client.get("/fleet/metering").content.decode()
    assert "Days that are over" in page
    assert "Metering has come to 2026-05-01 23:00 UTC" in page


def test_every_kind_of_key_row_has_an_index_that_a_fold_goes_by():
    for source in folded.SOURCES:
        assert "instance" in source.owner, f"{source.table}: owners are found by instance and hour"
    assert INSTANCES in folded.SOURCES
