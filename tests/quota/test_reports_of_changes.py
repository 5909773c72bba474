"""A connection's reports and grants name what has changed; both sides know as much as if everything were said each time."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quota.agent.agent import Agent, InstanceFacts
from quota.contracts.grant import Grants
from quota.contracts.instance import ContractError
from quota.contracts.report import FlowReport
from quota.core.ledger import Ledger
from quota.steps import run_through
from tests.quota.samples import INSTANCE, spec

INSTANCES = (INSTANCE, "ins-bbbbbbbb", "ins-cccccccc")
BROKERS = (1, 2)
LEASE_MS = 4000
LIMIT = 1000


class World:
    """Brokers and a master that talk to each other over the wire's documents."""

    def __init__(self, *, whole):
        self.whole, self.now = whole, 0.0
        self.ledger = Ledger(epoch=1, now=-100.0, period_ms=1000, lease_ms=LEASE_MS)
        self.agents = {broker: Agent(broker=broker, boot="b", now=0.0) for broker in BROKERS}
        self.facts = {broker: {} for broker in BROKERS}
        self.said = []  # rows of each report and of its answer

    def specs(self, limits):
        self.ledger.set_specs(
            {name: spec(name, produce=LIMIT, storage=limit) for name, limit in limits.items()}, self.now
        )

    def lead(self, broker, name, leaders, stored):
        self.agents[broker].configure(name, LIMIT, LIMIT, self.now)
        self.facts[broker][name] = InstanceFacts(leaders, 2 * leaders, stored, 1)

    def remove(self, broker, name):
        self.agents[broker].remove(name)
        self.facts[broker].pop(name, None)

    def count(self, broker, name, *counts):
        if name in self.facts[broker]:
            self.facts[broker][name] = self.facts[broker][name]._replace(transactions=counts)

    def flow(self, broker, name, size):
        bucket = self.agents[broker].bucket(name, "produce")
        if bucket and not bucket.blocked:
            bucket.charge(size, self.now)

    def exchange(self, broker):
        agent = self.agents[broker]
        if self.whole:
            agent.begin_anew()
        report = run_through(agent.report_steps(self.facts[broker].items(), lambda: self.now))
        assert self.ledger.report(FlowReport.from_document(json.loads(report.to_json())), self.now)
        grants = self.ledger.grants(broker, self.now)
        assert agent.apply(Grants.from_document(json.loads(grants.to_json())), self.now)
        self.said.append((set(report.instances), set(grants.instances)))

    def wait(self, seconds):
        for _ in range(round(seconds * 10)):
            self.now = round(self.now + 0.1, 1)
            for agent in self.agents.values():
                agent.tick(self.now)
        self.ledger.tick(self.now)

    def state(self):
        """All that a gate or a page would ask."""
        held = {
            (broker, name): (
                *(agent.rate(name, "produce"), agent.rate(name, "consume"), agent.blocked(name)),
                agent.transactions_elsewhere(name),
            )
            for broker, agent in self.agents.items()
            for name in INSTANCES
        }
        shown = {
            name: (
                *(self.ledger.allocation(name, "produce", self.now), self.ledger.storage_used_bytes(name)),
                self.ledger.transactions(name, self.now),
            )
            for name in self.ledger.specs
        }
        return held, shown, sorted(self.ledger.totals())


names, brokers = st.sampled_from(INSTANCES), st.sampled_from(BROKERS)
steps = st.one_of(
    st.tuples(st.just("exchange"), brokers),
    st.tuples(st.just("exchange"), brokers),
    st.tuples(st.just("wait"), st.sampled_from([0.1, 1.0, 1.0, 3.0, 5.0])),
    st.tuples(st.just("lead"), brokers, names, st.integers(0, 3), st.sampled_from([0, 90, 100])),
    st.tuples(st.just("count"), brokers, names, st.integers(0, 2), st.integers(0, 2)),
    st.tuples(st.just("remove"), brokers, names),
    st.tuples(st.just("flow"), brokers, names, st.sampled_from([50, 400, 3000])),
    st.tuples(st.just("specs"), st.dictionaries(names, st.sampled_from([None, 100]))),
    st.tuples(st.just("anew"), brokers),
)
BEGINNING = [
    ("specs", dict.fromkeys(INSTANCES, 100)),
    *(("lead", broker, name, 1, 0) for broker in BROKERS for name in INSTANCES),
    *(("exchange", broker) for broker in BROKERS),
]


