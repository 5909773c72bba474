"""Cost so far, forecast, cost by topic and by user, by REST and of the whole organisation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import OperationalError

from controlplane.billing import closing, costs, selectors
from controlplane.billing.models import Invoice, MonthCost, PlanChoice
from controlplane.billing.pricing.rating import Month
from controlplane.instances import services as instances
from controlplane.instances.models import Instance, SpecChange
from controlplane.metering import selectors as metering
from tests.controlplane.conftest import WANTED
from tests.controlplane.fakes import ManualClock
from tests.controlplane.metering.conftest import raised, row
from tests.controlplane.test_instances_api import problem
from tests.support.usage import usage_complete, user_row, users_raise

from .test_bill_api import at

NOW = datetime(2026, 5, 20, 12, 30, tzinfo=UTC)
GB = 10**9
MAY = Month(2026, 5)


@pytest.fixture
def opened(instance):
    """Alice's, open since 1 May 00:00 at 20 MB/s, under the plan that bills traffic; one GB of `orders` in each hour lately."""
    Instance.objects.unscoped("a test").filter(pk=instance.pk).update(created_at=datetime(2026, 4, 30, tzinfo=UTC))
    SpecChange.objects.unscoped("a test").all().delete()
    SpecChange.objects.unscoped("a test").create(
        organisation=instance.organisation, instance=instance, kind="opened", bandwidth_mib_per_s=20, storage_gib=100,
        partitions=100, at=MAY.start,
    )  # fmt: skip
    PlanChoice.objects.unscoped("a test").create(organisation=instance.organisation, plan="traffic", at=MAY.start)
    hours = [datetime(2026, 5, 13, 12, tzinfo=UTC) + timedelta(hours=number) for number in range(168)]
    raised([row(instance.id, f"{hour:%Y-%m-%dT%H}", GB * (number + 1)) for number, hour in enumerate(hours)])
    usage_complete(datetime(2026, 5, 20, 12, 20, tzinfo=UTC))
    return instance


@pytest.fixture
def today(monkeypatch):
    at(monkeypatch, NOW)


def clock(moment: datetime = NOW) -> ManualClock:
    found = ManualClock()
    found.time = moment
    return found


def cost(person, instance, query: str = "") -> dict:
    answer = person.api.get(f"/api/v1/instances/{instance.id}/cost{query}")
    assert answer.status_code == 200, answer.content
    return answer.json()


