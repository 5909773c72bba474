"""What is paid in advance: every hour is paid once, nothing is charged that is not there, and what was charged stays."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.billing.pricing.documents import inputs_document, line_documents, prepaid_in, rated
from controlplane.billing.pricing.plans import PRO
from controlplane.billing.pricing.prepaid import (
    BOUGHT,
    BY_THE_HOUR,
    DECIDED,
    EXPIRE,
    EXPIRED,
    FIVE_DAYS,
    GROWTH,
    POSTPAID,
    PURCHASE,
    REFUND,
    RENEW,
    RENEWAL,
    RENEWED,
    Event,
    Prepaid,
    account_of,
    months_after,
    price_of,
)
from controlplane.billing.pricing.prepaid_prices import PRO_PREPAID
from controlplane.billing.pricing.rating import (
    HOUR,
    NOTHING_PAID,
    Month,
    Period,
    Size,
    Term,
    Used,
    floored,
    rate,
    total,
)

from .prepaid_lives import lives

QUICK, LONG = 150, 10_000
SMALL, LARGE = Size(Decimal(20), Decimal(100), 400), Size(Decimal(40), Decimal(200), 900)


def at(day: int, hour: int = 0, minute: int = 0, month: int = 4) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)


def bought(moment: datetime, months: int = 1, at_end: str = EXPIRE) -> Event:
    return Event(BOUGHT, moment, months, PRO_PREPAID, at_end)


def charges(account, kind: str | None = None) -> list[tuple[str, str, str]]:
    lines = [line for line in account.paid.charges if kind in (None, line.charged.kind)]
    return [(line.item, f"{line.quantity.normalize():f}", str(line.amount)) for line in lines]


# --- worked by hand ---------------------------------------------------------------------------------------------------


def test_what_was_bought_begins_in_the_hour_in_which_it_is_opened():
    periods = [Period(at(1, 10, 20), None, SMALL)]
    account = account_of(Prepaid((bought(at(1, 9), 3),)), periods, at(2))
    assert [(term.start, term.end, term.months) for term in account.terms] == [(at(1, 10), at(1, 10, month=7), 3)]
    assert charges(account) == [("prepaid_bandwidth", "3", "2670.00"), ("prepaid_disk", "3", "480.00")]
    assert {line.charged.at for line in account.paid.charges} == {at(1, 10, 20)}
    assert price_of(PRO_PREPAID, SMALL, 3) == Decimal("3150.00")


def test_of_one_that_is_open_it_begins_in_the_next_full_hour():
    periods = [Period(at(1), None, SMALL)]
    assert account_of(Prepaid((bought(at(3, 10, 20)),)), periods, at(4)).terms[0].start == at(3, 11)
    assert account_of(Prepaid((bought(at(3, 10)),)), periods, at(4)).terms[0].start == at(3, 10)


def test_nothing_is_charged_for_what_never_was_open():
    account = account_of(Prepaid((bought(at(1)),)), [], at(30))
    assert (account.is_waiting, account.terms, account.paid) == (True, (), NOTHING_PAID)


def test_growth_pays_the_difference_for_the_hours_that_are_left():
    periods = [Period(at(1), at(16), SMALL), Period(at(16), None, LARGE)]
    account = account_of(Prepaid((bought(at(1)),)), periods, at(17))  # 30 days, half of which are left
    assert charges(account, GROWTH) == [
        ("prepaid_bandwidth", "0.5", "550.00"),
        ("prepaid_disk", "0.5", "80.00"),
        ("prepaid_partitions", "0.5", "100.00"),
    ]
    assert [str(line.unit_price) for line in account.paid.charges if line.charged.kind == GROWTH] == [
        "1100",
        "160",
        "200",
    ]


def test_given_back_the_days_that_are_left_are_paid_back_of_each_charge():
    periods = [Period(at(1), at(16), SMALL), Period(at(16), at(20, 0, 1), LARGE)]
    account = account_of(Prepaid((bought(at(1)),)), periods, at(28))
    assert charges(account, REFUND) == [  # the 20th has begun: 10 of 30 days, and 10 of 15
        ("prepaid_bandwidth", "-0.333333333", "-296.67"),
        ("prepaid_disk", "-0.333333333", "-53.33"),
        ("prepaid_bandwidth", "-0.333333333", "-366.67"),
        ("prepaid_disk", "-0.333333333", "-53.33"),
        ("prepaid_partitions", "-0.333333333", "-66.67"),
    ]
    assert account.terms == ()


def test_by_the_five_day_rule_all_is_paid_back():
    periods = [Period(at(1), at(5, 23), SMALL)]
    account = account_of(Prepaid((bought(at(1), 12), Event(FIVE_DAYS, at(5, 23)))), periods, at(28))
    assert total(account.paid.charges) == 0
    assert [line.start for line in account.paid.charges if line.charged.kind == REFUND] == [at(1), at(1)]


def test_a_term_that_has_not_begun_is_paid_back_whole():
    events = (bought(at(1)), Event(RENEWED, at(2), 2, PRO_PREPAID))
    account = account_of(Prepaid(events), [Period(at(1), at(30), SMALL)], at(30))
    back = [(line.quantity, line.start) for line in account.paid.charges if line.charged.kind == REFUND]
    assert (Decimal(-2), at(1, month=5)) in back


def test_a_renewal_is_charged_when_it_is_ordered_and_begins_at_the_end():
    events = (bought(at(1)), Event(RENEWED, at(20), 2, PRO_PREPAID))
    account = account_of(Prepaid(events), [Period(at(1), None, SMALL)], at(21))
    assert [(term.start, term.end) for term in account.terms] == [
        (at(1), at(1, month=5)),
        (at(1, month=5), at(1, month=7)),
    ]
    assert charges(account, RENEWAL) == [("prepaid_bandwidth", "2", "1780.00"), ("prepaid_disk", "2", "320.00")]
    assert [line.charged.at for line in account.paid.within(Month(2026, 4)) if line.charged.kind == RENEWAL] == [
        at(20)
    ] * 2
    assert account.paid.within(Month(2026, 5)) == ()


@pytest.mark.parametrize(
    ("start", "months", "end"),
    [
        (datetime(2026, 1, 31, 7, tzinfo=UTC), 1, datetime(2026, 2, 28, 7, tzinfo=UTC)),
        (datetime(2026, 1, 31, 7, tzinfo=UTC), 3, datetime(2026, 4, 30, 7, tzinfo=UTC)),
        (datetime(2027, 12, 31, tzinfo=UTC), 2, datetime(2028, 2, 29, tzinfo=UTC)),
        (datetime(2026, 5, 4, 9, tzinfo=UTC), 36, datetime(2029, 5, 4, 9, tzinfo=UTC)),
    ],
)
def test_months_end_on_the_day_on_which_they_began_or_on_the_last(start, months, end):
    assert months_after(start, months) == end


def test_what_has_expired_is_covered_until_it_was_isolated_and_nothing_is_paid_back():
    late = at(1, 3, 30, month=5)
    events = (bought(at(1)), Event(EXPIRED, late))
    account = account_of(Prepaid(events), [Period(at(1), late, SMALL)], at(9, month=5))
    assert charges(account, REFUND) == []
    assert all(account.paid.covers(at(1) + number * HOUR) for number in range(30 * 24 + 4))
    assert not account.paid.covers(at(1, 4, month=5))


def test_what_goes_on_by_the_hour_is_covered_up_to_its_end():
    events = (bought(at(1), at_end=POSTPAID), Event(POSTPAID, at(1, 3, 30, month=5)))
    account = account_of(Prepaid(events), [Period(at(1), None, SMALL)], at(9, month=5))
    assert account.paid.covers(at(30, 23))
    assert not account.paid.covers(at(1, 0, month=5))
    assert account.terms == ()


def test_what_could_not_be_isolated_or_renewed_is_covered_until_somebody_has_said_so():
    """Or an invoice that was written meanwhile would have been right only then."""
    periods = [Period(at(1), None, SMALL)]
    for at_end in (EXPIRE, RENEW):
        events = (bought(at(1), at_end=at_end), Event(POSTPAID, at(1, 3, 30, month=5)))
        for known, now in ((events[:1], at(1, 3, 20, month=5)), (events, at(9, month=5))):
            assert account_of(Prepaid(known), periods, now).paid.covers(at(1, 3, month=5))
        assert not account_of(Prepaid(events), periods, at(9, month=5)).paid.covers(at(1, 4, month=5))


@pytest.mark.parametrize(("at_end", "is_covered"), [("expire", True), ("renew", True), ("postpaid", False)])
def test_while_the_clock_is_late_only_what_goes_on_by_the_hour_pays(at_end, is_covered):
    account = account_of(Prepaid((bought(at(1), at_end=at_end),)), [Period(at(1), None, SMALL)], at(1, 5, 10, month=5))
    assert account.paid.covers(at(1, 5, month=5)) is is_covered


def test_what_was_decided_later_changes_nothing_of_what_was_before():
    """A first account, deleted after its end and before the clock came; a second one that ends otherwise."""
    late = at(1, 3, 30, month=5)
    periods = [Period(at(1), late, SMALL), Period(at(9, month=5), None, SMALL)]
    events = (bought(at(1), at_end=POSTPAID), Event(BOUGHT, at(9, 0, 1, month=5), 1, PRO_PREPAID, EXPIRE))
    for known in (events[:1], events, (*events, Event(DECIDED, at(20, month=5), at_end=POSTPAID))):
        paid = account_of(Prepaid(known), periods, at(25, month=5)).paid
        assert [paid.covers(at(30, 23)), paid.covers(at(1, 0, month=5))] == [True, False]


def test_without_events_a_bill_is_what_it_was():
    terms, periods, now = [Term(at(1), PRO)], [Period(at(1), None, SMALL)], at(5)
    inputs = inputs_document(terms, periods, Month(2026, 4), now, {})
    assert (inputs["version"], "prepaid" in inputs, prepaid_in(inputs)) == (2, False, BY_THE_HOUR)
    assert rated(inputs) == rate(terms, periods, Month(2026, 4), now, {})


def test_a_bill_has_what_was_charged_beside_the_hours_that_were_not_paid():
    terms, periods = [Term(at(1), PRO)], [Period(at(1), None, SMALL)]
    prepaid = Prepaid((bought(at(1, 2, 30)),))
    inputs = inputs_document(terms, periods, Month(2026, 4), at(5), {at(2): Used(10**9, 0, 0)}, prepaid=prepaid)
    assert inputs["version"] == 3
    assert prepaid_in(inputs) == prepaid
    lines = line_documents(inputs)
    assert [(line["item"], line["quantity"], line["amount"]) for line in lines] == [
        ("bandwidth", "3", "4.02"),  # until 3:00
        ("disk", "3", "0.75"),
        ("prepaid_bandwidth", "1", "890.00"),
        ("prepaid_disk", "1", "160.00"),
        ("produced", "1", "0.00"),
    ]
    assert lines[2]["charged"] == {"kind": PURCHASE, "at": "2026-04-01T02:30:00Z"}
    assert (lines[2]["plan"], lines[2]["plan_version"]) == ("pro_prepaid", 1)
    assert (lines[2]["from"], lines[2]["to"]) == ("2026-04-01T03:00:00Z", "2026-05-01T03:00:00Z")


# --- any life ---------------------------------------------------------------------------------------------------------


def months_of(life) -> list[Month]:
    first, last = Month.of(life.periods[0].start if life.periods else life.now), Month.of(life.now)
    found = [first]
    while found[-1] != last:
        found.append(found[-1].before(-1))
    return found


def check(life) -> None:
    account = account_of(life.prepaid, life.periods, life.now)
    said = account.paid.charges

    # Each open hour is paid once: by the hour, or in advance.
    bills = [
        rate([Term(month.start, PRO)], life.periods, month, life.now, {}, account.paid) for month in months_of(life)
    ]
    by_the_hour = {
        line.start + number * HOUR
        for lines in bills
        for line in lines
        if line.item == "bandwidth"
        for number in range((line.end - line.start) // HOUR)
    }
    assert by_the_hour == life.hours_by_the_hour()

    # Each charge is on the bill of one month, and all of them come to what was added up beside.
    assert [line for lines in bills for line in lines if line.charged] == list(said)
    wanted = sum(life.expected, Fraction(0))
    assert abs(Fraction(total(said)) - wanted) <= Fraction(len(said), 100)
    assert bool(account.terms) == bool(life.terms)
    assert account.is_waiting == bool(life.waiting)
    if life.terms:
        assert account.ends_at == life.terms[-1].end

    # No more is ever paid back than was paid, and never twice.
    assert total(said) >= 0
    assert all(line.amount == 0 or (line.amount < 0) == (line.quantity * line.unit_price < 0) for line in said)
    for item in {line.item for line in said}:
        assert total(line for line in said if line.item == item and line.charged.kind == REFUND) <= 0, item
    if not life.periods:
        assert said == ()


def test_giving_back_costs_nothing_where_a_growth_made_partitions_cheaper():
    """Days are counted from the term's end; an invoice that was sealed by the rule of before has what it had."""
    before = Size(Decimal(100), Decimal(300), 1600)  # 800 partitions are free; at 120 all of them are
    periods = [
        Period(at(1, 10, 20), at(11, 22, 30), before),
        Period(at(11, 22, 30), at(30, 12, 30), replace(before, bandwidth_mb_per_s=Decimal(120))),
    ]
    prepaid = Prepaid((bought(at(1, 10)),))
    account = account_of(prepaid, periods, at(1, month=5))
    assert [line for line in account.paid.charges if line.charged.kind == REFUND] == []  # its last day has begun

    def given_back(prepaid, moment):
        ended = [*periods[:1], replace(periods[1], until=moment)]
        return total(
            line for line in account_of(prepaid, ended, at(1, month=5)).paid.charges if line.charged.kind == REFUND
        )

    assert given_back(prepaid, at(29, 9)) < 0
    sealed = inputs_document(
        [Term(at(1), PRO)], periods, Month(2026, 4), at(30, 13), {}, prepaid=replace(prepaid, rule=1)
    )
    assert "rule" not in sealed["prepaid"]
    assert given_back(prepaid_in(sealed), at(30, 12, 30)) > 0
    now = inputs_document([Term(at(1), PRO)], periods, Month(2026, 4), at(30, 13), {}, prepaid=prepaid)
    assert prepaid_in(now) == prepaid