@settings(max_examples=300, deadline=None)
@given(st.lists(steps, max_size=40))
def test_brokers_and_master_know_what_they_would_know_if_everything_were_said(steps):
    worlds = [World(whole=True), World(whole=False)]
    for name, *what in [*BEGINNING, *steps]:
        if name == "anew":  # a new connection
            worlds[1].agents[what[0]].begin_anew()
            continue
        for world in worlds:
            getattr(world, name)(*what)
        assert worlds[0].state() == worlds[1].state(), (name, what)


@pytest.fixture
def world():
    """All at rest, and everything said."""
    world = World(whole=False)
    for name, *what in BEGINNING:
        getattr(world, name)(*what)
    for _ in range(2):
        world.wait(1.0)
        for broker in BROKERS:
            world.exchange(broker)
    return world


def test_of_instances_at_rest_nothing_is_said(world):
    for _ in range(20):
        world.wait(1.0)
        for broker in BROKERS:
            world.exchange(broker)
            assert world.said[-1] == (set(), set())
    assert world.agents[1].rate(INSTANCE, "produce") == LIMIT // 2, "and the lease is renewed all the same"
    world.wait(LEASE_MS / 1000)
    assert world.ledger.held(INSTANCE, "produce") == {1: LIMIT // 2, 2: LIMIT // 2}


def test_what_flows_is_said_and_what_became_of_the_others_shares_too(world):
    world.flow(1, INSTANCE, 900)
    world.wait(1.0)
    world.exchange(1)
    assert world.said[-1] == ({INSTANCE}, {INSTANCE})
    world.exchange(2)
    assert world.said[-1] == (set(), {INSTANCE})


def test_an_instance_that_comes_back_at_once_gets_its_grant_again(world):
    world.flow(2, INSTANCE, 900)
    world.wait(1.0)
    world.exchange(2)
    world.exchange(1)
    rate = world.agents[1].rate(INSTANCE, "produce")
    world.remove(1, INSTANCE)
    world.lead(1, INSTANCE, 1, 0)
    assert world.agents[1].rate(INSTANCE, "produce") != rate
    world.exchange(1)
    assert world.agents[1].rate(INSTANCE, "produce") == rate


def test_transactions_are_said_when_their_number_changes_and_not_again(world):
    def said(broker, counts):
        world.count(broker, INSTANCE, *counts)
        world.wait(1.0)
        report = run_through(world.agents[broker].report_steps(world.facts[broker].items(), lambda: world.now))
        world.ledger.report(report, world.now)
        grants = world.ledger.grants(broker, world.now)
        world.agents[broker].apply(grants, world.now)
        return report.transactions, grants.transactions

    assert said(1, (3, 40)) == ({INSTANCE: (3, 40)}, {})
    assert said(1, (3, 40)) == ({}, {})
    assert said(2, (0, 0)) == ({}, {INSTANCE: (3, 40)})
    assert said(2, (1, 2)) == ({INSTANCE: (1, 2)}, {})
    assert said(1, (0, 0)) == ({INSTANCE: (0, 0)}, {INSTANCE: (1, 2)})
    assert said(2, (1, 2)) == ({}, {INSTANCE: (0, 0)})
    assert world.agents[2].transactions_elsewhere(INSTANCE) == (0, 0)
    assert world.agents[1].transactions_elsewhere(INSTANCE) == (1, 2)


def test_when_the_lease_has_run_out_everything_is_said_anew(world):
    world.wait(LEASE_MS / 1000)
    world.exchange(1)
    assert world.said[-1] == (set(INSTANCES), set(INSTANCES))


def test_a_report_that_continues_an_unknown_one_is_refused(world):
    continued = FlowReport(1, "b", 9, 1000, {}, partial=True)
    with pytest.raises(ContractError, match="9 continues one that is not known here"):
        world.ledger.report(continued, world.now)
    with pytest.raises(ContractError, match="not known"):
        Ledger(epoch=2, now=0.0, period_ms=1000, lease_ms=LEASE_MS).report(continued, world.now)