@pytest.mark.usefixtures("today")
class TestOfOneInstance:
    """GET …/cost."""

    def test_it_says_what_has_been_spent_and_what_will_have_been_and_by_which_hours(self, alice, opened):
        """168 GB at 0.60 so far; one a hour for the 276 that are left of 31 days, this one included."""
        body = cost(alice, opened)
        assert (body["month"], body["currency"], body["state"]) == ("2026-05", "CNY", "open")
        assert (body["so_far"], body["forecast"]) == ("100.80", "266.40")
        assert body["based_on"] == {"from": "2026-05-13T12:00:00Z", "to": "2026-05-20T12:00:00Z", "hours": 168}
        assert body["counted_until"] == "2026-05-20T12:00:00Z"
        assert body["items"] == [{"item": "produced", "so_far": "100.80", "forecast": "266.40"}]

    def test_so_far_is_the_bill(self, alice, opened):
        bill = alice.api.get(f"/api/v1/instances/{opened.id}/bill").json()
        assert cost(alice, opened)["so_far"] == bill["total"]

    def test_where_metering_is_behind_the_hours_that_are_not_counted_are_expected_too(self, alice, opened):
        usage_complete(datetime(2026, 5, 19, 12, 20, tzinfo=UTC))
        body = cost(alice, opened)
        assert body["based_on"]["to"] == body["counted_until"] == "2026-05-19T12:00:00Z"
        assert (body["based_on"]["hours"], body["so_far"]) == (168, "100.80")
        # 144 GB in the 168 hours before; each of the 300 hours since expects 6/7 of a GB, and 24 have more already
        assert body["forecast"] == text((168 + 276 * Decimal(144) / 168) * Decimal("0.6"))

    def test_a_plan_that_is_chosen_for_later_prices_the_rest(self, alice, opened):
        PlanChoice.objects.unscoped("a test").create(
            organisation=opened.organisation, plan="pro", at=datetime(2026, 5, 30, tzinfo=UTC)
        )
        items = {each["item"]: each["forecast"] for each in cost(alice, opened)["items"]}
        assert items == {
            "bandwidth": text(48 * Decimal("1.34")),
            "disk": "12.00",
            "produced": text((168 + 228) * Decimal("0.6")),
        }

    def test_an_invoiced_month_is_what_was_invoiced(self, alice, opened, monkeypatch):
        usage_complete(datetime(2026, 6, 1, 2, tzinfo=UTC))
        closing.invoice_close(instance=opened, month=MAY, now=datetime(2026, 6, 1, 7, tzinfo=UTC))
        at(monkeypatch, datetime(2026, 6, 2, tzinfo=UTC))
        body = cost(alice, opened, "?month=2026-05")
        assert (body["so_far"], body["forecast"], body["based_on"], body["state"]) == (
            "100.80",
            "100.80",
            None,
            "invoiced",
        )

    def test_one_that_is_gone_is_forecast_to_cost_no_more(self, alice, opened):
        SpecChange.objects.unscoped("a test").create(
            organisation=opened.organisation, instance=opened, kind="closed", bandwidth_mib_per_s=20, storage_gib=100,
            partitions=100, at=NOW - timedelta(hours=2),
        )  # fmt: skip
        body = cost(alice, opened)
        assert body["so_far"] == body["forecast"] == "100.80"

    def test_to_a_stranger_it_does_not_exist(self, charlie, opened):
        for path in ("cost", "cost/topics", "cost/users"):
            problem(charlie.api.get(f"/api/v1/instances/{opened.id}/{path}"), 404, "not_found")

    @pytest.mark.parametrize("path", ["cost", "cost/topics", "cost/users"])
    def test_what_is_no_month_is_refused_by_name(self, alice, opened, path):
        body = problem(alice.api.get(f"/api/v1/instances/{opened.id}/{path}?month=may"), 400, "invalid")
        assert [error["field"] for error in body["errors"]] == ["month"]