def test_the_five_day_rule_is_of_the_account_that_it_was_said_of_alone():
    """A clock that was set back between the word and the deletion: the account that comes next has its own days."""
    events = (bought(at(1)), Event(FIVE_DAYS, at(3, 2)), bought(at(4)))
    periods = [Period(at(1), at(3, 1), SMALL), Period(at(4), at(24), SMALL)]
    second = [line for line in account_of(Prepaid(events), periods, at(28)).paid.charges if line.charged.at >= at(4)]
    assert (
        total(line for line in second if line.charged.kind == PURCHASE)
        > -total(line for line in second if line.charged.kind == REFUND)
        > 0
    )


@settings(max_examples=QUICK, deadline=None)
@given(lives())
def test_every_hour_is_paid_once_and_charges_come_to_what_they_should(life):
    check(life)


@pytest.mark.long
@pytest.mark.timeout(1800)
@settings(max_examples=LONG, deadline=None)
@given(lives(steps=25))
def test_ten_thousand_lives(life):
    check(life)


@settings(max_examples=QUICK, deadline=None)
@given(lives(), st.floats(0, 1))
def test_what_was_charged_stays_whatever_comes_later(life, share):
    """Or an invoice would be wrong a month after it was written."""
    now = life.now - (life.now - at(29, month=1)) * share
    earlier = account_of(life.prepaid, life.periods, now).paid.charges
    assert account_of(life.prepaid, life.periods, life.now).paid.charges[: len(earlier)] == earlier


