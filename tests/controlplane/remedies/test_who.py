"""Who moved most on the broker where somebody waited, from what brokers say, and in words."""

from __future__ import annotations

import pytest

from controlplane.kafka.connection_bytes import NOTHING, Rest, TalkerRow
from controlplane.remedies.merging import whys
from controlplane.remedies.who import MOST, who_of, witness_of
from quota.contracts.instance import MIB
from quota.contracts.rules import RuleKind, ThrottleRule
from tests.controlplane.connections.conftest import connection
from tests.controlplane.quotas.conftest import interval

MINUTE_MS = 60_000


def talker(client_id="shop", topic="orders", *, produces=0, consumes=0, address="10.0.0.7"):
    return TalkerRow(client_id, address, topic, MINUTE_MS, 60 * produces, 60 * consumes)


def witness(**said):
    """Of broker 2, where the interval of these tests waited."""
    return witness_of({2: NOTHING._replace(**said)})


def why(**members):
    (found,) = whys([interval(**members)])
    return found


def rule(kind, **members):
    return ThrottleRule("rule-1", kind, MIB, MIB, **members)


def test_the_busiest_producer_of_that_broker_is_named_with_its_topic_and_its_part():
    seen = witness(
        talkers=(
            talker("small", produces=MIB // 2, consumes=90 * MIB),
            talker("orders-loader", address="10.0.0.5", produces=9 * MIB),
        ),
        other_talkers=Rest(3, MIB // 2, 0, 0),
    )
    who = who_of(why(limit=10 * MIB), seen, None)
    assert (who.client_id, who.address, who.topic, who.broker) == ("orders-loader", "10.0.0.5", "orders", 2)
    assert who.sentence == (
        "Client orders-loader (10.0.0.5) wrote 9.00 of 10.00 MiB/s that were written on broker 2, into orders."
    )


def test_of_a_consumer_it_is_what_it_reads():
    seen = witness(talkers=(talker("writes", produces=90 * MIB), talker("reads", consumes=2 * MIB)))
    who = who_of(why(direction="consume"), seen, None)
    assert who.sentence == "Client reads (10.0.0.7) read 2.00 of 2.00 MiB/s that were read on broker 2, from orders."


def test_who_says_no_client_id_is_known_by_the_address():
    who = who_of(why(), witness(talkers=(talker("", produces=MIB),)), None)
    assert who.sentence.startswith("A client without an id (10.0.0.7) wrote")


def test_what_flows_on_another_broker_is_nobodys_fault_here():
    seen = witness_of({1: NOTHING._replace(talkers=(talker(produces=MIB),))})
    assert who_of(why(), seen, None) is None


def test_requests_are_counted_by_client_over_its_connections():
    seen = witness(
        connections=(
            connection("many", requests=100),
            connection("many", requests=100),
            connection("one", requests=150),
        ),
        other_connections=Rest(4, 0, 0, 50),
    )
    for unit in ("requests", "loop-time"):
        who = who_of(why(rule=unit, limit=500_000), seen, None)
        assert who.sentence == "Client many (10.0.0.7) sent 200 of 400 requests/s that came to broker 2.", unit


@pytest.mark.parametrize(
    ("of", "named"),
    [
        (rule(RuleKind.TOPIC, topics=("payments",)), "pays"),
        (rule(RuleKind.CLIENT, clients=("modest",)), "modest"),
        (rule(RuleKind.CLIENT, users=("ann",)), None),
        (rule(RuleKind.GROUP, groups=("readers",)), None),
    ],
    ids=["topic", "client", "user", "group"],
)
def test_where_a_rule_made_wait_only_those_are_named_whom_it_is_about(of, named):
    seen = witness(
        talkers=(
            talker("shop", produces=9 * MIB),
            talker("pays", "payments", produces=2 * MIB),
            talker("modest", produces=MIB),
        )
    )
    who = who_of(why(rule="rule-1"), seen, [of])
    assert (who and who.client_id) == named
    assert who_of(why(rule="rule-1"), seen, None) is None, "the rule is gone, or nobody knows it"


def test_of_a_rule_for_each_client_it_is_the_client_whose_row_waited():
    seen = witness(talkers=(talker("shop", produces=9 * MIB), talker("app/1", produces=MIB)))
    each = rule(RuleKind.CLIENT, clients=(None,))
    assert who_of(why(rule="rule-1/app%2F1"), seen, [each]).client_id == "app/1"


def test_full_storage_is_nobodys_traffic():
    assert who_of(why(blocked="storage"), witness(talkers=(talker(produces=MIB),)), None) is None


def test_only_the_busiest_are_kept_and_the_others_stay_in_the_sum():
    seen = witness(talkers=tuple(talker(f"c{number}", produces=1000 + number) for number in range(50)))
    kept = seen["brokers"]["2"]["produce"]
    assert [row[0] for row in kept["most"]] == [f"c{number}" for number in range(49, 49 - MOST, -1)]
    assert kept["total"] == sum(range(1000, 1050))
