"""Budgets by REST: owners decide, everybody in the organisation looks."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from controlplane.alarms.models import Receiver
from controlplane.billing import selectors as billing
from controlplane.budgets.models import Budget, BudgetAlert
from controlplane.budgets.rules import MOST_BUDGETS
from controlplane.core.models import AuditEntry
from controlplane.instances.models import Instance, InstanceState
from tests.controlplane.alarms.rows import receiver_row
from tests.controlplane.billing.test_bill_api import at
from tests.controlplane.test_instances_api import problem

from .rows import LONG_AGO, ROWS, alert_row, budget_row, cost_row

PATH = "/api/v1/budgets"
NOW = datetime(2026, 5, 14, 0, 20, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _today(monkeypatch):
    at(monkeypatch, NOW)


def made(person, **members) -> dict:
    answer = person.api.post(PATH, {"name": "sea", "amount": "1500.00"} | members)
    assert answer.status_code == 201, answer.content
    return answer.json()


def test_a_name_and_an_amount_are_enough(alice):
    body = made(alice)
    assert body == {
        "id": body["id"], "name": "sea", "instance_id": None, "amount": "1500.00", "currency": "CNY",
        "actual_percents": [50, 80, 100], "forecast_percents": [100], "receivers": [],
        "created_at": "2026-05-14T00:20:00Z", "month": "2026-05", "so_far": None, "forecast": None, "percent": None,
        "forecast_percent": None, "counted_until": None,
    }  # fmt: skip
    assert body["id"].startswith("bud-")
    assert alice.api.get(f"{PATH}/{body['id']}").json() == body


def test_all_members(alice, instance):
    receiver = receiver_row(instance)
    cost_row(instance, 333, 1666)
    body = made(
        alice, instance_id=instance.id, actual_percents=[90, 10], forecast_percents=[], receivers=[receiver.pk] * 2
    )
    assert (body["instance_id"], body["actual_percents"], body["forecast_percents"]) == (instance.id, [10, 90], [])
    assert body["receivers"] == [receiver.pk]
    assert (body["so_far"], body["forecast"], body["percent"], body["forecast_percent"]) == (
        "333.00",
        "1666.00",
        22,
        111,
    )
    assert body["counted_until"] == "2026-05-14T00:00:00Z"


def test_everybody_looks_and_owners_change(alice, bob, viewer, charlie):
    budget_id = made(alice)["id"]
    for person in (bob, viewer):
        assert [each["id"] for each in person.api.get(PATH).json()["items"]] == [budget_id]
        assert person.api.get(f"{PATH}/{budget_id}").status_code == 200
        assert person.api.get(f"{PATH}/{budget_id}/alerts").json() == {"items": [], "next": None}
        problem(person.api.post(PATH, {"name": "mine", "amount": "1"}), 403, "forbidden")
        problem(person.api.patch(f"{PATH}/{budget_id}", {"amount": "1"}), 403, "forbidden")
        problem(person.api.delete(f"{PATH}/{budget_id}"), 403, "forbidden")
    assert charlie.api.get(PATH).json()["items"] == []
    assert Budget.objects.unscoped(ROWS).get().amount == Decimal("1500.00")


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"name": " "}, "name"), ({"name": "a\nb"}, "name"), ({"amount": "0"}, "amount"), ({"amount": "0.00"}, "amount"),
        ({"amount": "-1"}, "amount"), ({"amount": "1.005"}, "amount"), ({"amount": "a lot"}, "amount"),
        ({"amount": 5}, "amount"), ({"amount": "9999999999999"}, "amount"), ({"amount": "1e5"}, "amount"),
        ({"actual_percents": [0]}, "actual_percents"), ({"actual_percents": [50, 50]}, "actual_percents"),
        ({"forecast_percents": ["x"]}, "forecast_percents"), ({"receivers": ["rcv-000000000099"]}, "receivers.0"),
        ({"currency": "EUR"}, "currency"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_by_name(alice, members, field):
    body = problem(alice.api.post(PATH, {"name": "sea", "amount": "1500.00"} | members), 400, "invalid")
    assert {error["field"].partition(".")[0] for error in body["errors"]} == {field.partition(".")[0]}
    assert Budget.objects.unscoped(ROWS).count() == 0


def test_all_that_is_wrong_is_said_at_once(alice):
    body = problem(alice.api.post(PATH, {"name": "", "amount": "-1", "actual_percents": [0]}), 400, "invalid")
    assert [error["field"] for error in body["errors"]] == ["name", "amount", "actual_percents.0"]


def test_receivers_and_instances_of_others_do_not_exist(alice, charlie, instance):
    receiver = receiver_row(instance)
    refused = problem(charlie.api.post(PATH, {"name": "b", "amount": "1", "receivers": [receiver.pk]}), 400, "invalid")
    assert refused["errors"] == [{"field": "receivers.0", "detail": "no such receiver"}]
    problem(charlie.api.post(PATH, {"name": "b", "amount": "1", "instance_id": instance.id}), 404, "not_found")


def test_an_instance_that_is_gone_gets_no_budget(alice, instance):
    Instance.objects.unscoped(ROWS).update(state=InstanceState.DELETED)
    problem(alice.api.post(PATH, {"name": "b", "amount": "1", "instance_id": instance.id}), 404, "not_found")


def test_one_member_is_changed_and_the_others_stay(alice, instance):
    receiver = receiver_row(instance)
    before = made(alice, receivers=[receiver.pk])
    after = alice.api.patch(f"{PATH}/{before['id']}", {"amount": "2000"}).json()
    assert after == before | {"amount": "2000.00"}
    after = alice.api.patch(f"{PATH}/{before['id']}", {"receivers": [], "name": " lake "}).json()
    assert after == before | {"amount": "2000.00", "receivers": [], "name": "lake"}
    problem(alice.api.patch(f"{PATH}/{before['id']}", {}), 400, "invalid")


def test_a_budget_stays_with_its_instance(alice, instance):
    budget_id = made(alice)["id"]
    problem(alice.api.patch(f"{PATH}/{budget_id}", {"instance_id": instance.id}), 400, "invalid")


def test_what_a_month_before_was_judged_by_is_known(alice, monkeypatch):
    row = budget_row(alice.organisation)
    alice.api.patch(f"{PATH}/{row.pk}", {"name": "other", "amount": "1000.00"})
    row.refresh_from_db()
    assert row.decided_at == LONG_AGO
    alice.api.patch(f"{PATH}/{row.pk}", {"actual_percents": [60]})
    row.refresh_from_db()
    assert row.decided_at == NOW


def test_history_is_the_newest_first_with_what_was_so_then(alice):
    row = budget_row(alice.organisation)
    alert_row(row)
    alert_row(row, kind="forecast", percent=100, at=NOW, messages=0)
    first = alice.api.get(f"{PATH}/{row.pk}/alerts?limit=1").json()
    assert first["items"] == [
        {
            "at": "2026-05-14T00:20:00Z", "month": "2026-05", "kind": "forecast", "percent": 100, "amount": "1000.00",
            "so_far": "512.30", "forecast": "980.00", "counted_until": "2026-05-14T00:00:00Z", "messages": 0,
        }
    ]  # fmt: skip
    second = alice.api.get(f"{PATH}/{row.pk}/alerts?limit=1&cursor={first['next']}").json()
    assert [each["kind"] for each in second["items"]] == ["actual"]


def test_deleting_it(alice):
    row = budget_row(alice.organisation)
    alert_row(row)
    assert alice.api.delete(f"{PATH}/{row.pk}").status_code == 204
    problem(alice.api.get(f"{PATH}/{row.pk}"), 404, "not_found")
    assert BudgetAlert.objects.unscoped(ROWS).count() == 0


def test_there_are_so_many_and_no_more(alice):
    for number in range(MOST_BUDGETS):
        budget_row(alice.organisation, budget_id=f"bud-{number:012}")
    problem(alice.api.post(PATH, {"name": "b", "amount": "1"}), 409, "too_many_budgets")


def test_what_was_decided_is_on_record(alice, instance):
    receiver = receiver_row(instance)
    budget_id = made(alice)["id"]
    alice.api.patch(f"{PATH}/{budget_id}", {"amount": "20", "name": "sea"})
    alice.api.patch(f"{PATH}/{budget_id}", {"receivers": [receiver.pk]})
    alice.api.patch(f"{PATH}/{budget_id}", {"receivers": [receiver.pk], "amount": "20.00"})  # nothing is different
    alice.api.delete(f"{PATH}/{budget_id}")
    rows = AuditEntry.objects.unscoped(ROWS).filter(target=budget_id).order_by("pk")
    assert [(row.action, row.detail) for row in rows] == [
        (
            "budget.create",
            {
                "name": "sea", "amount": "1500.00", "actual_percents": [50, 80, 100], "forecast_percents": [100],
                "instance_id": None, "currency": "CNY", "receivers": [],
            },
        ),
        ("budget.update", {"amount": {"from": "1500.00", "to": "20.00"}}),
        ("budget.update", {"receivers": {"from": [], "to": [receiver.pk]}}),
        (
            "budget.delete",
            {
                "name": "sea", "amount": "20.00", "actual_percents": [50, 80, 100], "forecast_percents": [100],
                "receivers": [receiver.pk],
            },
        ),
    ]  # fmt: skip
    assert Receiver.objects.unscoped(ROWS).count() == 1


def test_it_is_in_the_currency_of_the_plan(alice, monkeypatch):
    class Elsewhere:
        currency = "EUR"

    monkeypatch.setattr("controlplane.budgets.services.plan_of", lambda **_about: Elsewhere)
    assert made(alice)["currency"] == "EUR"
    assert billing.plan_of(organisation=alice.organisation, at=NOW).currency == "CNY"
