"""What the quota report says of a day: the trend, the guarantee, and which days are due."""

from __future__ import annotations

import time
from datetime import date, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.metering.pipeline.quota_days import (
    COLUMNS,
    FORESEEN_DAYS,
    LEAST_DAYS,
    TREND_DAYS,
    Added,
    Guarantee,
    begins_at,
    day_of,
    days_due,
    ends_at,
    exhausted_on,
    guarantee_of,
    row_of,
)

TODAY = date(2026, 11, 21)
BYTES = st.integers(0, 2**50)
TREND = st.dictionaries(st.integers(-40, 0), st.integers(0, 10_000), max_size=41)


def before(days: int) -> date:
    return TODAY + timedelta(days=days)


def points(trend: dict[int, int]) -> list[tuple[date, int]]:
    return [(before(x), y) for x, y in trend.items()]


def by_fractions(trend: dict[int, int], limit: int) -> date | None:
    """Least squares as a textbook has them, day by day into the future."""
    recent = {x: y for x, y in trend.items() if x > -TREND_DAYS}
    if recent.get(0, -1) >= limit:
        return TODAY
    if len(recent) < LEAST_DAYS:
        return None
    middle_x, middle_y = Fraction(sum(recent), len(recent)), Fraction(sum(recent.values()), len(recent))
    slope = sum(((x - middle_x) * (y - middle_y) for x, y in recent.items()), Fraction(0)) / sum(
        (x - middle_x) ** 2 for x in recent
    )
    for ahead in range(FORESEEN_DAYS + 1):
        if middle_y + slope * (ahead - middle_x) >= limit:
            return before(ahead)
        if slope <= 0:
            return None
    return None


@given(TREND, st.integers(0, 30_000))
def test_the_trend_is_the_line_of_least_squares_and_its_first_day_at_the_limit_is_foretold(trend, limit):
    assert exhausted_on(points(trend), limit, TODAY) == by_fractions(trend, limit)


@given(st.dictionaries(st.integers(-27, 0), BYTES, min_size=LEAST_DAYS), BYTES, BYTES)
def test_a_larger_limit_is_never_reached_sooner(trend, limit, more):
    small, large = (exhausted_on(points(trend), each, TODAY) for each in (limit, limit + more))
    assert large is None or (small is not None and small <= large)


@given(TREND, BYTES)
def test_days_before_the_trends_and_their_order_change_nothing(trend, limit):
    recent = {x: y for x, y in trend.items() if x > -TREND_DAYS}
    assert exhausted_on(points(trend), limit, TODAY) == exhausted_on(points(recent)[::-1], limit, TODAY)


@pytest.mark.parametrize(
    ("trend", "limit", "ahead"),
    [
        ({-x: 100 - x for x in range(28)}, 110, 10),  # one more each day
        ({-x: 100 - x for x in range(28)}, 100, 0),
        ({-x: 100 - x for x in range(28)}, 500, 400),
        ({-x: 100 - x for x in range(28)}, 501, None),  # too far away
        ({-x: 100 + x for x in range(28)}, 110, None),  # falls
        ({-x: 100 for x in range(28)}, 101, None),
        ({-x: 100 - x for x in range(6)}, 110, None),  # six days make no trend
        ({-x: 100 - x for x in range(7)}, 110, 10),
        ({-x: 100 - x for x in range(28)} | {-28: 10**6, 1: 10**6}, 110, 10),  # neither older days nor days to come
        ({-x: 100 - 2 * x for x in range(28)}, 111, 6),  # five days and a half
        (dict(zip(range(-6, 1), (90, 100, 110, 100, 110, 100, 90), strict=True)), 100, 0),  # level, and at the limit
        ({0: 110}, 110, 0),  # full is full, trend or not
        ({}, 0, None),
    ],
)
def test_forecasts(trend, limit, ahead):
    assert exhausted_on(points(trend), limit, TODAY) == (None if ahead is None else before(ahead))


def test_what_has_no_limit_is_never_exhausted():
    assert exhausted_on(points({-x: 2**50 for x in range(28)}), None, TODAY) is None


def added(**members) -> Added:
    what = {
        "instance": "ins-k3v9x2qa", "resource": "produce", "limit": 1000, "p50": 1, "p95": 2, "p99": 3, "most": 4,
        "used_permille": 2, "minutes": 1440, "throttled_minutes": 1, "throttled_ms": 5, "under_limit_ms": 0,
        "earlier": (),
    }  # fmt: skip
    return Added(**what | members)


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({}, Guarantee.KEPT),
        ({"under_limit_ms": 86_400}, Guarantee.KEPT),  # a thousandth of the day
        ({"under_limit_ms": 86_401}, Guarantee.MISSED),
        ({"under_limit_ms": 3_601, "minutes": 60}, Guarantee.MISSED),  # of the hour that was seen
        ({"under_limit_ms": None}, Guarantee.UNKNOWN),
        ({"limit": None, "under_limit_ms": 86_401}, Guarantee.UNKNOWN),
        ({"resource": "storage"}, Guarantee.UNKNOWN),
    ],
)
def test_the_guarantee_is_missed_where_clients_waited_below_their_limit(members, said):
    assert guarantee_of(added(**members)) is said


def test_a_row_has_every_column():
    row = dict(zip(COLUMNS, row_of(TODAY, added(earlier=[(before(-x), 900) for x in range(1, 7)])), strict=True))
    assert row == {
        "instance": "ins-k3v9x2qa", "day": "2026-11-21", "resource": "produce", "limit_in_force": 1000, "p50": 1,
        "p95": 2, "p99": 3, "most": 4, "used_permille": 2, "minutes": 1440, "throttled_minutes": 1, "throttled_ms": 5,
        "under_limit_ms": 0, "guarantee": "kept", "exhausted_on": None,
    }  # fmt: skip
    full = row_of(TODAY, added(p95=1000))
    assert full[COLUMNS.index("exhausted_on")] == "2026-11-21"


def test_a_day_is_due_once_all_of_its_minutes_are_made_and_some_are_there():
    holes = {before(-2)}

    def due(**members) -> list[int]:
        what = {
            "first_at": begins_at(before(-4)) + 7, "made_to": begins_at(TODAY), "reported": set(),
            "has_minutes": lambda day: day not in holes,
        }  # fmt: skip
        return [(day - TODAY).days for day in days_due(**what | members)]

    assert due() == [-4, -3, -1]
    assert due(reported={before(-4)}) == [-3, -1]
    assert due(reported={before(-4), before(-3)}) == [-1]
    assert due(reported={before(-1)}) == [-4, -3], "a newer day hides no older one"
    assert due(reported={before(-4), before(-3), before(-1)}) == []
    assert due(reported={before(-30)}) == [-4, -3, -1]
    assert due(made_to=begins_at(TODAY) - 1) == [-4, -3]
    assert due(made_to=ends_at(TODAY)) == [-4, -3, -1, 0]
    assert due(first_at=None) == due(made_to=None) == []


def test_days_are_those_of_utc_wherever_the_machine_is(monkeypatch):
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    time.tzset()
    try:
        assert day_of(begins_at(TODAY) + 86_399) == TODAY
    finally:
        monkeypatch.undo()
        time.tzset()


@given(st.integers(0, 2**33))
def test_a_moment_is_of_the_day_that_it_lies_in(at):
    assert begins_at(day_of(at)) <= at < ends_at(day_of(at))
