"""What holds for every bill, whatever was bought when."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.billing.pricing.money import amount_of, in_units, text_of
from controlplane.billing.pricing.plans import PRO, TRAFFIC, month_day
from controlplane.billing.pricing.rating import HOUR, USED, Line, Month, Period, Size, Term, Used, rate, slots_of, total

from .bills import rate_under

EPOCH = datetime(2025, 1, 20, tzinfo=UTC)
FEBRUARY = Month(2025, 2)
LATER = datetime(2025, 6, 1, tzinfo=UTC)
QUICK = settings(max_examples=60, deadline=None)

sizes = st.builds(
    Size,
    st.decimals(Decimal("0.1"), 2000, places=1),
    st.decimals(1, 5000, places=0),
    st.integers(1, 8000),
)


@st.composite
def histories(draw: st.DrawFn) -> list[Period]:
    """Consecutive periods over some weeks around a month's edge, the last one perhaps still open."""
    minutes = draw(st.lists(st.integers(0, 60 * 24 * 40), min_size=2, max_size=6, unique=True))
    moments = [EPOCH + timedelta(minutes=minute) for minute in sorted(minutes)]
    ends: list[datetime | None] = [*moments[1:]]
    if draw(st.booleans()):
        ends[-1] = None
    return [Period(start, end, draw(sizes)) for start, end in zip(moments, ends, strict=False)]


def bill(periods: list[Period], month: Month = FEBRUARY, now: datetime = LATER) -> tuple[Line, ...]:
    return rate_under(PRO, periods, month, now)


@QUICK
@given(histories())
def test_lines_add_up_and_none_is_negative(periods):
    lines = bill(periods)
    assert total(lines) == sum((line.amount for line in lines), Decimal(0))
    assert all(line.amount >= 0 and line.quantity > 0 and line.start < line.end for line in lines)
    assert all(line.amount == amount_of(line.quantity, line.unit_price) for line in lines)


@QUICK
@given(histories(), st.data())
def test_cutting_a_period_in_two_changes_nothing(periods, data):
    cut = data.draw(st.integers(0, len(periods) - 1))
    period = periods[cut]
    until = period.until or LATER
    middle = period.start + (until - period.start) * data.draw(st.floats(0.001, 0.999))
    halves = [Period(period.start, middle, period.size), Period(middle, period.until, period.size)]
    assert bill([*periods[:cut], *halves, *periods[cut + 1 :]]) == bill(periods)


@QUICK
@given(histories(), st.randoms())
def test_the_order_of_periods_changes_nothing(periods, random):
    shuffled = list(periods)
    random.shuffle(shuffled)
    assert bill(shuffled) == bill(periods)


