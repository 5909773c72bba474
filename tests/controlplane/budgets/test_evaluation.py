"""Thresholds that are reached are noted and told, once for each month, whoever looks and however often."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import OperationalError

from controlplane.alarms import upkeep
from controlplane.alarms.delivery import outbox
from controlplane.alarms.delivery.limits import MOST_PER_HOUR
from controlplane.alarms.models import Delivery, Receiver
from controlplane.alarms.receivers import receiver_delete
from controlplane.billing import costs
from controlplane.budgets import evaluation
from controlplane.budgets.models import BudgetAlert, BudgetReceiver
from controlplane.budgets.services import budget_create, budget_delete, budget_update
from controlplane.instances import services as instances
from controlplane.instances.models import Instance, InstanceState
from tests.controlplane.alarms.conftest import hook, inside, mail  # noqa: F401  # fixtures
from tests.controlplane.alarms.rows import KEY, receiver_row
from tests.controlplane.alarms.verifying import verified
from tests.controlplane.conftest import WANTED
from tests.controlplane.fakes import ManualClock

from .rows import ROWS, alert_row, budget_row, cost_row

NOW = datetime(2026, 5, 14, 0, 20, tzinfo=UTC)


@pytest.fixture
def now() -> ManualClock:
    clock = ManualClock()
    clock.time = NOW
    return clock


@pytest.fixture
def pager(instance):
    return receiver_row(instance)


@pytest.fixture
def budget(alice, pager):
    return budget_row(alice.organisation, pager)


def alerts():
    rows = BudgetAlert.objects.unscoped(ROWS).order_by("at", "kind", "percent")
    return [(row.month, row.kind, row.percent, row.messages) for row in rows]


def messages():
    return [row.document for row in Delivery.objects.unscoped(ROWS).order_by("created_at", "pk")]


def test_a_threshold_that_is_reached_is_told(alice, instance, budget, now):
    cost_row(instance, "512.30", "980.00")
    assert evaluation.evaluate(clock=now) == 1
    assert alerts() == [("2026-05", "actual", 50, 1)]
    (document,) = messages()
    assert document["type"] == "budget.reached"
    assert document["timestamp"] == "2026-05-14T00:20:00Z"
    text = document["data"].pop("text")
    assert document["data"] == {
        "organisation": {"id": alice.organisation.id, "name": "alice's"},
        "instance": None,
        "budget": {"id": budget.pk, "name": "all of it", "amount": "1000.00", "currency": "CNY"},
        "month": "2026-05",
        "kind": "actual",
        "percent": 50,
        "lower_percents": [],
        "so_far": "512.30",
        "forecast": "980.00",
        "counted_until": "2026-05-14T00:00:00Z",
    }
    assert text == (
        "The cost of all instances in 2026-05 is CNY 512.30 so far, which is 50 % of the budget of CNY 1000.00 or more."
        " At the month's end it will be CNY 980.00 if use goes on as in the last seven days."
    )


def test_it_is_told_once_however_often_it_is_looked_at(instance, budget, now):
    for cost in ("512.30", "513.00", "499.00", "600.00"):
        cost_row(instance, cost, "980.00")
        evaluation.evaluate(clock=now)
        now.advance(300)
    assert alerts() == [("2026-05", "actual", 50, 1)]
    assert len(messages()) == 1


def test_each_threshold_is_told_when_it_is_reached(instance, budget, now):
    for so_far, forecast in ((100, 999), (400, 1000), (500, 900), (800, 1100), (1000, 1100), (5000, 9000)):
        cost_row(instance, so_far, forecast)
        evaluation.evaluate(clock=now)
        now.advance(300)
    told = [(each["data"]["kind"], each["data"]["percent"]) for each in messages()]
    assert told == [("forecast", 100), ("actual", 50), ("actual", 80), ("actual", 100)]


def test_of_several_at_once_the_highest_is_told_and_all_are_noted(instance, budget, now):
    cost_row(instance, 900, 1500)
    assert evaluation.evaluate(clock=now) == 3
    assert alerts() == [("2026-05", "actual", 50, 0), ("2026-05", "actual", 80, 1), ("2026-05", "forecast", 100, 1)]
    assert [(each["data"]["percent"], each["data"]["lower_percents"]) for each in messages()] in (
        [(80, [50]), (100, [])], [(100, []), (80, [50])],
    )  # fmt: skip


def test_a_new_month_begins_anew(instance, budget, now):
    cost_row(instance, 600, 900)
    evaluation.evaluate(clock=now)
    now.time = datetime(2026, 6, 20, tzinfo=UTC)
    cost_row(instance, 600, 900, month="2026-06")
    evaluation.evaluate(clock=now)
    assert alerts() == [("2026-05", "actual", 50, 1), ("2026-06", "actual", 50, 1)]


def test_what_is_counted_after_the_months_end_is_told_then(instance, budget, now):
    now.time = datetime(2026, 6, 1, 1, tzinfo=UTC)
    cost_row(instance, 1001, 1001)
    cost_row(instance, 0, 0, month="2026-06")
    evaluation.evaluate(clock=now)
    assert alerts() == [("2026-05", "actual", 50, 0), ("2026-05", "actual", 80, 0), ("2026-05", "actual", 100, 1)]
    assert "was CNY 1001.00" in messages()[0]["data"]["text"]


def test_a_month_that_is_over_is_not_judged_by_what_was_decided_since(alice, instance, now):
    now.time = datetime(2026, 6, 1, 1, tzinfo=UTC)
    budget_row(alice.organisation, decided_at=datetime(2026, 6, 1, tzinfo=UTC))
    cost_row(instance, 1001, 1001)
    assert evaluation.evaluate(clock=now) == 0


def test_with_another_amount_it_is_told_anew_and_with_the_old_one_again_not(alice, instance, budget, now):
    about = {"organisation": alice.organisation, "actor": "alice", "budget_id": budget.pk, "clock": now}
    cost_row(instance, 1000, 1000)
    evaluation.evaluate(clock=now)
    budget_update(**about, changes={"amount": "1250.00"})
    assert evaluation.evaluate(clock=now) == 2  # 50 and 80 % of the new one
    budget_update(**about, changes={"amount": "1000.00"})
    assert evaluation.evaluate(clock=now) == 0


class TestWhatIsCompared:
    """Of all instances of the organisation, or of one; in the budget's currency."""

    @pytest.fixture
    def other(self, alice):
        made, _ = instances.instance_create(organisation=alice.organisation, actor="a", **{**WANTED, "name": "other"})
        return made

    def test_all_instances_together(self, instance, other, budget, now):
        cost_row(instance, 300, 300)
        cost_row(other, 200, 200)
        evaluation.evaluate(clock=now)
        assert alerts() == [("2026-05", "actual", 50, 1)]

    def test_one_instance_alone(self, alice, instance, other, pager, now):
        budget_row(alice.organisation, pager, instance=other, amount=Decimal(100))
        cost_row(instance, 300, 300)
        cost_row(other, "49.99", 60)
        assert evaluation.evaluate(clock=now) == 0
        cost_row(other, "50.00", 60)
        evaluation.evaluate(clock=now)
        (document,) = messages()
        assert document["data"]["instance"] == {"id": other.id, "name": "other"}
        assert document["data"]["text"].startswith("The cost of other in 2026-05 is CNY 50.00 so far")

    def test_another_organisations_costs_are_nobodys_business(self, charlie, instance, now):
        budget_row(charlie.organisation)
        cost_row(instance, 5000, 5000)
        assert evaluation.evaluate(clock=now) == 0

    def test_another_currency_is_not_compared(self, instance, budget, now):
        cost_row(instance, 5000, 5000, currency="EUR")
        assert evaluation.evaluate(clock=now) == 0

    def test_nothing_is_told_before_anything_is_computed(self, budget, now):
        assert evaluation.evaluate(clock=now) == 0

    def test_the_costs_are_those_that_billing_keeps(self, alice, instance, now):
        """From the instance's size to the message: 20 MB/s at 1.34 an hour."""
        budget_row(alice.organisation, amount=Decimal("0.01"))
        costs.costs_refresh()
        now.time = datetime.now(UTC)
        assert evaluation.evaluate(clock=now) == 3


