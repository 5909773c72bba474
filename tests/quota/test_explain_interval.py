"""The sentence of a throttled interval, for each kind of cause."""

from dataclasses import replace

import pytest

from quota.contracts.instance import MIB
from quota.contracts.rows import Unit
from quota.contracts.throttled import BrokerInputs, Moment, ThrottledInterval
from quota.core.explain import explain_interval, narrow_broker
from quota.core.model import Branch


def interval(*brokers, limit=5 * MIB, rule=None, throttled_ms=12_400, over=(0.0, 0.0, 0.0), direction="produce"):
    return ThrottledInterval(
        instance="ins-k3v9x2qa",
        rule=rule,
        direction=direction,
        epoch=3,
        strategy="ckafka",
        started_at_ms=0,
        ended_at_ms=20_000,
        limit=limit,
        throttled_ms=throttled_ms,
        under_limit_ms=0,
        over_percent=over,
        waits_ms={},
        moment=Moment(0, brokers),
    )


def broker(number, flow, *, leaders=2, allocation=2 * MIB, branch="headroom", throttled_ms=0):
    return BrokerInputs(number, leaders, MIB, flow, allocation, allocation, branch, throttled_ms, 0)


def test_an_instance_that_used_what_it_has_is_told_so():
    brokers = broker(1, 3 * MIB, throttled_ms=900), broker(2, 2 * MIB)
    assert explain_interval(interval(*brokers)) == (
        "Producing waited 12.4 s: the instance used 100 % of the 5.00 MiB/s that it has."
    )


def test_below_the_limit_it_names_the_broker_its_traffic_its_leaders_and_what_it_could_carry():
    brokers = broker(1, 1 * MIB), broker(2, 2 * MIB, leaders=4, throttled_ms=900)
    assert explain_interval(interval(*brokers, direction="consume")) == (
        "Consuming waited 12.4 s on broker 2 while the instance used only 60 % of its 5.00 MiB/s: 66 % of its traffic "
        "went to that broker, which leads 4 of 6 of its partitions and could carry 2.00 MiB/s, which grows from second "
        "to second while the broker is used more than others."
    )


@pytest.mark.parametrize("branch", [branch for branch in Branch if branch is not Branch.UNLIMITED])
def test_every_branch_that_can_make_somebody_wait_has_its_words(branch):
    said = explain_interval(interval(broker(1, MIB, branch=branch.value, throttled_ms=1)))
    assert said.startswith("Producing waited 12.4 s on broker 1")
    assert said.endswith(".")
    assert said.count(".") == 4  # one sentence and three decimals


def test_requests_are_told_as_such_and_without_leaders():
    both = broker(1, 100_000, allocation=300_000), broker(2, 200_000, allocation=200_500, throttled_ms=900)
    assert explain_interval(interval(*both, rule=Unit.REQUESTS, limit=500_000)) == (
        "Requests waited 12.4 s on broker 2 while the instance used only 60 % of its 500 requests/s: 66 % of them went to "
        "that broker, which could take 200.5 requests/s."
    )
    assert explain_interval(interval(*both, rule=Unit.REQUESTS, limit=300_000)) == (
        "Requests waited 12.4 s: the instance used 100 % of the 300 requests/s that it has."
    )
    assert explain_interval(interval(*both, rule=Unit.REQUESTS, limit=0)) == "Requests were blocked: the limit is 0."


def test_broker_time_is_told_in_milliseconds_a_second_and_what_would_need_less_of_it():
    both = broker(1, 100_000, allocation=300_000), broker(2, 200_000, allocation=200_400, throttled_ms=900)
    assert explain_interval(interval(*both, rule=Unit.LOOP_TIME, limit=300_000)) == (
        "Requests waited 12.4 s: the instance used its broker time, 300 of 300 ms/s. Fewer and larger requests need less of "
        "it."
    )
    assert explain_interval(interval(*both, rule=Unit.LOOP_TIME, limit=500_000)) == (
        "Requests waited 12.4 s on broker 2 while the instance used only 300 of 500 ms/s of broker time: 66 % of it was "
        "used on that broker, which could give 200 ms/s."
    )
    assert explain_interval(interval(*both, rule=Unit.LOOP_TIME, limit=0)) == (
        "Requests were blocked: the limit of broker time is 0."
    )


def test_a_throttle_rule_is_named_and_of_one_for_each_client_which():
    brokers = (broker(1, 5 * MIB, throttled_ms=900),)
    assert explain_interval(interval(*brokers, rule="rule-8zk2m4x0")) == (
        "Producing waited 12.4 s: what throttle rule rule-8zk2m4x0 limits used 100 % of the 5.00 MiB/s that it has."
    )
    assert "rule-8zk2m4x0 for alice and app/1 limits" in explain_interval(
        interval(*brokers, rule="rule-8zk2m4x0/alice/app%2F1")
    )


def test_a_limit_of_0_and_more_than_was_bought_have_sentences_of_their_own():
    assert explain_interval(interval(limit=0)) == "Producing was blocked: the limit is 0."
    assert explain_interval(interval(throttled_ms=0, over=(17.0, 3.1, 0.0))) == (
        "Up to 17 % more than the limit of 5.00 MiB/s flowed; nobody had to wait."
    )


def test_the_narrow_broker_is_where_most_was_waited_while_the_limit_was_not_used_up():
    both = broker(1, 2 * MIB, throttled_ms=10), broker(2, 1 * MIB, throttled_ms=900)
    assert narrow_broker(interval(*both)) == 2
    almost = broker(1, 94 * MIB // 100, throttled_ms=10)
    assert narrow_broker(interval(almost, limit=MIB)) == 1
    assert narrow_broker(interval(broker(1, 95 * MIB // 100 + 1, throttled_ms=10), limit=MIB)) is None


@pytest.mark.parametrize("members", [{"limit": 3 * MIB}, {"limit": 0}, {"throttled_ms": 0}])
def test_where_no_part_was_too_small_there_is_none(members):
    assert narrow_broker(interval(broker(1, 3 * MIB, throttled_ms=900), **members)) is None
    assert narrow_broker(interval()) is None
    full = replace(interval(broker(1, MIB, throttled_ms=900)), blocked="storage")
    assert narrow_broker(full) is None
