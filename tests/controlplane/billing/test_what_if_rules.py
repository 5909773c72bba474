"""Another size or plan, rated as the bill is: asked for what it was, it is the bill."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.billing.pricing.adjustments import Late
from controlplane.billing.pricing.documents import hours_in, inputs_document, periods_in, rated
from controlplane.billing.pricing.plans import PRO, TRAFFIC
from controlplane.billing.pricing.rating import HOUR, Month, Period, Size, Term, Used, rate, total
from controlplane.billing.pricing.what_if import Wanted, what_if_document

MAY = Month(2026, 5)
LATER = datetime(2026, 6, 1, 7, tzinfo=UTC)
QUICK = settings(max_examples=60, deadline=None)
SMALL, LARGE = Size(Decimal(20), Decimal(100), 300), Size(Decimal(240), Decimal(1000), 1700)
RESIZED = (
    Period(MAY.start + 5 * HOUR, MAY.start + timedelta(days=10, minutes=20), SMALL),
    Period(MAY.start + timedelta(days=10, minutes=20), None, LARGE),
)

hour_numbers = st.integers(0, 31 * 24 - 1)
uses = st.builds(Used, st.integers(0, 10**13), st.integers(0, 10**13), st.integers(0, 2**60))
known = st.dictionaries(hour_numbers.map(lambda number: MAY.start + number * HOUR), uses, max_size=5)
chosen = st.lists(st.tuples(hour_numbers, st.sampled_from([PRO, TRAFFIC])), max_size=2)
sizes = st.builds(Size, st.integers(1, 2000).map(Decimal), st.integers(1, 5000).map(Decimal), st.integers(1, 9000))


def inputs_of(choices=(), hours=None, *, now=LATER, late=()) -> dict:
    terms = {MAY.start: PRO, **{MAY.start + number * HOUR: plan for number, plan in choices}}
    return inputs_document([Term(*each) for each in sorted(terms.items())], RESIZED, MAY, now, hours or {}, late=late)


@QUICK
@given(chosen, known, hour_numbers)
def test_asked_for_what_it_was_it_is_the_bill(choices, hours, number):
    inputs = inputs_of(choices, hours, now=MAY.start + number * HOUR)
    assert rated(what_if_document(inputs)) == rated(inputs)


@QUICK
@given(chosen, known, sizes)
def test_another_size_throughout_is_rated_as_if_it_had_never_been_another(choices, hours, size):
    inputs = inputs_of(choices, hours)
    would = what_if_document(inputs, Wanted(size.bandwidth_mb_per_s, size.disk_gb, size.partitions))
    assert {period.size for period in periods_in(would)} == {size}
    terms = sorted({MAY.start: PRO, **{MAY.start + number * HOUR: plan for number, plan in choices}}.items())
    one = [Period(RESIZED[0].start, None, size)]
    assert total(rated(would)) == total(rate([Term(*each) for each in terms], one, MAY, LATER, hours))


@QUICK
@given(known, st.sampled_from([PRO, TRAFFIC]))
def test_another_plan_takes_the_place_of_all(hours, plan):
    inputs = inputs_of([(100, TRAFFIC)], hours)
    would = what_if_document(inputs, terms=[Term(MAY.start, plan)])
    assert {line.plan for line in rated(would)} <= {plan.name}
    assert hours_in(would) == hours_in(inputs)


def test_members_that_are_not_asked_for_stay_as_they_were():
    would = what_if_document(inputs_of(), Wanted(disk_gb=Decimal(500)))
    assert [period.size for period in periods_in(would)] == [
        Size(Decimal(20), Decimal(500), 300), Size(Decimal(240), Decimal(500), 1700),
    ]  # fmt: skip


def test_adjustments_of_earlier_months_are_in_neither():
    april = Month(2026, 4)
    late = Late("inv-00000001", april, (Term(april.start, TRAFFIC),), {}, {}, {april.start: Used(10**12)})
    inputs = inputs_of(late=[late])
    assert any(line.adjusts for line in rated(inputs))
    assert not any(line.adjusts for line in rated(what_if_document(inputs)))


def test_a_size_by_hand():
    """739 hours from 05:00 on 1 May at 40 MB/s (3.04), 200 GB (2 x 0.25) and 300 partitions, which are free."""
    would = what_if_document(inputs_of(), Wanted(Decimal(40), Decimal(200), 300))
    assert {line.item: line.amount for line in rated(would)} == {
        "bandwidth": Decimal("2246.56"), "disk": Decimal("369.50"),
    }  # fmt: skip