class TestWhoIsTold:
    """Receivers of alarms, of any instance of the organisation."""

    def test_a_webhook_gets_a_signed_message_once(self, alice, instance, now, hook, inside):  # noqa: F811
        budget_row(alice.organisation, receiver_row(instance, address=hook.url))
        cost_row(instance, 512, 980)
        evaluation.evaluate(clock=now)
        assert outbox.send_due(clock=now) == 1
        (taken,) = hook.taken
        assert taken.document["type"] == "budget.reached"
        assert verified(KEY, taken.headers, taken.body)
        evaluation.evaluate(clock=now)
        assert outbox.send_due(clock=now) == 0

    def test_a_person_gets_a_mail(self, alice, instance, now, mail):  # noqa: F811
        receiver = receiver_row(instance, kind="email", address="bob@example.com", secret=b"")
        budget_row(alice.organisation, receiver, name="sea")
        cost_row(instance, 900, 980)
        evaluation.evaluate(clock=now)
        outbox.send_due(clock=now)
        (taken,) = mail.mails
        body = taken.get_content()
        assert taken["Subject"] == "[Budget] sea: 80 % used"
        assert "CNY 900.00 so far" in body
        assert "Thresholds below that were reached with it: 50 %" in body
        assert "Organisation: alice's" in body

    def test_an_address_that_is_not_confirmed_gets_none(self, alice, instance, now):
        budget_row(
            alice.organisation, receiver_row(instance, kind="email", code="abcdefghij", address="bob@example.com")
        )
        cost_row(instance, 900, 980)
        evaluation.evaluate(clock=now)
        assert messages() == []
        assert [row[-1] for row in alerts()] == [0, 0]

    def test_a_receiver_that_is_deleted_is_told_no_more_and_the_budget_stays(self, alice, instance, budget, pager, now):
        receiver_delete(organisation=alice.organisation, actor="a", instance_id=instance.id, receiver_id=pager.pk)
        cost_row(instance, 900, 980)
        assert evaluation.evaluate(clock=now) == 2
        assert messages() == []

    def test_receivers_of_an_instance_that_is_gone_go_and_the_budget_stays(self, instance, budget, now):
        Instance.objects.unscoped(ROWS).update(state=InstanceState.DELETED)
        upkeep.keep_up(clock=now)
        assert Receiver.objects.unscoped(ROWS).count() == BudgetReceiver.objects.unscoped(ROWS).count() == 0
        cost_row(instance, 900, 980)
        assert evaluation.evaluate(clock=now) == 2

    def test_a_receiver_gets_no_more_messages_an_hour_than_of_alarms(self, alice, instance, pager, now):
        for number in range(MOST_PER_HOUR + 2):
            budget_row(alice.organisation, pager, budget_id=f"bud-{number:012}", forecast_percents=[])
        cost_row(instance, 600, 600)
        evaluation.evaluate(clock=now)
        states = list(Delivery.objects.unscoped(ROWS).values_list("state", flat=True))
        assert (states.count("waiting"), states.count("failed")) == (MOST_PER_HOUR, 2)