@settings(max_examples=QUICK, deadline=None)
@given(lives(), st.floats(0, 1))
def test_an_hour_that_is_over_stays_paid_as_it_was(life, share):
    now = life.now - (life.now - at(29, month=1)) * share
    earlier, later = (account_of(life.prepaid, life.periods, moment).paid for moment in (now, life.now))
    over = [floored(now) - number * HOUR for number in range(1, 1000)]
    assert [slot for slot in over if earlier.covers(slot) != later.covers(slot)] == []


@settings(max_examples=QUICK, deadline=None)
@given(lives(), st.data())
def test_cutting_a_period_in_two_changes_nothing(life, data):
    if not life.periods:
        return
    place = data.draw(st.integers(0, len(life.periods) - 1))
    period = life.periods[place]
    until = period.until or life.now
    middle = period.start + (until - period.start) * data.draw(st.floats(0.01, 0.99))
    if not period.start < middle < until:
        return
    halves = [Period(period.start, middle, period.size), Period(middle, period.until, period.size)]
    cut = [*life.periods[:place], *halves, *life.periods[place + 1 :]]
    assert account_of(life.prepaid, cut, life.now) == account_of(life.prepaid, life.periods, life.now)


@settings(max_examples=QUICK, deadline=None)
@given(lives())
def test_terms_follow_each_other_without_a_gap(life):
    terms = account_of(life.prepaid, life.periods, life.now).terms
    assert all(first.end == second.start for first, second in pairwise(terms))
    assert all(term.start.minute == 0 and term.end - term.start >= timedelta(days=28 * term.months) for term in terms)


@settings(max_examples=QUICK, deadline=None)
@given(lives())
def test_an_inputs_document_gives_the_same_lines(life):
    month = Month.of(life.now)
    inputs = inputs_document([Term(month.start, PRO)], life.periods, month, life.now, {}, prepaid=life.prepaid)
    paid = account_of(life.prepaid, life.periods, life.now).paid
    assert rated(inputs) == rate([Term(month.start, PRO)], life.periods, month, life.now, {}, paid)
