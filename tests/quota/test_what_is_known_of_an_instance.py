"""Small facts that are asked of a bucket, a rule book and the ledger."""

from dataclasses import replace

import pytest

from quota.contracts.report import FlowReport, InstanceReport, LoopLoad
from quota.contracts.rules import RuleKind, ThrottleRule
from quota.core.bucket import TokenBucket
from quota.core.ledger import Ledger
from quota.core.matching import RuleBook
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
    load = LoopLoad(4_000, INSTANCE, 300, {INSTANCE: 1})
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
