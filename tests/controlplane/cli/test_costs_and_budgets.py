"""`sluice cost` and `sluice budget`: what a month costs, and what it may cost."""

from __future__ import annotations

import pytest

from controlplane.budgets.models import Budget
from tests.controlplane.alarms.rows import receiver_row
from tests.controlplane.budgets.rows import ROWS, alert_row, budget_row, cost_row


def test_costs_are_what_rest_answers(ok, alice, instance):
    cost_row(instance, "10.50", "20.75")
    for words, path in (
        (("total", "--month", "2026-05"), "cost?month=2026-05"),
        (("show", instance.id, "--month", "2024-05"), f"instances/{instance.id}/cost?month=2024-05"),
        (
            ("topics", instance.name, "--most", "5", "--month", "2024-05"),
            f"instances/{instance.id}/cost/topics?most=5&month=2024-05",
        ),
        (
            ("users", instance.name, "--most", "5", "--month", "2024-05"),
            f"instances/{instance.id}/cost/users?most=5&month=2024-05",
        ),
    ):
        assert ok("cost", *words, "-o", "json").json == alice.api.get(f"/api/v1/{path}").json()
    table = ok("cost", "instances", "--month", "2026-05").out
    assert "10.50" in table
    assert "20.75" in table


def test_the_life_of_a_budget(ok, sluice, instance):
    receiver = receiver_row(instance)
    made = ok(
        "budget", "create", "sea", "1500", "--instance", instance.name, "--actual", "90", "--actual", "10",
        "--receiver", receiver.pk, "-o", "json",
    ).json  # fmt: skip
    assert (made["instance_id"], made["amount"], made["actual_percents"]) == (instance.id, "1500.00", [10, 90])
    assert (made["forecast_percents"], made["receivers"]) == ([100], [receiver.pk])
    changed = ok("budget", "alter", made["id"], "--amount", "20", "--no-receivers", "-o", "json").json
    assert (changed["amount"], changed["receivers"]) == ("20.00", [])
    assert sluice("budget", "alter", made["id"]).status == 2
    assert "sea" in ok("budget", "list").out
    assert f"{made['id']} is deleted" in ok("budget", "delete", made["id"], "--yes").err
    assert Budget.objects.unscoped(ROWS).count() == 0


def test_history_is_a_table(ok, alice):
    row = budget_row(alice.organisation)
    alert_row(row)
    assert "512.30" in ok("budget", "history", row.pk).out


@pytest.mark.parametrize("amount", ["0", "a-lot"])
def test_an_amount_that_is_none_is_refused_with_the_reason(ok, sluice, amount):
    ok("budget", "list")
    answer = sluice("budget", "create", "sea", amount)
    assert answer.status == 1
    assert "above 0" in answer.err


def test_what_if_is_what_rest_answers(ok, alice, instance):
    said = ok(
        "cost", "what-if", instance.name, "--month", "2024-05", "--bandwidth", "40", "--plan", "pro", "-o", "json"
    ).json
    path = f"/api/v1/instances/{instance.id}/what-if?month=2024-05&bandwidth_mib_per_s=40&plan=pro"
    assert said == alice.api.get(path).json()
