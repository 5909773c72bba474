"""Small facts that are asked of a bucket, a rule book and the ledger."""

import pytest

from quota.contracts.report import FlowReport, InstanceReport
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
