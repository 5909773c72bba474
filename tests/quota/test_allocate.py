"""The documented rule: worked cases, and the same answer as a naive version written from the text with fractions."""

from fractions import Fraction
from math import floor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quota.core.allocate import allocate
from quota.core.model import Branch, BrokerFlow, Strategy

SCALE = 10_000  # the tables speak of L = 100; whole numbers need finer units


def flows_of(*used, leaders=None, throttled=False):
    leaders = leaders or [2] * len(used)
    return [BrokerFlow(index + 1, leaders[index], use, throttled) for index, use in enumerate(used)]


def amounts(allocation):
    return [share.allocation_bytes_per_s for share in allocation.shares]


@pytest.mark.parametrize(
    ("used", "branch", "expected"),
    [
        ((0, 0, 0), "initial", (33.33, 33.33, 33.33)),
        ((26, 26, 26), "initial", (33.33, 33.33, 33.33)),
        ((30, 30, 30), "proportional", (33.33, 33.33, 33.33)),
        ((30, 25, 25), "proportional", (37.5, 31.25, 31.25)),
        ((33.3333, 10, 10), "headroom", (62.5, 25, 25)),
        ((100, 0, 0), "headroom", (100, 10, 10)),
        ((40, 40, 5), "headroom", (47.06, 47.06, 10.59)),
    ],
)
def test_worked_cases_of_the_paper(used, branch, expected):
    allocation = allocate(100 * SCALE, flows_of(*(int(use * SCALE) for use in used)))
    assert allocation.branch == branch
    assert [amount / SCALE for amount in amounts(allocation)] == pytest.approx(expected, abs=0.006)


def test_exactly_80_percent_of_the_initial_share_is_not_below_it():
    assert allocate(300, flows_of(79, 79, 79)).branch == "initial"
    assert allocate(300, flows_of(80, 79, 79)).branch == "proportional"


def test_a_ratio_of_exactly_80_percent_is_proportional_and_a_byte_less_is_headroom():
    assert allocate(10**9, flows_of(10**9, 8 * 10**8)).branch == "proportional"
    assert allocate(10**9, flows_of(10**9, 8 * 10**8 - 1)).branch == "headroom"


def naive(limit, flows):
    """ALLOCATION.md, read aloud."""
    flows = [flow for flow in flows if flow.leaders > 0]
    if limit == 0 or not flows:
        return "initial", [0 for _ in flows]
    all_leaders = sum(flow.leaders for flow in flows)
    initial = [Fraction(limit * flow.leaders, all_leaders) for flow in flows]
    if all(flow.flow_bytes_per_s < Fraction(8, 10) * first for flow, first in zip(flows, initial, strict=True)):
        return "initial", [floor(share) for share in initial]
    total = sum(flow.flow_bytes_per_s for flow in flows)
    ratio = [Fraction(limit * flow.flow_bytes_per_s, total) for flow in flows]
    most, least = max(ratio), min(ratio)
    if least / most >= Fraction(8, 10):
        return "proportional", [floor(share) for share in ratio]
    winner = min(flow.broker for flow, share in zip(flows, ratio, strict=True) if share == most)
    shares = [
        share if flow.broker == winner else min(share + most / 10, most)
        for flow, share in zip(flows, ratio, strict=True)
    ]
    return "headroom", [floor(share) for share in shares]


limits = st.one_of(st.integers(0, 200), st.integers(0, 10**10))
flow_lists = st.lists(
    st.tuples(st.integers(0, 6), st.one_of(st.integers(0, 120), st.integers(0, 10**10))), max_size=6
).map(lambda pairs: [BrokerFlow(index, leaders, used) for index, (leaders, used) in enumerate(pairs)])


@settings(max_examples=300)
@given(limits, flow_lists)
def test_the_rule_gives_what_the_text_says_to_the_last_byte(limit, flows):
    allocation = allocate(limit, flows)
    assert (allocation.branch.value, amounts(allocation)) == naive(limit, flows)


@settings(max_examples=300)
@given(limits, flow_lists)
def test_the_sum_stays_within_the_documented_bounds(limit, flows):
    allocation = allocate(limit, flows)
    total, count = sum(amounts(allocation)), len(allocation.shares)
    if allocation.branch is Branch.HEADROOM:
        assert 10 * total <= limit * (10 + count - 1)
        assert total > limit - count
    elif limit and count:
        assert limit - count < total <= limit


