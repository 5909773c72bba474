"""Shares of a bill add up to it, to the cent, and nobody's is more than a cent away from what is exact."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.billing.pricing.money import total_of
from controlplane.billing.pricing.plans import PRO, TRAFFIC
from controlplane.billing.pricing.rating import (
    HOUR,
    Adjusts,
    Line,
    Month,
    Period,
    Size,
    Term,
    Used,
    rate,
    spans_of,
    total,
)
from controlplane.billing.pricing.sharing import (
    ADJUSTMENT,
    NO_USAGE,
    NOT_METERED,
    USER_KINDS,
    UserUsed,
    by_topic,
    by_user,
    shared,
    user_kind,
)
from quota.contracts.usage import NO_USER, OTHER_USERS

MAY = Month(2026, 5)
QUICK = settings(max_examples=100, deadline=None)
PERIODS = [Period(MAY.start, None, Size(Decimal(240), Decimal(1000), 1700))]

weights = st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(0, 2**80), min_size=1).filter(
    lambda found: any(found.values())
)
money = st.integers(-(10**15), 10**15).map(lambda cents: Decimal(cents) * Decimal("0.01"))
uses = st.builds(Used, st.integers(0, 10**13), st.integers(0, 10**13), st.integers(0, 2**60))
topics = st.dictionaries(st.sampled_from(["orders", "payments", "clicks", "audit"]), uses)

moves = st.builds(UserUsed, st.integers(0, 2**60), st.integers(0, 2**60), st.integers(0, 10**9))
users = st.dictionaries(st.sampled_from([NO_USER, OTHER_USERS, "alice", "bob"]), moves)


@QUICK
@given(money, weights)
def test_shares_add_up_and_are_less_than_a_cent_away_from_exact_ones(amount, found):
    shares = shared(amount, found)
    assert total_of(shares.values()) == amount
    whole = sum(found.values())
    for name, share in shares.items():
        assert abs(Fraction(share) - Fraction(amount) * found[name] / whole) < Fraction(1, 100)


@QUICK
@given(money, weights)
def test_who_used_more_never_gets_less_and_who_used_nothing_gets_nothing(amount, found):
    shares = shared(abs(amount), found)
    ordered = [shares[name] for name in sorted(found, key=lambda name: (found[name], shares[name]))]
    assert ordered == sorted(ordered)
    assert all(share == 0 for name, share in shares.items() if not found[name])


@QUICK
@given(money, weights)
def test_the_order_in_which_topics_come_decides_nothing(amount, found):
    assert shared(amount, found) == shared(amount, dict(reversed(found.items())))


def test_the_last_cents_go_to_those_that_lost_most():
    assert shared(Decimal("1.00"), {"a": 1, "b": 1, "c": 1}) == {
        "a": Decimal("0.34"), "b": Decimal("0.33"), "c": Decimal("0.33"),
    }  # fmt: skip
    assert shared(Decimal("0.01"), {"a": 1, "b": 2}) == {"a": Decimal("0.00"), "b": Decimal("0.01")}


@pytest.mark.parametrize("bad", [{}, {"a": 0}, {"a": 2, "b": -1}])
def test_there_must_be_something_to_share_by(bad):
    with pytest.raises(ValueError, match="weight"):
        shared(Decimal(1), bad)


@QUICK
@given(
    st.lists(st.tuples(st.integers(1, 700), st.sampled_from([PRO, TRAFFIC])), max_size=3),
    st.lists(topics, min_size=4, max_size=4),
    st.integers(1, 744),
)
def test_topics_and_the_rest_add_up_to_the_bill(chosen, used, hours):
    terms = [
        Term(start, plan)
        for start, plan in sorted({MAY.start: PRO, **{MAY.start + n * HOUR: p for n, p in chosen}}.items())
    ]
    spans = spans_of(terms, MAY)
    of_topics = {span.start: found for span, found in zip(spans, used, strict=False)}
    by_hour = {start: sum(found.values(), Used()) for start, found in of_topics.items()}
    lines = rate(terms, PERIODS, MAY, MAY.start + hours * HOUR, by_hour)
    shares = by_topic(lines, spans, of_topics)
    parts = [cost.amount for cost in shares.parts] + [each.amount for each in shares.unshared]
    assert total_of(parts) == shares.total == total(lines)
    for cost in shares.parts:
        assert total_of(cost.items.values()) == cost.amount
    assert [cost.amount for cost in shares.parts] == sorted((cost.amount for cost in shares.parts), reverse=True)


@QUICK
@given(
    st.lists(st.tuples(st.integers(1, 700), st.sampled_from([PRO, TRAFFIC])), max_size=3),
    st.lists(uses, min_size=4, max_size=4),
    st.lists(users, min_size=4, max_size=4),
    st.integers(1, 744),
)
def test_users_and_the_rest_add_up_to_the_bill_whatever_topics_did(chosen, used, moved, hours):
    """What is billed is record bytes, and what it is shared by are bytes on the wire: neither follows from the other."""
    terms = [
        Term(start, plan)
        for start, plan in sorted({MAY.start: PRO, **{MAY.start + n * HOUR: p for n, p in chosen}}.items())
    ]
    spans = spans_of(terms, MAY)
    billed = {span.start: found for span, found in zip(spans, used, strict=False)}
    of_users = {span.start: found for span, found in zip(spans, moved, strict=False)}
    lines = rate(terms, PERIODS, MAY, MAY.start + hours * HOUR, billed)
    shares = by_user(lines, spans, of_users)
    parts = [part.amount for part in shares.parts] + [each.amount for each in shares.unshared]
    assert total_of(parts) == shares.total == total(lines)
    for part in shares.parts:
        assert total_of(part.items.values()) == part.amount
        assert part.used == sum((found[part.name] for found in of_users.values() if part.name in found), UserUsed())
        assert not {"stored", "disk", "partitions"} & set(part.items), "what is stored is no user's"
    assert {part.name for part in shares.parts} == {name for found in of_users.values() for name in found}


def line(item: str, amount: str, **more) -> Line:
    place = {"start": MAY.start, "end": MAY.end, "plan": "pro", "plan_version": 1} | more
    return Line(item, Decimal(1), "hour", Decimal(amount), Decimal(amount), **place)


def test_what_each_item_is_shared_by():
    lines = [line("bandwidth", "10.00"), line("disk", "9.00"), line("partitions", "5.00"), line("produced", "1.00")]
    used = {MAY.start: {"a": Used(300, 0, 1), "b": Used(0, 100, 2)}}
    shares = by_topic(lines, spans_of([Term(MAY.start, PRO)], MAY), used)
    assert {cost.name: dict(cost.items) for cost in shares.parts} == {
        "a": {"bandwidth": Decimal("7.50"), "disk": Decimal("3.00"), "produced": Decimal("1.00")},
        "b": {"bandwidth": Decimal("2.50"), "disk": Decimal("6.00"), "produced": Decimal("0.00")},
    }
    assert [(each.item, each.amount, each.reason) for each in shares.unshared] == [
        ("partitions", Decimal("5.00"), NOT_METERED)
    ]


def test_what_nothing_can_be_given_stands_by_itself_with_the_reason():
    adjusts = Adjusts("inv-00000001", "2026-04", 3)
    lines = [line("bandwidth", "10.00"), line("produced", "-0.30", adjusts=adjusts)]
    shares = by_topic(lines, spans_of([Term(MAY.start, PRO)], MAY), {MAY.start: {"quiet": Used(0, 0, 50)}})
    assert [(cost.name, cost.amount) for cost in shares.parts] == [("quiet", Decimal("0.00"))]
    assert [(each.item, each.amount, each.reason) for each in shares.unshared] == [
        ("bandwidth", Decimal("10.00"), NO_USAGE),
        ("produced", Decimal("-0.30"), ADJUSTMENT),
    ]
    assert shares.total == Decimal("9.70")


def test_each_plans_hours_are_shared_by_what_was_used_in_them():
    """A topic that was used under the free plan only pays nothing of what the other plan bills by the byte."""
    change = MAY.start + 100 * HOUR
    terms = [Term(MAY.start, PRO), Term(change, TRAFFIC)]
    used = {MAY.start: {"early": Used(10**12)}, change: {"late": Used(10**10)}}
    lines = rate(terms, [], MAY, MAY.end, {start: sum(each.values(), Used()) for start, each in used.items()})
    shares = by_topic(lines, spans_of(terms, MAY), used)
    assert {cost.name: cost.amount for cost in shares.parts} == {"early": Decimal("0.00"), "late": Decimal("6.00")}


def test_what_each_item_is_shared_by_among_users():
    lines = [
        line("bandwidth", "10.00"), line("disk", "9.00"), line("partitions", "5.00"), line("stored", "2.00"),
        line("produced", "1.00"), line("consumed", "4.00"), line("elastic_produced", "0.50"), line("guarantee_credit", "-1.00"),
    ]  # fmt: skip
    used = {MAY.start: {"alice": UserUsed(300, 0, 1), NO_USER: UserUsed(0, 100, 2)}}
    shares = by_user(lines, spans_of([Term(MAY.start, PRO)], MAY), used)
    assert {
        part.name: {item: str(amount) for item, amount in part.items.items() if amount} for part in shares.parts
    } == {
        "alice": {"bandwidth": "7.50", "produced": "1.00", "elastic_produced": "0.50", "guarantee_credit": "-0.75"},
        NO_USER: {"bandwidth": "2.50", "consumed": "4.00", "guarantee_credit": "-0.25"},
    }
    assert {(each.item, str(each.amount), each.reason) for each in shares.unshared} == {
        ("disk", "9.00", NOT_METERED), ("partitions", "5.00", NOT_METERED), ("stored", "2.00", NOT_METERED),
    }  # fmt: skip


def test_a_name_that_nobody_has_says_whose_it_is():
    assert [user_kind(name) for name in ("alice", NO_USER, OTHER_USERS)] == list(USER_KINDS)
