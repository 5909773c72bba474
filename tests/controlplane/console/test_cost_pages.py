"""Cost so far, forecast, cost by topic and by user in the console."""

from __future__ import annotations

import pytest

from controlplane.billing import costs
from controlplane.billing.models import PlanChoice
from tests.controlplane.billing.test_bill_api import at
from tests.controlplane.billing.test_costs import GB, NOW, clock, opened  # noqa: F401  # a fixture
from tests.support.usage import user_row, users_raise

from .conftest import text_of


@pytest.fixture(autouse=True)
def _today(monkeypatch):
    at(monkeypatch, NOW)


def test_the_bill_says_what_the_month_will_have_cost_and_by_what(at_alice, opened):  # noqa: F811
    page = text_of(at_alice.get(f"instances/{opened.id}/bill"))
    assert "Until now CNY 100.80" in page
    assert "Forecast to the month\N{RIGHT SINGLE QUOTATION MARK}s end CNY 266.40" in page
    assert "as in the 168 hours from 2026-05-13 12:00 UTC to 2026-05-20 12:00 UTC" in page


def test_a_month_that_is_over_has_no_forecast(at_alice, opened):  # noqa: F811
    assert "Forecast" not in text_of(at_alice.get(f"instances/{opened.id}/bill?month=2026-04"))


def test_the_bill_by_topic_adds_up(at_alice, opened):  # noqa: F811
    page = text_of(at_alice.get(f"instances/{opened.id}/bill/topics"))
    assert "Bill CNY 100.80 Of topics CNY 100.80" in page
    assert "orders 156 GiB 0 B 0 B-hours 100.80" in page
    none = text_of(at_alice.get(f"instances/{opened.id}/bill/topics?month=2024-01"))
    assert "No topic was used in 2024-01" in none


def test_what_no_topic_can_be_given_says_why(at_alice, opened):  # noqa: F811
    PlanChoice.objects.unscoped("a test").all().delete()
    page = text_of(at_alice.get(f"instances/{opened.id}/bill/topics"))
    assert "Storage bought, of no topic" in page
    assert "of hours in which no topic did anything that it is shared by" in page


def test_the_bill_by_user_adds_up_and_says_who_did_not_sign_in(at_alice, opened):  # noqa: F811
    users_raise(
        [
            user_row(opened.id, "2026-05-14T12", "alice", 3 * GB, 2**30, 120),
            user_row(opened.id, "2026-05-14T12", "", GB),
            user_row(opened.id, "2026-05-14T12", "*", GB),
        ]
    )
    page = text_of(at_alice.get(f"instances/{opened.id}/bill/users"))
    assert "Bill CNY 100.80 Of users CNY 100.80" in page
    assert "alice 2.79 GiB 1 GiB 120 60.48" in page
    assert "more users, together" in page
    assert "not signed in" in page
    assert "No user did anything in 2024-01" in text_of(at_alice.get(f"instances/{opened.id}/bill/users?month=2024-01"))
    assert (
        f"instances/{opened.id}/bill/users?month=2026-05"
        in at_alice.get(f"instances/{opened.id}/bill").content.decode()
    )


def test_what_no_user_can_be_given_says_why(at_alice, opened):  # noqa: F811
    PlanChoice.objects.unscoped("a test").all().delete()
    page = text_of(at_alice.get(f"instances/{opened.id}/bill/users"))
    assert "Storage bought, of no user" in page
    assert "not metered by user" in page
    assert "of hours in which no user did anything that it is shared by" in page


def test_the_bills_page_has_the_sums_once_they_are_computed(at_alice, opened):  # noqa: F811
    assert "It will stand here then" in text_of(at_alice.get("bills"))
    costs.costs_refresh(clock=clock())
    page = text_of(at_alice.get("bills"))
    assert "So far CNY 100.80 Forecast to the month\N{RIGHT SINGLE QUOTATION MARK}s end CNY 266.40" in page
    assert "2026-05: CNY 100.80 of events CNY 266.40" in page
