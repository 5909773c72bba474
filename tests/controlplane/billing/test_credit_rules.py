"""What is given back of days on which the bought bandwidth could not be had: by steps, exact, and the same from its inputs."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.billing.pricing.credits import (
    CREDIT_EDITIONS,
    GUARANTEE,
    NO_CREDITS,
    Missed,
    credit_lines,
    credit_terms_in,
    credits_document,
    credits_in,
    credits_of,
)
from controlplane.billing.pricing.documents import digest_of, inputs_document, line_documents, rated
from controlplane.billing.pricing.forecast import Recent, forecast_document
from controlplane.billing.pricing.plans import PRO, TRAFFIC
from controlplane.billing.pricing.rating import CREDIT, Month, Period, Size, Term, Used, spans_of, total
from controlplane.billing.pricing.sharing import by_topic
from controlplane.billing.pricing.what_if import Wanted, what_if_document

MAY = Month(2027, 5)
NOW = datetime(2027, 6, 2, tzinfo=UTC)
UNDER_PRO = [Term(MAY.start, PRO)]
SMALL = Size(Decimal(20), Decimal(100), 100)
PUBLISHED = {("guarantee", 1): "2496dccf2bca3fab2aa31e97445bc307690c97672f94db74686702f1eede5390"}
"""SHA-256 of every version that was ever in force. One that fails here was changed: give it a new version instead."""
DAY_MS = 86_400_000


def at(day: int, hour: int = 0) -> datetime:
    return datetime(2027, 5, day, hour, tzinfo=UTC)


def waited(permille: int, seen_ms: int = DAY_MS) -> Missed:
    return Missed(seen_ms * permille // 1000, seen_ms)


THERE_ALL_MONTH = (Period(MAY.start, None, SMALL),)


def lines(days, periods=THERE_ALL_MONTH, terms=UNDER_PRO):
    return list(credit_lines(credits_of(days, MAY), terms, periods, MAY, NOW))


def said(*values, **options):
    return [
        (line.start.day, str(line.quantity), str(line.unit_price), str(line.amount))
        for line in lines(*values, **options)
    ]


def test_a_day_has_a_line_at_what_its_bandwidth_cost():
    (line,) = lines({date(2027, 5, 3): (waited(20),)})
    assert (line.item, line.quantity, line.unit, line.unit_price) == (CREDIT, Decimal("-0.25"), "day", Decimal("32.16"))
    assert (str(line.amount), line.start, line.end) == ("-8.04", at(3), at(4))
    assert (line.plan, line.plan_version) == ("guarantee", 1)


@pytest.mark.parametrize(
    ("permille", "percent"),
    [(0, 0), (1, 0), (2, 10), (10, 10), (11, 25), (50, 25), (51, 100), (1000, 100), (9000, 100)],
)
def test_the_longer_the_wait_the_more_is_given_back(permille, percent):
    assert GUARANTEE.percent_of(waited(permille).share) == percent


def test_the_worse_direction_decides():
    assert said({date(2027, 5, 3): (waited(2), waited(60))}) == [(3, "-1", "32.16", "-32.16")]


def test_a_wait_is_measured_by_the_time_that_was_seen():
    assert said({date(2027, 5, 3): (waited(60, seen_ms=60_000),)}) == [(3, "-1", "32.16", "-32.16")]
    assert Missed(5, 0).share == Fraction(0)


def test_hours_without_the_instance_and_of_plans_without_bandwidth_have_no_price():
    late = (Period(at(3, 18), at(4, 2), SMALL),)
    days = {date(2027, 5, day): (waited(60),) for day in (2, 3, 4, 5)}
    assert said(days, late) == [(3, "-1", "8.04", "-8.04"), (4, "-1", "2.68", "-2.68")]
    assert said(days, late, [Term(MAY.start, PRO), Term(at(4), TRAFFIC)]) == [(3, "-1", "8.04", "-8.04")]


def test_without_any_there_is_no_line_and_no_member_of_the_document():
    assert credits_of({}, MAY) == NO_CREDITS
    inputs = inputs_document(UNDER_PRO, [], MAY, NOW, {})
    assert (inputs["version"], "guarantee" in inputs) == (2, False)


def test_months_before_the_first_terms_have_none():
    assert credits_of({date(2026, 11, 3): (waited(60),)}, Month(2026, 11)) == NO_CREDITS
    assert credits_of({date(2026, 12, 3): (waited(60),)}, Month(2026, 12)).terms == GUARANTEE


def test_a_days_line_has_the_hours_that_have_a_price():
    """What the hours are decides whose share it is, where the plan changes within a day."""
    (line,) = lines({date(2027, 5, 3): (waited(60),)}, (Period(at(3, 6), at(3, 20), SMALL),))
    assert (line.start, line.end) == (at(3, 6), at(3, 20))


def test_a_document_gives_the_lines_that_it_gave_on_any_machine():
    found = credits_of({date(2027, 5, 3): (waited(20), waited(2))}, MAY)
    periods = [Period(at(3), at(5), SMALL)]
    inputs = json.loads(json.dumps(inputs_document(UNDER_PRO, periods, MAY, NOW, {}, credits_=found)))
    assert inputs["version"] == 3
    assert credits_in(inputs["guarantee"]) == found == credits_in(json.loads(json.dumps(credits_document(found))))
    assert line_documents(inputs)[-1] == {
        "item": "guarantee_credit", "quantity": "-0.25", "unit": "day", "unit_price": "32.16", "amount": "-8.04",
        "from": "2027-05-03T00:00:00Z", "to": "2027-05-04T00:00:00Z", "plan": "guarantee", "plan_version": 1,
    }  # fmt: skip


def test_a_forecast_has_them_as_they_are_and_a_what_if_at_its_own_price():
    inputs = inputs_document(
        UNDER_PRO,
        [Period(MAY.start, None, SMALL)],
        MAY,
        at(20),
        {},
        credits_=credits_of({date(2027, 5, 3): (waited(60),)}, MAY),
    )

    def back(document) -> list[str]:
        return [str(line.amount) for line in rated(document) if line.item == CREDIT]

    assert (
        back(inputs)
        == back(forecast_document(inputs, Recent(at(13), at(20))))
        == back(what_if_document(inputs))
        == ["-32.16"]
    )
    assert back(what_if_document(inputs, Wanted(bandwidth_mb_per_s=Decimal(40)))) == ["-72.96"]
    assert back(what_if_document(inputs, terms=[Term(MAY.start, TRAFFIC)])) == []


def test_by_topic_it_is_shared_as_bandwidth_is():
    found = lines({date(2027, 5, 3): (waited(60),)})
    used = {MAY.start: {"orders": Used(3, 0, 0), "logs": Used(0, 1, 0)}}
    shares = by_topic(found, spans_of(UNDER_PRO, MAY), used)
    assert [(cost.name, str(cost.amount)) for cost in shares.parts] == [("logs", "-8.04"), ("orders", "-24.12")]
    assert (shares.unshared, str(shares.total)) == ((), "-32.16")


@pytest.mark.parametrize(
    "terms", [terms for _, terms in CREDIT_EDITIONS], ids=lambda terms: f"{terms.name} {terms.version}"
)
def test_published_terms_never_change_and_more_waiting_never_gives_less_back(terms):
    assert digest_of(terms.document()) == PUBLISHED[terms.name, terms.version]
    assert credit_terms_in(json.loads(json.dumps(terms.document()))) == terms
    assert list(terms.steps) == sorted(terms.steps)
    assert [percent for _, percent in terms.steps] == sorted({percent for _, percent in terms.steps})
    assert terms.steps[-1][1] <= 100


MISSED = st.lists(st.builds(Missed, st.integers(0, 2**62), st.integers(0, DAY_MS)), min_size=1, max_size=2)
STAYS = st.lists(
    st.tuples(st.integers(0, 40 * 24), st.integers(1, 10 * 24), st.sampled_from([20, 40, 300])), max_size=4
)


@given(st.dictionaries(st.dates(date(2027, 4, 28), date(2027, 6, 3)), MISSED), STAYS)
def test_a_month_never_gives_back_more_than_its_bandwidth_costs(days, stays):
    hour = timedelta(hours=1)
    periods = [
        Period(MAY.start + begin * hour, MAY.start + (begin + length) * hour, Size(Decimal(size), Decimal(100), 100))
        for begin, length, size in stays
    ]
    inputs = inputs_document(UNDER_PRO, periods, MAY, NOW, {}, credits_=credits_of(days, MAY))
    found = rated(inputs)
    back = total(line for line in found if line.item == CREDIT)
    bandwidth = total(line for line in found if line.item == "bandwidth")
    assert -bandwidth <= back <= 0
    assert all(MAY.start <= line.start and line.end <= MAY.end for line in found if line.item == CREDIT)
