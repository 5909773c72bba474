"""Elastic bandwidth: the cap is shared out, and what is carried above what was bought is counted to the byte."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quota.agent.agent import Agent
from quota.contracts.elastic import MINUTE_MS, ElasticUse
from quota.contracts.instance import ContractError, InstanceSpec, Limits
from quota.core.elastic import ElasticMeter
from quota.core.ledger import Ledger
from quota.master.service import Service
from tests.quota.samples import INSTANCE, flow, report, spec
from tests.quota.test_agent import grants, rates

LEARNED = 10.0
NINE = 1_763_715_600_000  # 09:00 of a day, on the minute


def elastic_spec(limit=300, cap: int | None = 500, **members) -> InstanceSpec:
    found = spec(produce=limit, consume=limit, **members)
    return replace(found, limits=replace(found.limits, elastic_bytes_per_s=cap))


class Metered:
    """A ledger and its meter, a period a second, as many brokers as report."""

    def __init__(self, limit=300, cap: int | None = 500, *, period_ms=1000):
        self.ledger = Ledger(epoch=6, now=0.0, period_ms=period_ms, lease_ms=10_000, is_metered=True)
        self.meter = ElasticMeter(period_ms=period_ms)
        self.period_s = period_ms / 1000
        self.now, self.sequence = LEARNED, 0
        self.lines: list[ElasticUse] = []
        self.buy(limit, cap)

    def buy(self, limit=300, cap: int | None = 500):
        self.ledger.set_specs({INSTANCE: elastic_spec(limit, cap)}, self.now)

    @property
    def now_ms(self):
        return NINE + round((self.now - LEARNED) * 1000)

    def period(self, *produce, consume=()):
        """One more period in which each broker reports its flow, in bytes of a second; None: it says nothing."""
        self.sequence += 1
        self.now += self.period_s
        for broker, used in enumerate(produce, 1):
            if used is not None:
                back = flow(consume[broker - 1]) if consume else flow()
                assert self.ledger.report(report(broker, flow(used), back, sequence=self.sequence), self.now)
        self.lines += self.meter.tick(self.ledger, self.now, self.now_ms)

    def end(self):
        self.lines += self.meter.close(self.ledger.epoch)
        return self

    def used(self, direction="produce"):
        """As whoever reads the lines adds them up: of each key the most."""
        found: dict[tuple[str, int, int], int] = {}
        for line in self.lines:
            key = (line.instance, line.epoch, line.minute_ms)
            if line.direction == direction:
                found[key] = max(found.get(key, 0), line.above_bytes)
        return sum(found.values())


# --- what is shared out -----------------------------------------------------------------------------------------------


def test_the_cap_is_what_the_master_shares_out_where_it_is_metered():
    for is_metered, most in ((True, 500), (False, 300)):
        ledger = Ledger(epoch=1, now=0.0, period_ms=1000, lease_ms=10_000, is_metered=is_metered)
        ledger.set_specs({INSTANCE: elastic_spec()}, LEARNED)
        ledger.report(report(1, flow(250)), LEARNED)
        grant = ledger.grants(1, LEARNED).instances[INSTANCE].produce
        assert grant.allocation == most


def test_a_cap_below_what_was_bought_takes_nothing_away():
    limits = Limits(300, 300, None, None, elastic_bytes_per_s=100)
    assert (limits.allocated("produce"), limits.bought("consume")) == (300, 300)


@pytest.mark.parametrize("limit", [None, 0])
def test_unlimited_stays_unlimited_and_blocked_stays_blocked(limit):
    assert Limits(limit, limit, None, None, elastic_bytes_per_s=500).allocated("produce") == limit


def test_a_broker_takes_a_grant_up_to_the_cap_and_stands_on_what_was_bought_without_one():
    agent = Agent(broker=2, boot="b", now=0.0)
    agent.configure(INSTANCE, 3000, 3000, 0.0, elastic=5000)
    agent.set_leaders(INSTANCE, 2, 6, 0.0)
    assert rates(agent) == (1000, 1000), "without a master nothing is metered"
    agent.apply(grants(4500, 9000), 1.0)
    assert rates(agent) == (4500, 5000)
    agent.configure(INSTANCE, 3000, 3000, 2.0)
    assert rates(agent) == (3000, 3000), "switched off, a grant from before is worth what was bought"
    agent.tick(20.0)
    assert rates(agent) == (1000, 1000)


def test_a_spec_says_its_cap_where_it_has_one():
    plain, elastic = spec(), elastic_spec()
    assert "elastic_bytes_per_s" not in json.loads(plain.head_json())["limits"], "as readers of before know it"
    assert json.loads(elastic.head_json())["limits"]["elastic_bytes_per_s"] == 500
    assert InstanceSpec.from_json(elastic.to_json()).limits == elastic.limits
    assert (plain.is_elastic, elastic.is_elastic) == (False, True)


# --- what is counted ----------------------------------------------------------------------------------------------------


def test_what_flows_above_what_was_bought_is_counted_over_all_brokers():
    metered = Metered()
    metered.period(200, 150)  # 50 above
    metered.period(100, 100)
    metered.period(300, 199, consume=(301, 0))  # 199, and 1
    assert (metered.end().used(), metered.used("consume")) == (249, 1)


def test_nobody_pays_for_more_than_the_cap():
    metered = Metered()
    metered.period(400, 300)
    assert metered.end().used() == 200


def test_without_elastic_bandwidth_nothing_is_counted():
    metered = Metered(cap=None)
    metered.period(400, 300)
    metered.buy(cap=500)
    metered.period(100, 100)
    metered.buy(cap=None)
    metered.period(400, 300)
    assert metered.end().lines == []


def test_a_broker_that_is_silent_is_not_paid_for():
    metered = Metered()
    metered.period(200, 200)  # 100
    metered.period(200, None)  # it was heard a second ago: 100
    metered.period(200, None)  # two seconds
    metered.period(200, None)
    metered.period(200, None)
    assert metered.end().used() == 300


def test_a_new_master_counts_nothing_while_it_learns():
    metered = Metered()
    metered.now = LEARNED - 3
    metered.period(400, 100)
    metered.period(400, 100)
    assert metered.lines == []
    metered.period(400, 100)
    metered.period(400, 100)
    assert metered.end().used() == 400


def test_a_lower_limit_counts_once_brokers_have_heard_of_it():
    metered = Metered()
    metered.period(300)
    metered.buy(limit=100)
    metered.period(300)  # it was granted 300 a moment ago
    metered.period(300)
    assert metered.used() == 0
    metered.period(300)
    assert metered.end().used() == 200


def test_a_minute_has_a_line_of_its_own_and_an_hour_of_it_can_be_added_up():
    metered = Metered()
    for _ in range(130):
        metered.period(301, 0)
    metered.end()
    sums = {line.minute_ms: line.above_bytes for line in metered.lines}
    assert sums == {NINE: 59, NINE + MINUTE_MS: 60, NINE + 2 * MINUTE_MS: 11}
    assert {line.epoch for line in metered.lines} == {6}


def test_a_master_that_is_killed_has_written_all_but_the_last_seconds():
    metered = Metered()
    for _ in range(35):
        metered.period(400, 0)
    assert metered.used() >= 100 * 25


@st.composite
def runs(draw: st.DrawFn) -> list[tuple[int, int, list[int]]]:
    """Limit and cap, which do not fall, and the flow of each of three brokers, second by second."""
    found, limit, above = [], draw(st.integers(0, 400)), draw(st.integers(0, 400))
    for _ in range(draw(st.integers(1, 90))):
        if draw(st.integers(0, 9)) == 0:
            limit += draw(st.integers(0, 100))
        found.append((limit, limit + above, draw(st.lists(st.integers(0, 500), min_size=3, max_size=3))))
    return found


@settings(max_examples=60, deadline=None)
@given(runs())
def test_the_sum_is_that_of_every_second_to_the_byte(run):
    metered, expected = Metered(*run[0][:2]), 0
    for limit, cap, flows in run:
        metered.buy(limit, cap)
        metered.period(*flows)
        expected += max(0, min(sum(flows), cap) - limit) if limit else 0  # 0 is blocked
    assert metered.end().used() == expected
    assert metered.used() <= sum(cap - limit for limit, cap, _ in run)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([100, 250, 300, 700, 1000, 1500]), st.lists(st.integers(0, 900), min_size=1, max_size=200))
def test_it_is_exact_whatever_the_length_of_a_period(period_ms, flows):
    metered, by_minute = Metered(period_ms=period_ms), {}
    for used in flows:
        metered.period(used)
        minute = metered.now_ms - metered.now_ms % MINUTE_MS
        above = Fraction(max(0, min(used, 500) - 300) * period_ms, 1000)
        by_minute[minute] = by_minute.get(minute, Fraction(0)) + above
    assert metered.end().used() == sum(int(each) for each in by_minute.values())


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 700), min_size=1, max_size=150), st.data())
def test_lines_may_come_late_twice_and_in_any_order(flows, data):
    metered = Metered()
    for used in flows:
        metered.period(used)
    wanted = metered.end().used()
    again = data.draw(st.lists(st.sampled_from(metered.lines), max_size=20)) if metered.lines else []
    metered.lines = data.draw(st.permutations([*metered.lines, *again]))
    assert metered.used() == wanted


# --- from the master --------------------------------------------------------------------------------------------------


def test_the_service_hands_out_what_is_billed_also_when_its_mastership_ends():
    kept: list[ElasticUse] = []
    clock = [LEARNED]
    service = Service(
        period_ms=1000, lease_ms=10_000, now=lambda: clock[0], wall_ms=lambda: NINE + round(clock[0] * 1000),
        keep_elastic=kept.extend,
    )  # fmt: skip
    service.set_specs({INSTANCE: elastic_spec()})
    service.won(7)
    clock[0] += 20
    for sequence in (1, 2):
        clock[0] += 1
        service.report(report(1, flow(450), sequence=sequence))
        service.tick()
    service.lost()
    assert {(use.epoch, use.direction) for use in kept} == {(7, "produce")}
    assert max(use.above_bytes for use in kept) == 300


def test_a_service_that_keeps_nothing_grants_what_was_bought():
    service = Service(period_ms=1000, lease_ms=10_000, now=lambda: 100.0)
    service.set_specs({INSTANCE: elastic_spec()})
    service.won(1)
    assert service.ledger is not None
    limited = service.ledger.limited(INSTANCE)
    assert limited is not None
    assert limited.produce == 300


# --- the document -----------------------------------------------------------------------------------------------------

USE = ElasticUse(INSTANCE, "produce", 3, 1_763_712_060_000, 73_400_320)
GOLDEN = b'{"bytes":73400320,"direction":"produce","epoch":3,"instance":"ins-k3v9x2qa","minute_ms":1763712060000,"version":1}'


def test_a_line_is_as_it_always_was():
    assert USE.to_json() == GOLDEN
    assert ElasticUse.from_document(json.loads(GOLDEN)) == USE


@pytest.mark.parametrize(
    "change",
    [{"version": 2}, {"bytes": -1}, {"bytes": 1.5}, {"bytes": True}, {"direction": "both"}, {"minute_ms": 61_000},
     {"instance": 7}, {"epoch": None}],
)  # fmt: skip
def test_a_line_that_breaks_the_contract_is_refused(change):
    with pytest.raises(ContractError, match="elastic use"):
        ElasticUse.from_document(json.loads(GOLDEN) | change)


def test_a_line_without_a_member_is_refused():
    with pytest.raises(ContractError, match="KeyError"):
        ElasticUse.from_document({"version": 1})