@QUICK
@given(histories())
def test_every_hour_belongs_to_exactly_one_month(periods):
    months = [Month(2024, 12), Month(2025, 1), Month(2025, 2), Month(2025, 3), Month(2025, 4), Month(2025, 5)]
    slots = [slot for month in months for slot in slots_of(periods, month, LATER)]
    assert len(slots) == len(set(slots))
    first, last = periods[0].start, periods[-1].until or LATER
    hours = (last - first.replace(minute=0)).total_seconds() / 3600
    assert len(slots) == -(-hours // 1)


@QUICK
@given(histories(), st.integers(0, 60 * 24 * 60))
def test_a_bill_so_far_never_exceeds_the_month(periods, minutes):
    assert total(bill(periods, now=EPOCH + timedelta(minutes=minutes))) <= total(bill(periods))


def test_a_month_begins_and_ends_at_midnight_utc():
    month = Month(2025, 12)
    assert (month.start, month.end) == (datetime(2025, 12, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC))
    east = datetime.fromisoformat("2026-01-01T07:59:00+08:00")
    assert str(Month.of(east)) == "2025-12"


@given(st.integers(1, 12), st.integers(0, 40))
def test_months_before_are_counted_over_years(month, count):
    moved = Month(2025, month)
    for _ in range(count):
        moved = Month.of(moved.start - timedelta(seconds=1))
    assert Month(2025, month).before(count) == moved


def test_a_plan_is_asked_for_by_the_first_day_of_a_month_in_utc():
    assert month_day(datetime(2025, 5, 31, 23, 30, tzinfo=timezone(timedelta(hours=-1)))) == date(2025, 6, 1)


@given(st.builds(Used, *[st.integers(0, 10**20)] * 3), st.builds(Used, *[st.integers(0, 10**20)] * 3))
def test_what_was_used_since_is_the_difference_of_each_sum(one, other):
    assert (one + other) - other == one
    assert [(one - other).of(item) for item in USED] == [one.of(item) - other.of(item) for item in USED]


def test_an_hour_in_which_the_size_changed_is_billed_once_at_the_largest():
    ten = datetime(2025, 2, 3, 10, tzinfo=UTC)
    small, large = Size(Decimal(40), Decimal(100), 100), Size(Decimal(120), Decimal(300), 100)
    half = timedelta(minutes=30)
    periods = [Period(ten, ten + half, small), Period(ten + half, ten + 3 * half, large)]
    assert list(slots_of(periods, Month(2025, 2), LATER).values()) == [large, large]


def test_an_hour_that_has_not_begun_is_not_billed():
    ten = datetime(2025, 2, 3, 10, tzinfo=UTC)
    open_end = [Period(ten, None, Size(Decimal(20), Decimal(100), 1))]
    assert bill(open_end, now=ten) == ()
    assert [line.quantity for line in bill(open_end, now=ten + timedelta(seconds=1))] == [1, 1]
    assert [line.quantity for line in bill(open_end, now=ten + timedelta(hours=1))] == [1, 1]


def test_a_gap_divides_a_line():
    ten, hour = datetime(2025, 2, 3, 10, tzinfo=UTC), timedelta(hours=1)
    size = Size(Decimal(20), Decimal(100), 1)
    periods = [Period(ten, ten + hour, size), Period(ten + 3 * hour, ten + 4 * hour, size)]
    assert [(line.start.hour, line.end.hour) for line in bill(periods) if line.item == "disk"] == [(10, 11), (13, 14)]


hours_of_february = st.integers(0, 28 * 24 - 1).map(lambda hour: FEBRUARY.start + hour * HOUR)
usages = st.dictionaries(
    hours_of_february,
    st.builds(Used, *[st.integers(0, 10**12)] * 2, st.integers(0, 10**16)),
    max_size=12,
)
choices = st.lists(st.tuples(hours_of_february, st.sampled_from([PRO, TRAFFIC])), max_size=4)


def terms_from(chosen) -> list[Term]:
    return [Term(start, plan) for start, plan in {FEBRUARY.start: PRO, **dict(chosen)}.items()]


@QUICK
@given(histories(), choices, usages)
def test_every_hour_is_billed_by_the_plan_that_was_in_force_in_it(periods, chosen, hours):
    """A month under several plans has, of each item and plan, what its hours have under that plan alone."""
    terms = sorted(terms_from(chosen), key=lambda term: term.start)
    lines = rate(terms, periods, FEBRUARY, LATER, hours)
    for plan in (PRO, TRAFFIC):
        ends = [*[term.start for term in terms[1:]], FEBRUARY.end]
        parts = [(term.start, end) for term, end in zip(terms, ends, strict=True) if term.plan == plan]
        slots = slots_of(periods, FEBRUARY, LATER)
        mine = [slot for slot in slots if any(start <= slot < end for start, end in parts)]
        assert sum(line.quantity for line in lines if (line.item, line.plan) == ("bandwidth", plan.name)) == (
            len(mine) if plan.bands else 0
        )
        produced = sum(used.produced_bytes for hour, used in hours.items() if any(a <= hour < b for a, b in parts))
        billed = [line for line in lines if (line.item, line.plan) == ("produced", plan.name)]
        assert sum(line.quantity for line in billed) * 10**9 == produced
        assert all(any(a <= line.start < line.end <= b for a, b in _joined(parts)) for line in billed)


def _joined(parts):
    joined = []
    for start, end in parts:
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


@QUICK
@given(histories(), choices, usages, hours_of_february)
def test_choosing_the_plan_again_that_one_has_changes_nothing(periods, chosen, hours, at):
    terms = terms_from(chosen)
    present = max((term for term in terms if term.start <= at), key=lambda term: term.start).plan
    again = terms_from([*((term.start, term.plan) for term in terms), (at, present)])
    assert rate(again, periods, FEBRUARY, LATER, hours) == rate(terms, periods, FEBRUARY, LATER, hours)


@QUICK
@given(histories(), choices, usages, hours_of_february, st.sampled_from([PRO, TRAFFIC]))
def test_a_change_of_plan_changes_nothing_before_it(periods, chosen, hours, at, plan):
    terms = terms_from(chosen)
    changed = [*(term for term in terms if term.start < at), Term(at, plan)]
    if at == FEBRUARY.start:
        return

    def before(lines):
        return [line for line in lines if line.end <= at]

    def cut(terms):
        """As billed when the month had come to `at`: periods and hours up to it."""
        ended = [Period(period.start, min(period.until or at, at), period.size) for period in periods]
        return rate(terms, [period for period in ended if period.start < at], FEBRUARY, LATER,
                    {hour: used for hour, used in hours.items() if hour < at})  # fmt: skip

    reserved = [
        [line for line in cut(each) if line.item in ("bandwidth", "disk", "partitions")] for each in (terms, changed)
    ]
    assert reserved[0] == reserved[1]
    assert total(before(rate(changed, periods, FEBRUARY, LATER, hours))) <= total(
        rate(changed, periods, FEBRUARY, LATER, hours)
    )


@QUICK
@given(st.integers(0, 2**63), st.integers(0, 2**63))
def test_traffic_quantities_lead_back_to_the_byte(produced, consumed):
    lines = rate_under(TRAFFIC, [], Month(2025, 2), LATER, Used(produced, consumed))
    assert {line.item: int(line.quantity * 10**9) for line in lines} == {
        item: count for item, count in (("produced", produced), ("consumed", consumed)) if count
    }


def test_money_is_rounded_half_up_at_the_end_of_a_line():
    assert amount_of(Decimal(1), Decimal("0.005")) == Decimal("0.01")
    assert amount_of(Decimal(3), Decimal("0.115")) == Decimal("0.35")
    assert text_of(in_units(1, 10**9)) == "0.000000001"
    assert [text_of(Decimal(text)) for text in ("1170", "9.40", "0.00", "2.000000000", "100")] == [
        "1170", "9.40", "0.00", "2", "100",
    ]  # fmt: skip
