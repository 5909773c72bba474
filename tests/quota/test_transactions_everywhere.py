"""Transactions of an instance are counted over all brokers, and each broker is told what the others have."""

from quota.agent.agent import Agent, InstanceFacts
from quota.contracts.grant import Grants
from quota.contracts.report import FlowReport
from quota.core.ledger import Ledger
from quota.core.transactions import TransactionCounts
from tests.quota.samples import INSTANCE, report, spec

OTHER = "ins-bbbbbbbb"


def test_a_broker_is_told_what_the_others_have_and_of_those_that_are_silent_nothing():
    counts = TransactionCounts()
    assert counts.elsewhere(INSTANCE, 1, ()) == counts.total(INSTANCE, ()) == (0, 0)
    assert counts.put(INSTANCE, 1, (3, 40))
    assert counts.put(INSTANCE, 2, (1, 2))
    assert counts.put(OTHER, 1, (7, 7))
    assert not counts.put(INSTANCE, 2, (1, 2))
    assert counts.total(INSTANCE, ()) == (4, 42)
    assert counts.elsewhere(INSTANCE, 1, ()) == (1, 2)
    assert counts.elsewhere(INSTANCE, 3, ()) == (4, 42)
    assert counts.elsewhere(INSTANCE, 3, (1,)) == counts.total(INSTANCE, (1,)) == (1, 2)


def test_of_an_instance_that_has_none_nothing_is_kept():
    counts = TransactionCounts()
    assert not counts.put(INSTANCE, 1, (0, 0))
    counts.put(INSTANCE, 1, (0, 1))
    assert counts.counts == {INSTANCE: {1: (0, 1)}}
    assert counts.put(INSTANCE, 1, (0, 0))
    assert counts.counts == {}


def ledger():
    made = Ledger(epoch=1, now=0.0, period_ms=1000, lease_ms=10_000)
    made.set_specs({INSTANCE: spec()}, 0.0)
    return made


def said(broker, counts, *, sequence=1, boot="a"):
    found = report(broker, sequence=sequence, boot=boot)
    return FlowReport(broker, boot, sequence, 1000, found.instances, transactions={INSTANCE: counts} if counts else {})


def test_a_broker_that_falls_silent_counts_nothing_until_it_is_heard_again():
    known = ledger()
    known.report(said(1, (3, 40)), 20.0)
    known.report(said(2, (1, 2)), 20.0)
    assert known.grants(2, 20.0).transactions == {INSTANCE: (3, 40)}
    known.report(said(2, (1, 2), sequence=2), 23.0)
    assert known.grants(2, 23.0).transactions == {}
    assert known.transactions(INSTANCE, 23.0) == (1, 2)
    known.report(said(1, (3, 40), sequence=2), 23.5)
    assert known.transactions(INSTANCE, 23.5) == (4, 42)


def test_a_broker_that_begins_anew_has_what_it_says_and_no_more():
    known = ledger()
    known.report(said(1, (3, 40)), 20.0)
    known.report(said(1, None, boot="b"), 20.5)
    assert known.transactions(INSTANCE, 20.5) == (0, 0)
    assert known.with_transactions() == []


def test_a_broker_that_is_gone_from_zookeeper_has_none():
    known = ledger()
    known.report(said(1, (3, 40)), 20.0)
    known.set_registered(())
    known.tick(30.0)
    assert known.with_transactions() == []


def test_without_a_master_a_broker_knows_of_no_others():
    agent = Agent(broker=1, boot="b", now=0.0)
    agent.configure(INSTANCE, 1, 1, 0.0)
    agent.apply(Grants(1, 1, 10_000, {}, transactions={INSTANCE: (3, 40)}), 0.0)
    assert agent.transactions_elsewhere(INSTANCE) == (3, 40)
    agent.tick(9.9)
    assert agent.transactions_elsewhere(INSTANCE) == (3, 40)
    agent.tick(10.0)
    assert agent.transactions_elsewhere(INSTANCE) == (0, 0)


def test_an_answer_that_names_everything_says_of_the_others_that_they_have_none():
    agent = Agent(broker=1, boot="b", now=0.0)
    agent.apply(Grants(1, 1, 10_000, {}, transactions={INSTANCE: (3, 40), OTHER: (1, 1)}), 0.0)
    agent.apply(Grants(1, 2, 10_000, {}, partial=True, transactions={OTHER: (0, 0)}), 0.0)
    assert [agent.transactions_elsewhere(name) for name in (INSTANCE, OTHER)] == [(3, 40), (0, 0)]
    agent.apply(Grants(1, 3, 10_000, {}), 0.0)
    assert agent.transactions_elsewhere(INSTANCE) == (0, 0)


def test_an_instance_that_is_removed_takes_its_numbers_along():
    agent = Agent(broker=1, boot="b", now=0.0)
    agent.configure(INSTANCE, 1, 1, 0.0)
    facts = {INSTANCE: InstanceFacts(1, 1, 0, 0, transactions=(3, 40))}
    assert agent.report(facts, 1.0).transactions == {INSTANCE: (3, 40)}
    agent.apply(Grants(1, 1, 10_000, {}, transactions={INSTANCE: (9, 9)}), 1.0)
    agent.remove(INSTANCE)
    assert agent.transactions_elsewhere(INSTANCE) == (0, 0)
    assert agent.report(facts, 2.0).transactions == {}
