"""Cost so far, forecast and cost by topic in the console."""

from __future__ import annotations

import pytest

from controlplane.billing import costs
from controlplane.billing.models import PlanChoice
from tests.controlplane.billing.test_bill_api import at
from tests.controlplane.billing.test_costs import NOW, clock, opened  # noqa: F401  # a fixture

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


def test_the_bills_page_has_the_sums_once_they_are_computed(at_alice, opened):  # noqa: F811
    assert "It will stand here then" in text_of(at_alice.get("bills"))
    costs.costs_refresh(clock=clock())
    page = text_of(at_alice.get("bills"))
    assert "So far CNY 100.80 Forecast to the month\N{RIGHT SINGLE QUOTATION MARK}s end CNY 266.40" in page
    assert "2026-05: CNY 100.80 of events CNY 266.40" in page
