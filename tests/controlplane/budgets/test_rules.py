"""Which thresholds are reached and told."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.budgets.rules import (
    ACTUAL,
    FORECAST,
    KINDS,
    Standing,
    Threshold,
    amount_of,
    percent_of,
    percents_problems,
    reached,
    told,
)

QUICK = settings(max_examples=100, deadline=None)
money = st.integers(0, 10**9).map(lambda cents: Decimal(cents) / 100)
amounts = st.integers(1, 10**9).map(lambda cents: Decimal(cents) / 100)
thresholds = st.sets(st.builds(Threshold, st.sampled_from(KINDS), st.integers(1, 1000)), max_size=8)
HALF, MOST, ALL, SOON = (Threshold(ACTUAL, 50), Threshold(ACTUAL, 80), Threshold(ACTUAL, 100), Threshold(FORECAST, 100))
USUAL = (HALF, MOST, ALL, SOON)


@pytest.mark.parametrize(
    ("so_far", "forecast", "found"),
    [
        ("0", "999.99", set()),
        ("499.99", "999.99", set()),
        ("500.00", "999.99", {HALF}),
        ("500.00", "1000.00", {HALF, SOON}),
        ("12.00", "1000.00", {SOON}),
        ("800.00", "5000", {HALF, MOST, SOON}),
        ("1000.00", "5000", {HALF, MOST, ALL}),  # what has happened needs no forecast
    ],
)
def test_what_is_reached(so_far, forecast, found):
    assert reached(Decimal(1000), Standing(Decimal(so_far), Decimal(forecast)), USUAL) == found


def test_a_month_that_is_over_has_no_forecast():
    standing = Standing(Decimal(700), Decimal(1200), is_over=True)
    assert reached(Decimal(1000), standing, USUAL) == {HALF}


@QUICK
@given(amounts, money, money, money, thresholds)
def test_more_cost_never_takes_an_actual_threshold_back(amount, so_far, more, forecast, wanted):
    before = reached(amount, Standing(so_far, forecast), wanted)
    after = reached(amount, Standing(so_far + more, forecast), wanted)
    assert {each for each in before if each.kind == ACTUAL} <= after


@QUICK
@given(amounts, money, money, thresholds)
def test_a_lower_threshold_of_the_cost_so_far_is_reached_with_a_higher_one(amount, so_far, forecast, wanted):
    found = {each.percent for each in reached(amount, Standing(so_far, forecast), wanted) if each.kind == ACTUAL}
    others = {each.percent for each in wanted if each.kind == ACTUAL} - found
    assert not found or not others or max(found) < min(others)


@QUICK
@given(amounts, money, st.integers(1, 1000))
def test_a_percentage_is_shown_once_its_threshold_is_reached_and_not_before(amount, so_far, percent):
    is_reached = bool(reached(amount, Standing(so_far, so_far), [Threshold(ACTUAL, percent)]))
    assert is_reached == (percent_of(so_far, amount) >= percent)


@QUICK
@given(thresholds)
def test_of_each_kind_the_highest_is_told(fresh):
    found = told(fresh)
    assert {each.kind for each in found} == {each.kind for each in fresh}
    assert all(each.percent <= one.percent for one in found for each in fresh if each.kind == one.kind)
    assert len(found) == len({each.kind for each in fresh})


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1500", "1500.00"), ("0.01", "0.01"), ("1000000000000", "1000000000000.00"), ("1.5", "1.50"),
        ("0", None), ("-1", None), ("1.005", None), ("1000000000000.01", None), ("NaN", None), ("Infinity", None),
        ("", None), ("a lot", None), (None, None), ("1e5", None), ("1_000", None), ("+1", None), (".5", None), ("1\n", None),
        ("\u0661", None), (1500, None),
    ],
)  # fmt: skip
def test_what_is_an_amount(text, amount):
    assert amount_of(text) == (None if amount is None else Decimal(amount))


@pytest.mark.parametrize("percents", [[0], [1001], [1.5], ["50"], [True], [50, 50], list(range(1, 12)), [-1]], ids=repr)
def test_what_is_no_list_of_thresholds(percents):
    assert [problem.field for problem in percents_problems("actual_percents", percents)] == ["actual_percents"]


@pytest.mark.parametrize("percents", [[], [1], [1000, 1], list(range(1, 11))], ids=repr)
def test_what_is_one(percents):
    assert percents_problems("actual_percents", percents) == []
