"""The words of a sentence where there is little to say: no traffic, no limit, equals, the edge of what counts as all."""

import pytest

from quota.contracts.instance import MIB
from quota.contracts.rows import LOOP_MS, REQUEST, Unit
from quota.core.explain import explain, explain_interval
from quota.core.model import Allocation, Branch, Share
from tests.quota.test_explain_interval import broker, interval


def requests(*brokers, limit=10, throttled_ms=12_400):
    return interval(*brokers, limit=limit * REQUEST, rule=Unit.REQUESTS, throttled_ms=throttled_ms)


def loop_time(*brokers, limit=10, throttled_ms=12_400):
    return interval(*brokers, limit=limit * LOOP_MS, rule=Unit.LOOP_TIME, throttled_ms=throttled_ms)


def test_an_instance_without_traffic_uses_0_percent():
    allocation = Allocation(5 * MIB, Branch.INITIAL, (Share(1, 2, 0, MIB, MIB, Branch.INITIAL),))
    assert explain("produce", allocation, 1).startswith("broker 1 carries 0 % of the produce traffic (2 of 2 leaders)")


@pytest.mark.parametrize(("flow", "words"), [(9_499, "used only 94 %"), (9_500, "used 95 %"), (9_501, "used 95 %")])
def test_from_95_percent_on_it_is_all_that_there_is(flow, words):
    told = explain_interval(interval(broker(1, flow), limit=10_000))
    assert words in told
    assert words in explain_interval(requests(broker(1, flow), limit=10))
    only = "used only" in words
    assert ("used only" in explain_interval(loop_time(broker(1, flow), limit=10))) is only


def test_of_brokers_that_waited_alike_the_busier_is_named_and_of_equals_the_first():
    assert "on broker 2 while" in explain_interval(
        interval(broker(1, 10, throttled_ms=5), broker(2, 20, throttled_ms=5))
    )
    assert "on broker 1 while" in explain_interval(
        interval(broker(1, 10, throttled_ms=6), broker(2, 20, throttled_ms=5))
    )
    assert "on broker 1 while" in explain_interval(interval(broker(2, 10), broker(1, 10)))


@pytest.mark.parametrize("interval_of", [interval, requests, loop_time])
def test_seconds_have_one_decimal(interval_of):
    assert " waited 1.0 s" in explain_interval(interval_of(throttled_ms=1_049))
    assert " waited 1.1 s" in explain_interval(interval_of(throttled_ms=1_051))
    assert " waited 1000.0 s" in explain_interval(interval_of(throttled_ms=1_000_000))


@pytest.mark.parametrize("interval_of", [interval, requests, loop_time])
def test_a_wait_that_rounds_to_no_tenth_of_a_second_is_told_in_milliseconds(interval_of):
    assert " waited 0.1 s" in explain_interval(interval_of(throttled_ms=51))
    assert " waited 50 ms" in explain_interval(interval_of(throttled_ms=50))
    assert " waited 2 ms" in explain_interval(interval_of(throttled_ms=2))


def test_a_broker_that_had_no_bound_could_carry_anything():
    assert "could carry any rate, which grows" in explain_interval(interval(broker(1, 1, allocation=None)))
    assert explain_interval(requests(broker(1, 1, allocation=None))).endswith("could take any number of requests.")
    assert explain_interval(loop_time(broker(1, 1, allocation=None))).endswith("could give any time.")