@pytest.mark.usefixtures("today")
class TestByTopic:
    """GET …/cost/topics."""

    def asked(self, person, instance, query: str = "") -> dict:
        answer = person.api.get(f"/api/v1/instances/{instance.id}/cost/topics{query}")
        assert answer.status_code == 200, answer.content
        return answer.json()

    def test_topics_and_the_rest_add_up_to_the_bill(self, alice, opened):
        raised([row(opened.id, "2026-05-20T10", GB // 3, topic=f"t{number}", consumed=7) for number in range(7)])
        body = self.asked(alice, opened)
        assert (body["topics"][0]["topic"], body["topics"][0]["amount"]) == ("orders", "100.80")
        assert body["topics"][0]["produced_bytes"] == 168 * GB
        amounts = [Decimal(each["amount"]) for each in body["topics"] + body["unshared"]]
        assert str(sum(amounts)) == body["total"] == cost(alice, opened)["so_far"]
        assert len(body["topics"]) == 8

    def test_those_beyond_the_limit_are_summed_up(self, alice, opened):
        raised([row(opened.id, "2026-05-20T10", GB, topic=f"t{number}") for number in range(3)])
        body = self.asked(alice, opened, "?most=2")
        assert [each["topic"] for each in body["topics"]] == ["orders", "t0"]
        assert body["others"] == {"topics": 2, "amount": "1.20"}

    @pytest.mark.parametrize("most", ["0", "1001", "-1", "x", ""])
    def test_a_limit_that_is_none_is_refused(self, alice, opened, most):
        body = problem(alice.api.get(f"/api/v1/instances/{opened.id}/cost/topics?most={most}"), 400, "invalid")
        assert [error["field"] for error in body["errors"]] == ["most"]

    def test_what_is_reserved_is_shared_by_use_and_partitions_are_nobodys(self, alice, opened):
        PlanChoice.objects.unscoped("a test").all().delete()
        SpecChange.objects.unscoped("a test").update(partitions=500)
        body = self.asked(alice, opened)
        assert {each["item"] for each in body["topics"][0]["items"]} == {"bandwidth", "produced"}
        assert [(each["item"], each["reason"]) for each in body["unshared"]] == [
            ("disk", "no_usage"), ("partitions", "not_metered"),
        ]  # fmt: skip

    def test_an_invoice_is_shared_too(self, alice, opened, monkeypatch):
        usage_complete(datetime(2026, 6, 1, 2, tzinfo=UTC))
        closing.invoice_close(instance=opened, month=MAY, now=datetime(2026, 6, 1, 7, tzinfo=UTC))
        at(monkeypatch, datetime(2026, 6, 2, tzinfo=UTC))
        body = self.asked(alice, opened, "?month=2026-05")
        assert (body["so_far"], body["total"], body["topics"][0]["amount"]) == (False, "100.80", "100.80")

    def test_a_month_without_anything_has_no_topics(self, alice, opened):
        body = self.asked(alice, opened, "?month=2024-01")
        assert (body["topics"], body["unshared"], body["total"]) == ([], [], "0.00")


@pytest.mark.usefixtures("today")
class TestByUser:
    """GET …/cost/users."""

    def asked(self, person, instance, query: str = "") -> dict:
        answer = person.api.get(f"/api/v1/instances/{instance.id}/cost/users{query}")
        assert answer.status_code == 200, answer.content
        return answer.json()

    def moved(self, opened) -> None:
        """Of the month: 300, 100 and 20 GB came from three users, and some from whoever did not sign in."""
        users_raise(
            [
                user_row(opened.id, "2026-05-13T12", "alice", 300 * GB, 7 * GB, 12),
                user_row(opened.id, "2026-05-14T12", "bob", 100 * GB),
                user_row(opened.id, "2026-05-14T13", "bob", 100 * GB, boot="b2", broker=2),
                user_row(opened.id, "2026-05-14T13", "", 4 * GB),
                user_row(opened.id, "2026-04-30T23", "april", 9 * GB),
                user_row("ins-stranger", "2026-05-14T13", "alice", 10**15),
            ]
        )

    def test_users_and_the_rest_add_up_to_the_bill(self, alice, opened):
        self.moved(opened)
        body = self.asked(alice, opened)
        assert [(each["user"], each["kind"], each["amount"]) for each in body["users"]] == [
            ("alice", "signed_in", "60.00"), ("bob", "signed_in", "40.00"), ("", "not_signed_in", "0.80"),
        ]  # fmt: skip
        first = body["users"][0]
        assert (first["wire_in_bytes"], first["wire_out_bytes"], first["requests"]) == (300 * GB, 7 * GB, 12)
        assert first["items"] == [{"item": "produced", "amount": "60.00"}]
        amounts = [Decimal(each["amount"]) for each in body["users"] + body["unshared"]]
        assert str(sum(amounts)) == body["total"] == cost(alice, opened)["so_far"] == "100.80"

    def test_those_beyond_the_limit_are_summed_up(self, alice, opened):
        self.moved(opened)
        body = self.asked(alice, opened, "?most=1")
        assert [each["user"] for each in body["users"]] == ["alice"]
        assert body["others"] == {"users": 2, "amount": "40.80"}

    @pytest.mark.parametrize("most", ["0", "1001", "-1", "x", ""])
    def test_a_limit_that_is_none_is_refused(self, alice, opened, most):
        body = problem(alice.api.get(f"/api/v1/instances/{opened.id}/cost/users?most={most}"), 400, "invalid")
        assert [error["field"] for error in body["errors"]] == ["most"]

    def test_users_whom_a_broker_does_not_keep_apart_stand_together(self, alice, opened):
        users_raise([user_row(opened.id, "2026-05-14T12", "*", GB)])
        (found,) = self.asked(alice, opened)["users"]
        assert (found["kind"], found["amount"]) == ("not_kept_apart", "100.80")

    def test_what_is_reserved_is_shared_by_traffic_and_what_is_stored_is_nobodys(self, alice, opened):
        self.moved(opened)
        PlanChoice.objects.unscoped("a test").all().delete()
        SpecChange.objects.unscoped("a test").update(partitions=500)
        body = self.asked(alice, opened)
        assert {each["item"] for each in body["users"][0]["items"]} == {"bandwidth", "produced"}
        assert [(each["item"], each["reason"]) for each in body["unshared"]] == [
            ("disk", "not_metered"), ("partitions", "not_metered"),
        ]  # fmt: skip
        amounts = [Decimal(each["amount"]) for each in body["users"] + body["unshared"]]
        assert str(sum(amounts)) == body["total"]

    def test_where_brokers_counted_no_user_all_of_it_says_so(self, alice, opened):
        body = self.asked(alice, opened)
        assert body["users"] == []
        assert body["unshared"] == [{"item": "produced", "amount": "100.80", "reason": "no_usage"}]

    def test_an_invoice_is_shared_too(self, alice, opened, monkeypatch):
        self.moved(opened)
        usage_complete(datetime(2026, 6, 1, 2, tzinfo=UTC))
        closing.invoice_close(instance=opened, month=MAY, now=datetime(2026, 6, 1, 7, tzinfo=UTC))
        at(monkeypatch, datetime(2026, 6, 2, tzinfo=UTC))
        body = self.asked(alice, opened, "?month=2026-05")
        assert (body["so_far"], body["total"], body["users"][0]["amount"]) == (False, "100.80", "60.00")


def test_usage_by_user_is_cut_at_the_bounds_and_the_hours_add_up(opened):
    users_raise([user_row(opened.id, f"2026-05-14T{hour:02}", "alice", GB * (hour + 1), hour) for hour in range(24)])
    cuts = [MAY.start, datetime(2026, 5, 14, 6, tzinfo=UTC), datetime(2026, 5, 14, 7, tzinfo=UTC), MAY.end]
    parts = metering.usage_by_user(instance=opened, bounds=cuts)
    assert [part["alice"][0] for part in parts] == [6 * GB, GB, 17 * GB]


def test_byte_seconds_beyond_64_bits_are_summed(opened):
    """Three hours of 2^62 each are more than SQLite's integers hold."""
    raised(
        [
            row(opened.id, f"2026-05-02T0{number}", 0, topic="huge", stored=2**62, boot=f"b{number}")
            for number in range(3)
        ]
    )
    [found] = metering.usage_by_topic(instance=opened, bounds=[MAY.start, MAY.end])
    assert found["huge"] == (0, 0, 3 * 2**62)


def test_usage_by_topic_is_cut_at_the_bounds_and_the_hours_add_up(opened):
    cuts = [MAY.start, datetime(2026, 5, 14, tzinfo=UTC), datetime(2026, 5, 14, 1, tzinfo=UTC), MAY.end]
    parts = metering.usage_by_topic(instance=opened, bounds=cuts)
    assert [part["orders"][0] for part in parts] == [12 * GB, GB, 155 * GB]


class TestOfAnOrganisation:
    """What `costs_refresh` keeps, and its sums."""

    def test_sums_are_those_of_the_instances(self, alice, charlie, opened, monkeypatch):
        other, _ = instances.instance_create(organisation=alice.organisation, actor="a", **{**WANTED, "name": "other"})
        Instance.objects.unscoped("a test").filter(pk=other.pk).update(created_at=datetime(2026, 5, 3, tzinfo=UTC))
        assert costs.costs_refresh(clock=clock()) == 3  # the first of them existed in April, too
        at(monkeypatch, NOW)
        body = alice.api.get("/api/v1/cost").json()
        assert body["totals"] == [{"currency": "CNY", "so_far": "100.80", "forecast": "266.40", "instances": 2}]
        assert (body["missing"], body["computed_at"]) == (0, "2026-05-20T12:30:00Z")
        rows = alice.api.get("/api/v1/cost/instances").json()["items"]
        assert {each["instance_id"]: each["forecast"] for each in rows} == {opened.id: "266.40", other.id: "0.00"}
        assert charlie.api.get("/api/v1/cost").json()["totals"] == []
        assert charlie.api.get("/api/v1/cost/instances").json()["items"] == []

    def test_pages_go_on_where_the_one_before_ended(self, alice, opened, monkeypatch):
        other, _ = instances.instance_create(organisation=alice.organisation, actor="a", **{**WANTED, "name": "other"})
        Instance.objects.unscoped("a test").filter(pk=other.pk).update(created_at=datetime(2026, 5, 3, tzinfo=UTC))
        costs.costs_refresh(clock=clock())
        at(monkeypatch, NOW)
        first = alice.api.get("/api/v1/cost/instances?limit=1").json()
        second = alice.api.get(f"/api/v1/cost/instances?limit=1&cursor={first['next']}").json()
        assert {first["items"][0]["instance_id"], second["items"][0]["instance_id"]} == {opened.id, other.id}
        assert second["next"] is None

    def test_instances_that_were_not_computed_yet_are_said_to_be_missing(self, alice, opened, monkeypatch):
        at(monkeypatch, NOW)
        body = alice.api.get("/api/v1/cost").json()
        assert (body["totals"], body["missing"], body["computed_at"]) == ([], 1, None)

    def test_what_is_young_is_left_and_what_is_old_computed_again(self, opened):
        costs.costs_refresh(clock=clock())
        assert costs.costs_refresh(clock=clock(NOW + timedelta(minutes=14))) == 0
        raised([row(opened.id, "2026-05-20T12", 200 * GB)])
        assert costs.costs_refresh(clock=clock(NOW + timedelta(minutes=15))) == 2
        found = MonthCost.objects.unscoped("a test").get(month="2026-05")
        assert found.so_far == Decimal("120.00")

    def test_the_month_before_is_computed_until_it_is_invoiced_and_then_no_more(self, opened):
        usage_complete(datetime(2026, 6, 1, 2, tzinfo=UTC))
        later = datetime(2026, 6, 1, 5, tzinfo=UTC)
        costs.costs_refresh(clock=clock(later))
        may = MonthCost.objects.unscoped("a test").get(month="2026-05")
        assert (may.is_final, may.so_far, may.forecast) == (False, Decimal("100.80"), Decimal("100.80"))
        closing.invoice_close(instance=opened, month=MAY, now=later + timedelta(hours=2))
        costs.costs_refresh(clock=clock(later + timedelta(hours=2)))
        may.refresh_from_db()
        assert may.is_final
        costs.costs_refresh(clock=clock(later + timedelta(hours=4)))
        assert MonthCost.objects.unscoped("a test").get(month="2026-05").computed_at == may.computed_at

    def test_a_month_that_was_invoiced_long_after_its_end_is_what_its_invoice_says(self, opened):
        usage_complete(datetime(2026, 6, 1, 2, tzinfo=UTC))
        costs.costs_refresh(clock=clock(datetime(2026, 6, 30, 23, tzinfo=UTC)))
        raised([row(opened.id, "2026-05-20T13", 300 * GB)])
        much_later = datetime(2026, 8, 3, tzinfo=UTC)
        costs.costs_refresh(clock=clock(much_later))
        may = MonthCost.objects.unscoped("a test").get(month="2026-05")
        assert (may.is_final, may.so_far) == (False, Decimal("100.80")), "it waits for its invoice"
        closing.invoice_close(instance=opened, month=MAY, now=much_later)
        costs.costs_refresh(clock=clock(much_later + timedelta(minutes=1)))
        may.refresh_from_db()
        invoice = Invoice.objects.unscoped("a test").get(month="2026-05")
        assert (may.is_final, may.so_far) == (True, invoice.total)
        assert may.so_far > Decimal("100.80")

    def test_one_that_cannot_be_computed_is_no_obstacle_to_the_others(self, alice, opened, monkeypatch):
        other, _ = instances.instance_create(organisation=alice.organisation, actor="a", **{**WANTED, "name": "other"})
        Instance.objects.unscoped("a test").update(created_at=datetime(2026, 5, 3, tzinfo=UTC))
        inputs_of = selectors.inputs_of

        def of_all_but_one(instance, *arguments, **options):
            if instance.id == opened.id:
                raise ValueError("no plan knows this")
            return inputs_of(instance, *arguments, **options)

        monkeypatch.setattr(selectors, "inputs_of", of_all_but_one)
        assert costs.costs_refresh(clock=clock()) == 1
        assert MonthCost.objects.unscoped("a test").get().instance_id == other.id

    def test_a_database_that_is_away_ends_the_round(self, opened, monkeypatch):
        def away(**_arguments):
            raise OperationalError("away")

        monkeypatch.setattr(costs, "cost_get", away)
        with pytest.raises(OperationalError):
            costs.costs_refresh(clock=clock())

    def test_a_round_ends_in_time(self, opened):
        assert costs.costs_refresh(clock=clock(), until_s=0.0) == 0


def text(amount: Decimal) -> str:
    return f"{amount:.2f}"
