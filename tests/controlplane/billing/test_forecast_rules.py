"""A forecast is the bill so far and the rest of the month by recent use: never less than the bill, and the bill in the end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.billing.pricing.documents import hours_in, inputs_document, rated
from controlplane.billing.pricing.forecast import RECENT, Recent, expected, forecast_document, recent_window
from controlplane.billing.pricing.plans import PRO, TRAFFIC
from controlplane.billing.pricing.rating import HOUR, Month, Period, Size, Term, Used, floored, total

MAY = Month(2026, 5)
SMALL, LARGE = Size(Decimal(20), Decimal(100), 1), Size(Decimal(240), Decimal(1000), 1700)
QUICK = settings(max_examples=100, deadline=None)

hour_numbers = st.integers(0, 31 * 24 - 1)
uses = st.builds(Used, st.integers(0, 10**13), st.integers(0, 10**13), st.integers(0, 2**70))
known = st.dictionaries(hour_numbers.map(lambda number: MAY.start + number * HOUR), uses, max_size=8)
plans = st.lists(st.tuples(hour_numbers, st.sampled_from([PRO, TRAFFIC])), max_size=2)


def inputs_at(now: datetime, hours, *, chosen=(), periods=None) -> dict:
    terms = {MAY.start: TRAFFIC, **{MAY.start + number * HOUR: plan for number, plan in chosen}}
    periods = [Period(datetime(2026, 4, 1, tzinfo=UTC), None, SMALL)] if periods is None else periods
    return inputs_document([Term(start, plan) for start, plan in sorted(terms.items())], periods, MAY, now, hours)


def amounts(inputs) -> dict[str, Decimal]:
    return {line.item: line.amount for line in rated(inputs)}


@QUICK
@given(plans, known, uses, hour_numbers, st.integers(0, 60 * 24), st.integers(1, 168))
def test_it_is_never_below_the_bill_so_far(chosen, hours, used, number, behind, recent_hours):
    now = MAY.start + number * HOUR + timedelta(minutes=20)
    counted = floored(now) - behind * HOUR
    inputs = inputs_at(now, {hour: each for hour, each in hours.items() if hour <= now}, chosen=chosen)
    later = forecast_document(inputs, Recent(counted - recent_hours * HOUR, counted, used))
    assert total(rated(later)) >= total(rated(inputs))


@QUICK
@given(plans, known, uses)
def test_it_is_the_bill_once_every_hour_has_been_counted(chosen, hours, used):
    inputs = inputs_at(MAY.end + timedelta(hours=3), hours, chosen=chosen)
    later = forecast_document(inputs, Recent(MAY.end - RECENT, MAY.end, used))
    assert rated(later) == rated(inputs)


@QUICK
@given(uses, st.integers(1, 168), hour_numbers)
def test_what_is_expected_is_the_average_to_the_byte(used, count, number):
    begin = MAY.start + number * HOUR
    found = expected(MAY, {}, Recent(begin - count * HOUR, begin, used), until=MAY.end)
    rest = (MAY.end - begin) // HOUR
    whole = sum(found.values(), Used())
    for item in ("produced", "consumed", "stored"):
        assert whole.of(item) == used.of(item) * rest // count
        assert all(0 <= each.of(item) - used.of(item) // count <= 1 for each in found.values())


def test_constant_use_gives_what_the_month_will_cost():
    """10 MB an hour, as ever: 7.44 GB of produced bytes at 0.60."""
    used = Used(10**7)
    begin = datetime(2026, 5, 20, 12, tzinfo=UTC)
    hours = {MAY.start + number * HOUR: used for number in range((begin - MAY.start) // HOUR)}
    recent = Recent(begin - RECENT, begin, Used(168 * 10**7))
    later = forecast_document(inputs_at(begin + timedelta(minutes=40), hours), recent)
    assert hours_in(later) == {MAY.start + number * HOUR: used for number in range(744)}
    assert amounts(later) == {"produced": Decimal("4.46")}


def test_an_hour_that_is_not_over_uses_no_less_than_it_has():
    begin = MAY.end - 2 * HOUR
    recent = Recent(begin - 10 * HOUR, begin, Used(1000, 50))
    found = expected(MAY, {begin: Used(700, 1)}, recent, until=MAY.end)
    assert found == {begin: Used(700, 5), begin + HOUR: Used(100, 5)}


def test_reserved_items_go_on_at_the_present_size_and_the_chosen_plans():
    opened = Period(MAY.start, MAY.start + 24 * HOUR, SMALL)
    enlarged = Period(MAY.start + 24 * HOUR, None, LARGE)
    now = MAY.start + timedelta(hours=30, minutes=10)
    chosen = [(0, PRO), (48, TRAFFIC)]
    inputs = inputs_at(now, {}, chosen=chosen, periods=[opened, enlarged])
    later = forecast_document(inputs, Recent(now, now))
    hours = [(line.quantity, line.start) for line in rated(later) if line.item == "bandwidth"]
    assert hours == [(24, MAY.start), (24, MAY.start + 24 * HOUR)]


def test_an_instance_that_is_gone_costs_what_it_has_cost():
    gone = [Period(MAY.start, MAY.start + timedelta(hours=50, minutes=5), SMALL)]
    now = MAY.start + 100 * HOUR
    inputs = inputs_at(now, {MAY.start: Used(10**12)}, periods=gone)
    later = forecast_document(inputs, Recent(now - 60 * HOUR, now, Used(10**12)))
    assert hours_in(later) == hours_in(inputs)
    assert amounts(later) == amounts(inputs)


def test_one_that_never_opened_is_expected_to_use_nothing():
    inputs = inputs_at(MAY.start + HOUR, {}, periods=[])
    assert rated(forecast_document(inputs, Recent(MAY.start, MAY.start + HOUR, Used(10**12)))) == ()


@pytest.mark.parametrize(
    ("opened", "hours"),
    [
        (datetime(2026, 1, 1, tzinfo=UTC), 168),
        (datetime(2026, 5, 20, 10, 0, tzinfo=UTC), 2),
        (datetime(2026, 5, 20, 10, 20, tzinfo=UTC), 1),  # its first hour was not a whole one
        (datetime(2026, 5, 20, 11, 20, tzinfo=UTC), 0),
        (datetime(2026, 5, 20, 12, 50, tzinfo=UTC), 0),
    ],
)
def test_a_young_instance_is_judged_by_the_whole_hours_that_it_has(opened, hours):
    start, end = recent_window((Period(opened, None, SMALL),), datetime(2026, 5, 20, 12, tzinfo=UTC))
    assert Recent(start, end).hours == hours
    assert end == datetime(2026, 5, 20, 12, tzinfo=UTC)
