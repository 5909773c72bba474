"""An invoice and its adjustments together are the rating of all that was used, to the cent, whatever came when."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.billing.pricing.adjustments import Late, adjustments, by_span, late_of, together
from controlplane.billing.pricing.plans import PRO, TRAFFIC
from controlplane.billing.pricing.rating import HOUR, USED, Month, Period, Size, Term, Used, rate, spans_of, total

MAY = Month(2026, 5)
LATER = datetime(2026, 6, 1, 7, tzinfo=UTC)
PERIODS = [Period(datetime(2026, 4, 1, tzinfo=UTC), None, Size(Decimal(20), Decimal(100), 1))]
QUICK = settings(max_examples=100, deadline=None)

hours_of_may = st.integers(0, 31 * 24 - 1).map(lambda hour: MAY.start + hour * HOUR)
states = st.dictionaries(
    hours_of_may, st.builds(Used, st.integers(0, 10**13), st.integers(0, 10**13), st.integers(0, 2**70)), max_size=8
)
choices = st.lists(st.tuples(hours_of_may, st.sampled_from([PRO, TRAFFIC])), max_size=3)


def terms_from(chosen) -> tuple[Term, ...]:
    return tuple(Term(start, plan) for start, plan in sorted({MAY.start: TRAFFIC, **dict(chosen)}.items()))


def billed_in_steps(terms, told):
    """Invoice and adjustments, where usage was known as `told[0]` at the closing and as each of the others later."""
    lines = list(rate(terms, PERIODS, MAY, LATER, told[0]))
    known = dict(told[0])
    for today in told[1:]:
        changed = late_of(known, today)
        late = Late("inv-00000001", MAY, terms, {}, by_span(terms, MAY, known), changed)
        lines += adjustments(late)
        known = together(known, changed)
    return lines


def sums(terms, lines):
    """Quantity and amount of each item under each plan's span."""
    found = defaultdict(lambda: [Decimal(0), Decimal(0)])
    for line in lines:
        [span] = [span for span in spans_of(terms, MAY) if span.start <= line.start < span.end]
        found[line.item, span.start][0] += line.quantity
        found[line.item, span.start][1] += line.amount
    return {key: tuple(value) for key, value in found.items() if any(value)}


@QUICK
@given(choices, st.lists(states, min_size=1, max_size=5))
def test_invoice_and_adjustments_add_up_to_the_rating_of_all_usage(chosen, told):
    terms = terms_from(chosen)
    lines, whole = billed_in_steps(terms, told), rate(terms, PERIODS, MAY, LATER, told[-1])
    assert total(lines) == total(whole)
    assert sums(terms, lines) == sums(terms, whole)


@QUICK
@given(choices, states)
def test_what_has_not_changed_has_no_adjustment(chosen, told):
    terms = terms_from(chosen)
    assert all(line.adjusts is None for line in billed_in_steps(terms, [told, told, told]))


@QUICK
@given(choices, states, states)
def test_an_adjustment_covers_the_hours_that_changed_and_no_others_of_another_plan(chosen, before, after):
    terms = terms_from(chosen)
    changed = late_of(before, after)
    for line in billed_in_steps(terms, [before, after]):
        if line.adjusts is None:
            continue
        hours = [hour for hour, used in changed.items() if used.of(line.item) and line.start <= hour < line.end]
        assert line.start in hours
        assert line.end - HOUR in hours
        assert any(span.start <= line.start < line.end <= span.end for span in spans_of(terms, MAY))
        assert line.quantity != 0


@QUICK
@given(choices, states, states)
def test_usage_that_is_taken_back_is_paid_back_to_the_cent(chosen, before, after):
    terms = terms_from(chosen)
    lines = billed_in_steps(terms, [before, after, before])
    adjusted = [line for line in lines if line.adjusts is not None]
    assert total(adjusted) == 0
    assert sums(terms, lines) == sums(terms, rate(terms, PERIODS, MAY, LATER, before))


def hour(day: int, at: int) -> datetime:
    return datetime(2026, 5, day, at, tzinfo=UTC)


def late(changed, **other) -> Late:
    about = {"terms": (Term(MAY.start, TRAFFIC),), "lines": {("produced", MAY.start): 4}, "billed": {}, **other}
    return Late(invoice="inv-00000003", month=MAY, changed=changed, **about)


def test_it_names_the_invoice_and_the_line_and_says_between_which_hours():
    found = adjustments(
        late(
            {hour(3, 5): Used(10**9), hour(9, 23): Used(2 * 10**9, 10**9)},
            billed={MAY.start: Used(10 * 10**9)},
        )
    )
    assert [(line.item, line.quantity, line.amount, line.start, line.end) for line in found] == [
        ("produced", 3, Decimal("1.80"), hour(3, 5), hour(10, 0)),
        ("consumed", 1, Decimal("0.25"), hour(9, 23), hour(10, 0)),
    ]
    assert [(line.adjusts.invoice, line.adjusts.month, line.adjusts.line) for line in found] == [
        ("inv-00000003", "2026-05", 4),
        ("inv-00000003", "2026-05", None),
    ]


def test_less_usage_is_a_negative_line():
    [line] = adjustments(late({hour(3, 5): Used(-(10**9))}, billed={MAY.start: Used(10**9)}))
    assert (line.quantity, line.unit_price, line.amount) == (-1, Decimal("0.60"), Decimal("-0.60"))


def test_cents_that_rounding_kept_back_come_with_the_adjustment():
    """0.001 GB at 0.60 are nothing, ten times; the rating of all ten is a cent."""
    told = [{hour(1, 0): Used(10**6 * count)} for count in range(1, 11)]
    lines = [line for line in billed_in_steps((Term(MAY.start, TRAFFIC),), told) if line.item in USED]
    assert total(lines) == Decimal("0.01")
    assert {line.amount for line in lines} == {Decimal("0.00"), Decimal("0.01")}


def test_of_an_invoice_that_knew_no_hours_the_whole_month_is_adjusted():
    [line] = adjustments(late({MAY.start: Used(10**9)}, by_hour=False))
    assert (line.start, line.end) == (MAY.start, MAY.end)


def test_usage_that_only_moves_within_a_plans_hours_is_no_adjustment():
    assert adjustments(late({hour(1, 0): Used(5), hour(2, 0): Used(-5)}, billed={MAY.start: Used(10)})) == ()
