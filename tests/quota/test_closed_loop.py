"""Agents and ledger together on a virtual clock: what an instance gets in the end, wherever its traffic goes."""

from dataclasses import replace
from random import Random

import pytest

from quota.agent.agent import Agent, InstanceFacts
from quota.contracts.instance import MIB
from quota.contracts.rows import Row
from quota.contracts.rules import RuleKind, RuleSet, ThrottleRule
from quota.core.ledger import Ledger
from quota.master.service import GATHER_S
from tests.quota.samples import INSTANCE, spec

LIMIT = 5 * MIB
OFFERED = 20_000_000
STEP_S = 0.005
BROKERS = 3


class ClosedLoop:
    """Three brokers that tick at moments of their own, one master, producers that wait as they are told."""

    def __init__(self, weights, request_bytes, seed, row=INSTANCE, wanted=None):
        self.random, self.weights, self.size = Random(seed), weights, request_bytes
        self.time, self.admitted, self.waiting, self.flush_at = 0.0, [], {}, None
        self.ledger = Ledger(epoch=1, now=-10.0, period_ms=1000, lease_ms=10_000)
        self.row = row
        self.ledger.set_specs({INSTANCE: wanted or spec(produce=LIMIT, consume=LIMIT, storage=None)}, 0.0)
        self.agents = [Agent(broker=each, boot="b", now=-self.random.random()) for each in range(BROKERS)]
        for agent in self.agents:
            agent.configure(row, LIMIT, LIMIT, 0.0)
        self.next_tick = [self.random.random() / 10 for _ in self.agents]
        self.free_at, self.backlog = [0.0] * BROKERS, [0.0] * BROKERS

    def run(self, seconds, *, load):
        end = self.time + seconds
        while self.time < end:
            for broker in range(BROKERS):
                if load:
                    self._produce(broker)
                self._tick(broker)
            self._master()
            self.time += STEP_S

    def _produce(self, broker):
        arrived = OFFERED * self.weights[broker] * STEP_S * self.random.uniform(0.5, 1.5)
        self.backlog[broker] = min(self.backlog[broker] + arrived, 20 * self.size)
        bucket = self.agents[broker].bucket(self.row, "produce")
        while self.time >= self.free_at[broker] and self.backlog[broker] >= self.size:
            self.backlog[broker] -= self.size
            self.admitted.append((self.time, self.size))
            self.free_at[broker] = self.time + bucket.charge(self.size, self.time)

    def _tick(self, broker):
        if self.time < self.next_tick[broker]:
            return
        self.next_tick[broker] += 0.1 + self.random.random() / 500
        self.agents[broker].tick(self.time)
        if self.agents[broker].report_due(self.time):
            facts = {self.row: InstanceFacts(2, 2 * BROKERS, 0, 0)}
            self.ledger.report(self.agents[broker].report(facts, self.time), self.time)
            self.waiting[broker] = True
            self.flush_at = self.flush_at or self.time + GATHER_S

    def _master(self):
        if self.flush_at and self.time >= self.flush_at:
            for broker in self.waiting:
                self.agents[broker].apply(self.ledger.grants(broker, self.time), self.time)
            self.waiting, self.flush_at = {}, None

    def rate(self, begin, end):
        """Of the limit, between two moments."""
        return sum(size for time, size in self.admitted if begin <= time < end) / (end - begin) / LIMIT


@pytest.mark.parametrize("request_bytes", [16_000, 900_000])
@pytest.mark.parametrize("weights", [(1, 0, 0), (1 / 3, 1 / 3, 1 / 3), (0.6, 0.3, 0.1), (0.5, 0.5, 0)])
def test_four_times_the_limit_is_held_to_it_within_five_percent_from_a_cold_start(weights, request_bytes):
    cluster = ClosedLoop(weights, request_bytes, seed=len(weights) + request_bytes)
    cluster.run(3, load=False)
    cluster.run(30, load=True)
    assert cluster.rate(3, 33) == pytest.approx(1, abs=0.05)
    assert cluster.rate(13, 33) == pytest.approx(1, abs=0.02)


def test_even_load_that_begins_everywhere_at_once_is_not_taken_for_an_imbalance():
    cluster = ClosedLoop((1 / 3, 1 / 3, 1 / 3), 16_000, seed=5)
    cluster.run(3, load=False)
    cluster.run(12, load=True)
    assert cluster.rate(4, 14) <= 1.03


def test_traffic_that_moves_to_another_broker_has_the_whole_limit_there_within_a_few_seconds():
    cluster = ClosedLoop((1, 0, 0), 16_000, seed=7)
    cluster.run(3, load=False)
    cluster.run(10, load=True)
    cluster.weights, cluster.backlog = (0, 0, 1), [0.0] * BROKERS
    cluster.run(13, load=True)
    assert cluster.rate(16, 26) == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize("names", [(), ("ann",)], ids=["shared", "each"])
@pytest.mark.parametrize("weights", [(1, 0, 0), (0.6, 0.3, 0.1)])
def test_a_throttle_rule_holds_over_all_brokers_as_the_instances_own_limit_does(weights, names):
    users = (None,) if names else ("ann",)
    rule = ThrottleRule("rule-1", RuleKind.CLIENT, LIMIT, LIMIT, users=users)
    wanted = replace(spec(produce=None, consume=None, storage=None), rules=RuleSet(1, (rule,)))
    cluster = ClosedLoop(weights, 100_000, seed=3, row=Row(INSTANCE, rule.id).of_client(names).key, wanted=wanted)
    cluster.run(3, load=False)
    cluster.run(30, load=True)
    assert cluster.rate(3, 33) == pytest.approx(1, abs=0.05)
