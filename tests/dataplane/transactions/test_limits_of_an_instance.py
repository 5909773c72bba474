"""Limits of transactions from an instance's specification, at a whole broker: obeyed, and what is used is reported."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import FindCoordinatorRequest
from dataplane.protocol.messages.produce import InitProducerIdRequest
from dataplane.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
)
from dataplane.transactions.limits import SETTLES_S
from quota.contracts.grant import Grants
from tests.simulation.cluster import INSTANCE, SETTINGS, SimulatedCluster

E = ErrorCode
PASSES = (E.COORDINATOR_LOAD_IN_PROGRESS, E.CONCURRENT_TRANSACTIONS, E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE)


class World:
    """A tenant at the one broker."""

    def __init__(self):
        settings = replace(SETTINGS, transaction_state_log_replication_factor=1)
        self.cluster = SimulatedCluster(seed=21, brokers=1, settings=settings)
        self.cluster.until(self.cluster.up)
        self.broker = self.cluster.brokers[1]
        self.cluster.create_topic("orders", 2, on=(1,))
        self.until(lambda: self.ask(FindCoordinatorRequest("one", 1), 3).error_code)
        self.cluster.network.run_for(SETTLES_S + 1)

    def ask(self, request, version):
        """Again, where the broker was away."""
        while True:
            answer = self.cluster.client.call(1, request, version)
            self.cluster.until(lambda answered=answer: answered.done, 60)
            if answer.error is None and answer.result() is not None:
                return answer.result()
            self.cluster.network.run_for(0.5)

    def until(self, code):
        """The first code that does not pass."""
        while (found := code()) in PASSES:
            self.cluster.network.run_for(0.1)
        return found

    def limit(self, **limits):
        spec = self.broker.registry.get(INSTANCE).spec
        self.broker.registry.apply(replace(spec, generation=spec.generation + 1, limits=replace(spec.limits, **limits)))

    def init(self, name, timeout_ms=1_000):
        answers = []

        def code():
            answers.append(self.ask(InitProducerIdRequest(name, timeout_ms), 4))
            return answers[-1].error_code

        error = self.until(code)
        return error, (answers[-1].producer_id, answers[-1].producer_epoch)

    def add(self, name, who):
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=who[0],
            v3_and_below_producer_epoch=who[1],
            v3_and_below_topics=(AddPartitionsToTxnTopic("orders", (0,)),),
        )
        return self.until(
            lambda: self.ask(request, 3).results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        )

    def end(self, name, who):
        return self.until(lambda: self.ask(EndTxnRequest(name, *who, committed=True), 3).error_code)

    def reported(self):
        """Open transactions, and ids."""
        return dict(self.broker.facts())[INSTANCE].transactions


@pytest.fixture
def world():
    return World()


def test_they_are_obeyed_from_the_specification_on_and_what_is_used_is_reported(world):
    assert world.reported() == (0, 0)
    world.limit(open_transactions=1, transactional_ids=2, transaction_timeout_ms=1_000)
    assert world.init("one", 1_001)[0] == E.INVALID_TRANSACTION_TIMEOUT
    one, two = (world.init(name) for name in ("one", "two"))
    assert (one[0], two[0], world.init("three")[0]) == (E.NONE, E.NONE, E.POLICY_VIOLATION)
    assert world.reported() == (0, 2)
    world.limit(transaction_timeout_ms=None)
    one, two = (world.init(name, 60_000) for name in ("one", "two"))
    assert world.add("one", one[1]) == E.NONE
    assert world.add("two", two[1]) == E.POLICY_VIOLATION
    assert world.reported() == (1, 2)
    assert world.end("one", one[1]) == E.NONE
    world.cluster.network.run_for(1)
    assert world.reported() == (0, 2)
    assert world.add("two", two[1]) == E.NONE


def test_what_the_master_says_of_other_brokers_counts(world):
    world.limit(open_transactions=3, transactional_ids=4)
    _, who = world.init("one", 60_000)
    now = world.broker.doors.clock.monotonic()
    assert world.broker.agent.apply(Grants(1, 1, 600_000, {}, transactions={INSTANCE: (3, 3)}), now)
    assert world.init("two", 60_000)[0] == E.POLICY_VIOLATION
    assert world.add("one", who) == E.POLICY_VIOLATION
    assert world.broker.agent.apply(Grants(1, 2, 600_000, {}), now)
    assert world.init("two", 60_000)[0] == E.NONE
    assert world.add("one", who) == E.NONE


def test_a_broker_that_starts_again_counts_what_it_finds(world):
    _, who = world.init("one", 60_000)
    assert world.add("one", who) == E.NONE
    world.cluster.kill(1)
    world.cluster.network.run_for(1)
    world.cluster.start(1)
    world.cluster.until(world.cluster.up)
    world.broker = world.cluster.brokers[1]
    world.limit(transactional_ids=1, open_transactions=1)
    world.until(lambda: world.ask(FindCoordinatorRequest("one", 1), 3).error_code)
    assert world.init("two", 60_000)[0] == E.POLICY_VIOLATION
    assert world.reported() == (1, 1)
