"""The flight recorder: which intervals there are, and that each has all that its decision was made from."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quota.contracts.report import FlowReport, InstanceReport
from quota.contracts.rows import Row
from quota.contracts.rules import RuleKind, RuleSet, ThrottleRule
from quota.contracts.throttled import BrokerInputs
from quota.core.ledger import Ledger
from quota.core.over import OverAdmission
from quota.core.recorder import MOST_OPEN, Recorder
from tests.quota.samples import INSTANCE, flow, report, spec

LEARNED = 10.0
NINE = 1_763_715_600_000  # 09:00 of a day, on the minute


class Watched:
    """A ledger and its recorder, a period a second, two brokers."""

    def __init__(self, **limits):
        self.ledger = Ledger(epoch=6, now=0.0, period_ms=1000, lease_ms=10_000)
        self.recorder = Recorder(period_ms=1000)
        self.now, self.sequence = LEARNED, 0
        self.buy(**limits)

    def buy(self, **limits):
        self.ledger.set_specs({INSTANCE: spec(**limits)}, self.now)

    def second(self, *produce, consume=()):
        """One more second in which each broker reports its flow; what is to be written."""
        self.sequence += 1
        self.now += 1.0
        for broker, row in enumerate(produce, 1):
            back = consume[broker - 1] if consume else None
            self.take(report(broker, row, back, sequence=self.sequence))
        return self.recorder.tick(self.ledger, self.now, NINE + int((self.now - LEARNED) * 1000))

    def take(self, document):
        assert self.ledger.report(document, self.now)
        self.recorder.take(document)

    def seconds(self, count, *produce):
        return [interval for _ in range(count) for interval in self.second(*produce)]


def waits(used, milliseconds=600, **facts):
    return flow(used, throttled_ms=milliseconds, **facts)


def test_who_never_waits_leaves_no_interval():
    watched = Watched()
    assert watched.seconds(70, flow(150), flow(150)) == []
    assert watched.recorder.close(6) == []


def test_an_interval_has_every_input_of_the_decision_and_the_decision():
    watched = Watched(produce=300)
    watched.second(flow(300, throttled_ms=600, allocation=290, queued=77), flow(0, allocation=30))
    (interval,) = watched.seconds(2, flow(10), flow(10))
    assert (interval.instance, interval.direction, interval.epoch) == (INSTANCE, "produce", 6)
    assert (interval.limit, interval.strategy) == (300, "ckafka")
    assert (interval.started_at_ms, interval.ended_at_ms) == (NINE, NINE + 1000)
    assert (interval.throttled_ms, interval.under_limit_ms, interval.waits_ms) == (600, 0, {1: 600})
    assert interval.moment.at_ms == NINE + 1000
    assert interval.moment.brokers == (
        BrokerInputs(
            1, 2, 150, 300, allocation=290, granted=300, branch="headroom", throttled_ms=600, waiting_bytes=77
        ),
        BrokerInputs(2, 2, 150, 0, allocation=30, granted=30, branch="headroom", throttled_ms=0, waiting_bytes=0),
    )


def test_a_broker_without_a_grant_stood_on_its_initial_share():
    watched = Watched(produce=300)
    watched.second(waits(150, allocation=None), flow(0))
    (interval,) = watched.recorder.close(6)
    assert interval.moment.brokers[0].allocation == 150


def test_periods_that_follow_each_other_are_one_interval_and_a_pause_of_two_seconds_ends_it():
    watched = Watched()
    assert watched.seconds(3, waits(100), flow(0)) == []
    assert watched.seconds(1, flow(10), flow(0)) == []
    assert watched.seconds(2, waits(100), flow(0)) == []
    assert watched.seconds(1, flow(10), flow(0)) == []
    (interval,) = watched.seconds(1, flow(10), flow(0))
    assert (interval.started_at_ms, interval.ended_at_ms) == (NINE, NINE + 6000)
    assert (interval.throttled_ms, interval.under_limit_ms) == (5 * 600, 5 * 600)


@pytest.mark.parametrize(
    ("held", "other", "under_ms"),
    [
        (300, 0, 0),  # all of it: a burst waited for what was bought
        (284, 0, 600),  # below 95 %
        (200, 100, 0),  # what the other one left
        (180, 100, 600),
        (None, 0, 600),  # its initial share
    ],
)
def test_a_burst_waits_for_the_limit_where_a_broker_holds_all_that_others_leave(held, other, under_ms):
    watched = Watched(produce=300)
    watched.second(waits(60, allocation=held), flow(other))
    (interval,) = watched.recorder.close(6)
    assert (interval.throttled_ms, interval.under_limit_ms) == (600, under_ms)


def test_the_inputs_are_those_of_the_period_in_which_most_was_waited():
    watched = Watched()
    for milliseconds in (100, 900, 300):
        watched.second(waits(100 + milliseconds, milliseconds), flow(0))
    (interval,) = watched.recorder.close(6)
    assert interval.moment.at_ms == NINE + 2000
    assert interval.moment.brokers[0].flow == 1000
    assert interval.waits_ms == {1: 1300}


def test_an_interval_lasts_a_minute_at_most_and_is_written_every_ten_seconds():
    watched = Watched()
    written = watched.seconds(61, waits(100), flow(0))
    ends = [interval.ended_at_ms - NINE for interval in written]
    assert ends == [11_000, 21_000, 31_000, 41_000, 51_000, 60_000]
    assert {interval.started_at_ms for interval in written} == {NINE}
    (rest,) = watched.recorder.close(6)
    assert (rest.started_at_ms, rest.ended_at_ms) == (NINE + 60_000, NINE + 61_000)


def test_another_limit_begins_another_interval():
    watched = Watched(produce=300)
    watched.second(waits(100), flow(0))
    watched.buy(produce=600, generation=2)
    (ended,) = watched.second(waits(100), flow(0))
    (open_one,) = watched.recorder.close(6)
    assert (ended.limit, open_one.limit) == (300, 600)


def test_both_directions_are_recorded_apart():
    watched = Watched()
    watched.second(waits(100, 200), flow(0), consume=(waits(80, 700), flow(0)))
    found = {interval.direction: interval.throttled_ms for interval in watched.recorder.close(6)}
    assert found == {"produce": 200, "consume": 700}


def test_early_reports_add_up_and_several_brokers_count_once():
    watched = Watched()
    watched.now += 0.5
    watched.take(report(1, waits(100, 300), sequence=50, boot="b"))
    watched.now -= 0.5
    watched.sequence = 100
    watched.second(waits(100, 400), waits(100, 500))
    (interval,) = watched.recorder.close(6)
    assert interval.waits_ms == {1: 700, 2: 500}
    assert interval.throttled_ms == 700


def test_more_than_was_bought_is_recorded_though_nobody_waits():
    watched = Watched(produce=300)
    watched.second(flow(300), flow(30))
    (interval,) = watched.recorder.close(6)
    assert interval.throttled_ms == 0
    assert interval.over_percent == (10.0, 0.0, 0.0)


@pytest.mark.parametrize(("flowed", "intervals"), [(306, 0), (307, 1)])  # 2 % is what clocks and periods may make of it
def test_two_percent_more_than_was_bought_is_not_recorded_and_beyond_it_is(flowed, intervals):
    watched = Watched(produce=300)
    watched.second(flow(flowed), flow(0))
    assert len(watched.recorder.close(6)) == intervals


def test_what_flowed_under_the_old_limit_is_not_held_against_a_lower_one():
    watched = Watched(produce=300)
    assert watched.seconds(60, flow(300), flow(0)) == []
    watched.buy(produce=60, generation=2)
    assert watched.second(flow(300), flow(0)) == []  # reports are of the period before
    assert watched.second(flow(180), flow(0)) == []  # and brokers hear of it one after the other
    assert watched.seconds(70, flow(60), flow(0)) == []
    assert watched.recorder.close(6) == []


def test_what_flows_above_a_lower_limit_when_it_should_be_in_force_is_over_admission():
    watched = Watched(produce=300)
    watched.seconds(10, flow(300), flow(0))
    watched.buy(produce=60, generation=2)
    watched.seconds(3, flow(60), flow(0))
    watched.second(flow(120), flow(0))
    (interval,) = watched.recorder.close(6)
    assert (interval.limit, interval.over_percent[0]) == (60, 100.0)


def test_waiting_just_after_the_limit_was_lowered_is_measured_against_the_one_that_flowed():
    watched = Watched(produce=300)
    watched.seconds(5, flow(300), flow(0))
    watched.buy(produce=60, generation=2)
    watched.second(waits(290), flow(0))
    (interval,) = watched.recorder.close(6)
    assert (interval.limit, interval.over_percent) == (300, (0.0, 0.0, 0.0))


def test_a_raised_limit_counts_at_once():
    watched = Watched(produce=60)
    watched.seconds(10, flow(60), flow(0))
    watched.buy(produce=300, generation=2)
    assert watched.seconds(5, flow(300), flow(0)) == []


@pytest.mark.parametrize("limit", [None, 0])
def test_without_a_limit_or_blocked_there_is_no_over_admission(limit):
    watched = Watched(produce=limit)
    assert watched.seconds(5, flow(500), flow(500)) == []


def test_an_instance_that_was_deleted_while_it_waited_is_closed():
    watched = Watched()
    watched.second(waits(100), flow(0))
    watched.ledger.set_specs({}, watched.now)
    (interval,) = watched.seconds(3, waits(100), flow(0))
    assert interval.instance == INSTANCE


def test_an_instance_at_rest_costs_nothing_after_a_minute():
    watched = Watched()
    watched.second(flow(150), flow(0))
    watched.seconds(61, flow(0), flow(0))
    assert (watched.recorder._over, watched.recorder._waits, list(watched.ledger.totals())) == ({}, {}, [])


@settings(max_examples=50)
@given(st.lists(st.integers(0, 500), min_size=1, max_size=150), st.sampled_from([200, 500, 1000]))
def test_over_admission_is_that_of_a_naive_count(flows, period_ms):
    windows, limit = OverAdmission(period_ms), 100
    for end in range(1, len(flows) + 1):
        over = windows.add(flows[end - 1], limit)
        for window_s, found in zip((1, 10, 60), over, strict=True):
            count = window_s * 1000 // period_ms
            held = sum(flows[max(0, end - count) : end]) / count
            assert found == pytest.approx(max(0.0, 100 * held / limit - 100), abs=0.06)


def ruled(watched, waiting):
    """A second in which the rows of rules wait, and the instance does not."""
    watched.sequence += 1
    watched.now += 1.0
    entries = {name: InstanceReport(row, flow(), 0, 0) for name, row in waiting.items()}
    watched.take(
        FlowReport(1, "a", watched.sequence, 1000, {INSTANCE: InstanceReport(flow(50), flow(), 0, 0), **entries})
    )
    return watched.recorder.tick(watched.ledger, watched.now, NINE + int((watched.now - LEARNED) * 1000))


@pytest.fixture
def with_rules():
    watched = Watched()
    items = (
        ThrottleRule("rule-1", RuleKind.TOPIC, 40, None, topics=("orders",)),
        ThrottleRule("rule-2", RuleKind.CLIENT, 10, None, clients=(None,)),
    )
    watched.ledger.set_specs({INSTANCE: replace(spec(), rules=RuleSet(1, items))}, watched.now)
    return watched


def test_a_throttle_rule_has_intervals_of_its_own(with_rules):
    ruled(
        with_rules,
        {Row(INSTANCE, "rule-1").key: waits(38), Row(INSTANCE, "rule-2").of_client(["a/b"]).key: waits(10, 90)},
    )
    found = {interval.rule: interval for interval in with_rules.recorder.close(6)}
    assert set(found) == {"rule-1", "rule-2/a%2Fb"}
    assert {interval.instance for interval in found.values()} == {INSTANCE}
    assert (found["rule-1"].limit, found["rule-1"].throttled_ms) == (40, 600)
    assert found["rule-2/a%2Fb"].limit == 10


def test_what_a_rule_lets_through_above_its_limit_without_waiting_is_no_matter_of_the_guarantee(with_rules):
    ruled(with_rules, {Row(INSTANCE, "rule-1").key: flow(80)})
    assert with_rules.recorder.close(6) == []


def test_single_clients_without_number_do_not_grow_the_record_without_bound(with_rules):
    waiting = {
        Row(INSTANCE, "rule-2").of_client([f"client-{number}"]).key: waits(10) for number in range(MOST_OPEN + 50)
    }
    ruled(with_rules, waiting)
    assert len(with_rules.recorder.close(6)) == MOST_OPEN
    assert not with_rules.recorder._opened