@settings(max_examples=300)
@given(limits, flow_lists, st.sets(st.integers(0, 5)), st.sets(st.integers(0, 5)))
def test_bounded_never_hands_out_more_than_a_twentieth_extra(limit, flows, throttled, silent):
    flows = [
        BrokerFlow(each.broker, each.leaders, each.flow_bytes_per_s, each.broker in throttled, each.broker in silent)
        for each in flows
    ]
    assert sum(amounts(allocate(limit, flows, Strategy.BOUNDED))) * 100 <= 105 * limit


@settings(max_examples=200)
@given(st.integers(1, 10**9), flow_lists, st.sets(st.integers(0, 5), min_size=1))
def test_bounded_gives_throttled_brokers_equal_shares_and_never_less_than_an_unthrottled_one(limit, flows, throttled):
    flows = [BrokerFlow(f.broker, f.leaders, f.flow_bytes_per_s, f.broker in throttled) for f in flows]
    shares = allocate(limit, flows, Strategy.BOUNDED).shares
    waiting = [share.allocation_bytes_per_s for share in shares if share.broker in throttled]
    if waiting:
        assert len(set(waiting)) == 1
        assert all(share.allocation_bytes_per_s <= waiting[0] + 1 for share in shares)


def test_bounded_leaves_unthrottled_brokers_what_they_use_and_the_rest_to_the_throttled():
    flows = [BrokerFlow(1, 2, 40, throttled=True), BrokerFlow(2, 2, 10), BrokerFlow(3, 2, 20)]
    assert amounts(allocate(6000, flows, "bounded")) == [6000 - 30 + 100, 10 + 100, 20 + 100]


def test_bounded_lets_all_grow_alike_where_nobody_is_throttled():
    flows = [BrokerFlow(1, 2, 40), BrokerFlow(2, 2, 10), BrokerFlow(3, 2, 20)]
    rest = (6000 - 70) / 3
    assert amounts(allocate(6000, flows, "bounded")) == [int(use + rest + 100) for use in (40, 10, 20)]


def naive_bounded(limit, flows):
    """Water rises in all who ask for more, until it is all or nobody asks; fractions all the way."""
    flows = [flow for flow in flows if flow.leaders > 0]
    if limit == 0 or not flows:
        return [0 for _ in flows]
    count, extra = len(flows), Fraction(limit, 20 * len(flows))
    asks = [Fraction(10**12 if flow.throttled else flow.flow_bytes_per_s) for flow in flows]
    if sum(asks) <= limit:
        return [floor(ask + (limit - sum(asks)) / count + extra) for ask in asks]
    filled: dict[int, Fraction] = {}
    while True:
        level = (limit - sum(filled.values())) / (count - len(filled))
        satisfied = {place: ask for place, ask in enumerate(asks) if place not in filled and ask <= level}
        if not satisfied:
            return [floor(filled.get(place, level) + extra) for place in range(count)]
        filled |= satisfied


@settings(max_examples=300)
@given(limits, flow_lists, st.sets(st.integers(0, 5)))
def test_bounded_fills_from_below_to_the_last_byte(limit, flows, throttled):
    flows = [BrokerFlow(f.broker, f.leaders, f.flow_bytes_per_s, f.broker in throttled) for f in flows]
    assert amounts(allocate(limit, flows, Strategy.BOUNDED)) == naive_bounded(limit, flows)


def test_a_silent_leader_is_set_aside_its_initial_share_and_the_others_divide_the_rest():
    flows = [BrokerFlow(1, 2, 100), BrokerFlow(2, 2, 0), BrokerFlow(3, 2, 77, silent=True)]
    allocation = allocate(300, flows)
    assert amounts(allocation) == [200, 20, 100]
    assert [share.branch for share in allocation.shares] == [Branch.HEADROOM, Branch.HEADROOM, Branch.RESERVED]


def test_a_tie_for_the_largest_goes_to_the_lowest_broker():
    allocation = allocate(100, [BrokerFlow(3, 1, 40), BrokerFlow(1, 1, 40), BrokerFlow(2, 1, 1)])
    assert [share.broker for share in allocation.shares] == [1, 2, 3]
    assert amounts(allocation) == [49, 6, 49]


def test_brokers_without_a_leader_take_no_part():
    allocation = allocate(90, [BrokerFlow(1, 0, 50), BrokerFlow(2, 1, 0)])
    assert [(share.broker, share.allocation_bytes_per_s) for share in allocation.shares] == [(2, 90)]


def test_an_instance_without_leaders_has_no_shares():
    assert allocate(90, []).shares == ()
    assert allocate(90, [BrokerFlow(1, 0, 5)]).shares == ()


def test_unlimited_is_not_a_number():
    allocation = allocate(None, flows_of(5, 500))
    assert allocation.branch is Branch.UNLIMITED
    assert amounts(allocation) == [None, None]
