"""Budgets in the console."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from controlplane.budgets.models import Budget, BudgetReceiver
from tests.controlplane.alarms.rows import receiver_row
from tests.controlplane.billing.test_bill_api import at
from tests.controlplane.budgets.rows import ROWS, alert_row, budget_row, cost_row

from .conftest import problem_beside, text_of

FORM = {"name": "sea", "amount": "1500", "actual_percents": "50, 80 100%", "forecast_percents": "", "receivers": []}


@pytest.fixture(autouse=True)
def _today(monkeypatch):
    at(monkeypatch, datetime(2026, 5, 14, 0, 20, tzinfo=UTC))


def test_the_first_budget(at_alice, instance):
    assert "No budget yet" in text_of(at_alice.get("budgets"))
    receiver = receiver_row(instance)
    page = at_alice.post("new-budget", FORM | {"receivers": [receiver.pk], "instance": instance.id}, follow=True)
    assert "sea is looked at every five minutes" in text_of(page)
    made = Budget.objects.unscoped(ROWS).get()
    assert (made.amount, made.currency, made.instance_id) == (Decimal("1500.00"), "CNY", instance.id)
    assert (made.actual_percents, made.forecast_percents) == ([50, 80, 100], [])
    assert BudgetReceiver.objects.unscoped(ROWS).get().receiver_id == receiver.pk


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("name", " ", "required"),
        ("amount", "0", "above 0"),
        ("amount", "1.234", "two decimals"),
        ("actual_percents", "0", "from 1 to 1000"),
        ("actual_percents", "half", "from 1 to 1000"),
        ("forecast_percents", "90, 90", "one twice"),
        ("instance", "ins-00000000", "No instance"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(at_alice, field, value, said):
    page = at_alice.post("new-budget", FORM | {field: value})
    assert page.status_code == 422
    assert said in problem_beside(page, field)
    assert Budget.objects.unscoped(ROWS).count() == 0


def test_a_receiver_that_is_gone_is_refused(at_alice):
    page = at_alice.post("new-budget", FORM | {"receivers": ["rcv-000000000099"]})
    assert page.status_code == 422
    assert "not one of the available choices" in text_of(page)
    assert Budget.objects.unscoped(ROWS).count() == 0


def test_how_it_stands_and_what_it_told(at_alice, alice, instance):
    row = budget_row(alice.organisation, receiver_row(instance))
    alert_row(row)
    alert_row(row, kind="forecast", percent=100, messages=0)
    cost_row(instance, "512.30", "1234.50")
    listed = text_of(at_alice.get("budgets"))
    assert "all of it All instances CNY 1 000.00 512.30 (51 %)" in listed.replace("\N{NARROW NO-BREAK SPACE}", " ")
    shown = text_of(at_alice.get(f"budgets/{row.pk}")).replace("\N{NARROW NO-BREAK SPACE}", " ")
    assert "CNY 1 234.50 (123 %)" in shown
    assert "50 % used 1 receiver told" in shown
    assert "Forecast at 100 % no message of its own" in shown


def test_changing_and_deleting_it(at_alice, alice):
    row = budget_row(alice.organisation)
    page = at_alice.post(f"budgets/{row.pk}", FORM | {"amount": "20.50"}, follow=True)
    assert "The budget was changed" in text_of(page)
    row.refresh_from_db()
    assert (row.name, row.amount, row.forecast_percents) == ("sea", Decimal("20.50"), [])
    page = at_alice.post(f"budgets/{row.pk}/delete", follow=True)
    assert "sea was deleted" in text_of(page)
    assert Budget.objects.unscoped(ROWS).count() == 0


def test_members_and_viewers_look_and_do_not_decide(at_bob, at_viewer, alice):
    row = budget_row(alice.organisation)
    for visitor in (at_bob, at_viewer):
        assert "Change it" not in text_of(visitor.get(f"budgets/{row.pk}"))
        assert "New budget" not in text_of(visitor.get("budgets"))
        assert "Owners of the organisation and its billing role make budgets" in text_of(visitor.get("new-budget"))
        for path in ("new-budget", f"budgets/{row.pk}", f"budgets/{row.pk}/delete"):
            refused = visitor.post(path, FORM)
            assert refused.status_code == 403
    assert "nly owners of the organisation and its billing role decide this" in text_of(at_bob.post("new-budget", FORM))
    row.refresh_from_db()
    assert row.name == "all of it"


def test_receivers_of_all_instances_can_be_chosen(at_alice, instance, charlie):
    receiver_row(instance)
    page = text_of(at_alice.get("new-budget"))
    assert f"pager of {instance.name}" in page


def test_the_bills_page_leads_to_them(at_alice, instance):
    assert f"/{at_alice.organisation.id}/budgets" in at_alice.get("bills").content.decode()