class TestWorkers:
    """What one does another need not."""

    def test_the_second_of_two_finds_what_the_first_has_told(self, instance, budget, now, monkeypatch):
        """Both have read costs; the slower one comes to write when the faster one has."""
        cost_row(instance, 512, 980)
        real = evaluation._alert

        def slower(*arguments, **options):
            real(*arguments, **options)
            return real(*arguments, **options)

        monkeypatch.setattr(evaluation, "_alert", slower)
        assert evaluation.evaluate(clock=now) == 0
        assert len(messages()) == len(alerts()) == 1

    def test_one_that_dies_before_it_is_done_has_told_nothing(self, instance, budget, now, monkeypatch):
        cost_row(instance, 512, 980)

        class Died(BaseException):
            pass

        written = outbox.write_budget

        def dies(*arguments, **options):
            assert written(*arguments, **options) == 1
            raise Died

        with monkeypatch.context() as patched:
            patched.setattr(outbox, "write_budget", dies)
            with pytest.raises(Died):
                evaluation.evaluate(clock=now)
        assert messages() == alerts() == []
        assert evaluation.evaluate(clock=now) == 1

    def test_a_budget_that_was_changed_meanwhile_is_left_to_the_next_look(
        self, alice, instance, budget, now, monkeypatch
    ):
        cost_row(instance, 512, 980)
        real = evaluation._alert

        def changed(*arguments, **options):
            about = {"organisation": alice.organisation, "actor": "a", "budget_id": budget.pk}
            budget_update(**about, changes={"amount": "5000"}, clock=now)
            return real(*arguments, **options)

        monkeypatch.setattr(evaluation, "_alert", changed)
        assert evaluation.evaluate(clock=now) == 0
        assert alerts() == []

    def test_one_budget_that_cannot_be_looked_at_keeps_no_other(self, alice, instance, budget, now, monkeypatch):
        budget_row(alice.organisation, budget_id="bud-000000000002")
        cost_row(instance, 512, 980)
        real = evaluation._alert

        def all_but_one(row, *arguments, **options):
            if row.pk == budget.pk:
                raise ValueError("ill")
            return real(row, *arguments, **options)

        monkeypatch.setattr(evaluation, "_alert", all_but_one)
        assert evaluation.evaluate(clock=now) == 1

    def test_a_database_that_is_away_ends_the_look(self, instance, budget, now, monkeypatch):
        cost_row(instance, 512, 980)

        def away(*_arguments, **_options):
            raise OperationalError("away")

        monkeypatch.setattr(evaluation, "_alert", away)
        with pytest.raises(OperationalError):
            evaluation.evaluate(clock=now)

    def test_the_number_of_queries_does_not_grow_with_budgets_that_are_quiet(
        self, alice, instance, now, django_assert_num_queries
    ):
        for number in range(20):
            budget_row(alice.organisation, budget_id=f"bud-{number:012}")
        cost_row(instance, 1, 2)
        with django_assert_num_queries(3):
            evaluation.evaluate(clock=now)


def test_deleting_a_budget_takes_its_history_and_leaves_messages(alice, instance, budget, now):
    alert_row(budget, month="2026-04", at=NOW - timedelta(days=20))
    cost_row(instance, 512, 980)
    evaluation.evaluate(clock=now)
    budget_delete(organisation=alice.organisation, actor="alice", budget_id=budget.pk)
    assert alerts() == []
    assert len(messages()) == 1


def test_one_that_is_made_late_in_a_month_is_told_at_once(alice, instance, pager, now):
    cost_row(instance, 700, 800)
    budget_create(
        organisation=alice.organisation, actor="alice", name="late", amount="1000", receivers=[pager.pk], clock=now
    )
    evaluation.evaluate(clock=now)
    assert alerts() == [("2026-05", "actual", 50, 1)]
