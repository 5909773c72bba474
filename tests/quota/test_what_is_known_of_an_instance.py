"""Small facts that are asked of a bucket, a rule book and the ledger."""

from dataclasses import replace

import pytest

from quota.contracts.report import FlowReport, InstanceReport, LoopLoad
from quota.contracts.rules import RuleKind, ThrottleRule
from quota.core.bucket import TokenBucket
from quota.core.ledger import Ledger, _broker_flow
from quota.core.matching import RuleBook
from quota.core.spread import _per_second
from tests.quota.samples import INSTANCE, flow, report, spec

OTHER = "ins-aaaabbbb"


@pytest.mark.parametrize(("window_s", "size"), [(None, 1_000), (0.5, 500), (3.0, 3_000)])
def test_a_fetch_returns_at_most_what_the_rate_gives_in_its_window(window_s, size):
    bucket = TokenBucket(1_000, 0.0)
    assert (bucket.fetch_bytes() if window_s is None else bucket.fetch_bytes(window_s)) == size


def test_a_rule_book_knows_topics_by_topic_rules_only():
    topics = ThrottleRule("t", RuleKind.TOPIC, 1, None, topics=("orders", "events"))
    clients = ThrottleRule("c", RuleKind.CLIENT, 1, None, users=("ann",))
    book = RuleBook([topics, clients])
    assert book.topics == {"orders": topics, "events": topics}
    assert book.has_clients
    assert not RuleBook([topics]).has_clients


def test_connections_are_those_of_one_instance_on_all_its_brokers():
    ledger = Ledger(epoch=6, now=0.0, period_ms=1000, lease_ms=10_000)
    ledger.set_specs({INSTANCE: spec(), OTHER: spec(OTHER)}, 0.0)
    ledger.report(report(1, connections=3), 1.0)
    rows = {INSTANCE: 4, OTHER: 50}
    entries = {name: InstanceReport(flow(), flow(), 0, number) for name, number in rows.items()}
    ledger.report(FlowReport(2, "a", 1, 1000, entries), 1.0)
    assert (ledger.connections(INSTANCE), ledger.connections(OTHER)) == (7, 50)


def test_loads_are_of_the_brokers_that_report_and_say_so():
    ledger = Ledger(epoch=6, now=0.0, period_ms=1000, lease_ms=10_000)
    ledger.set_specs({INSTANCE: spec()}, 0.0)
    load = LoopLoad(4_000, INSTANCE, 300, {INSTANCE: 1}, {}, {}, {}, {}, {})
    ledger.report(replace(report(1), loop=load), 1.0)
    ledger.report(report(2), 1.0)
    assert ledger.loads(1.5) == {1: load}
    assert ledger.loads(1_000.0) == {}


def test_who_waits_uncharged_at_a_rate_of_0_is_time_that_was_throttled():
    heard = []
    bucket = TokenBucket(0, 0.0, lambda: heard.append("throttled"))
    bucket.wait(5.0)
    assert heard == ["throttled"]
    assert bucket.throttled_s(6.0) == 1.0


def test_what_flows_on_brokers_that_lead_nothing_any_more_is_added_to_that_of_leaders():
    ledger = Ledger(epoch=6, now=0.0, period_ms=1000, lease_ms=10_000)
    ledger.set_specs({INSTANCE: spec()}, 0.0)
    for broker, leaders in ((1, 2), (2, 0), (3, 0)):
        row = flow(10 * broker, leaders=leaders), flow(100 * broker, leaders=leaders)
        ledger.report(report(broker, *row), 1.0)
    assert list(ledger.totals()) == [(INSTANCE, 60, 600)]


@pytest.mark.parametrize(("produce", "consume"), [(10, 0), (0, 10)])
def test_a_flow_in_either_direction_is_a_flow(produce, consume):
    ledger = Ledger(epoch=6, now=0.0, period_ms=1000, lease_ms=10_000)
    ledger.set_specs({INSTANCE: spec()}, 0.0)
    ledger.report(report(1, flow(produce), flow(consume)), 1.0)
    assert list(ledger.totals()) == [(INSTANCE, produce, consume)]
    ledger.report(report(1, flow(produce), flow(consume), sequence=2, period_ms=500), 1.5)
    assert list(ledger.totals()) == [(INSTANCE, 2 * produce, 2 * consume)], "another period is another flow"


def test_storage_of_an_instance_without_a_limit_is_not_full():
    assert Ledger(epoch=6, now=0.0, period_ms=1000, lease_ms=10_000).storage_full(INSTANCE) is False


@pytest.mark.parametrize("facts", [{"throttled_ms": 1}, {"queued": 1}, {"throttled_ms": 1, "queued": 1}])
def test_who_waited_or_waits_still_has_a_demand_that_its_flow_does_not_show(facts):
    entry = report(1, flow(10, **facts)).instances[INSTANCE]
    assert _broker_flow(1, (entry, 1000), "produce", silent=False).throttled is True
    assert _broker_flow(1, (entry, 1000), "consume", silent=False).throttled is False


@pytest.mark.parametrize(("rate", "moment"), [(None, float("-inf")), (0, float("inf")), (1_000, float("-inf"))])
def test_a_new_bucket_owes_nothing_unless_it_is_blocked(rate, moment):
    assert TokenBucket(rate, 5.0).paid_at == moment


def test_a_debt_is_paid_at_a_moment_that_is_known():
    bucket = TokenBucket(1_000, 0.0)
    bucket.charge(600, 0.0)  # a tenth of a second was saved up
    assert bucket.paid_at == 0.5


def test_a_report_without_a_period_is_of_a_millisecond():
    assert _per_second(flow(7), 0) == 7_000
    assert _per_second(flow(7), 500) == 14
