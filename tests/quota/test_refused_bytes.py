"""Storage is full and producers try on: what is refused is no flow, and no limit of bandwidth is blamed for the waiting."""

import json

from quota.agent.agent import Agent, InstanceFacts
from quota.contracts.throttled import ThrottledInterval
from quota.core.explain import explain_interval
from tests.quota.samples import INSTANCE, flow
from tests.quota.test_recorder import Watched, waits

FACTS = {INSTANCE: InstanceFacts(leaders=2, all_leaders=2, storage_bytes=0, connections=1)}


def agent_with_bucket(limit):
    agent = Agent(broker=2, boot="b", now=0.0)
    agent.configure(INSTANCE, limit, limit, 0.0)
    return agent, agent.bucket(INSTANCE, "produce")


def flowed(agent, now):
    return agent.report(FACTS, now).instances[INSTANCE].produce.bytes


def test_what_was_refused_is_paid_for_and_does_not_flow():
    agent, bucket = agent_with_bucket(None)
    bucket.charge(700, 0.5)
    bucket.refused_bytes += 600
    assert flowed(agent, 1.0) == 100


def test_a_large_refused_request_is_left_out_for_as_long_as_it_is_being_paid():
    agent, bucket = agent_with_bucket(1000)
    bucket.charge(3100, 0.0)
    bucket.refused_bytes += 3100
    assert [flowed(agent, float(second)) for second in (1, 2, 3)] == [0, 0, 0]
    bucket.charge(400, 3.5)
    assert flowed(agent, 4.0) == 400


def test_what_waits_while_storage_is_full_waits_for_storage():
    watched = Watched(produce=300, storage=50)
    for broker in (1, 2):
        watched.ledger._fences.store(INSTANCE, broker, 30)
    watched.ledger.tick(watched.now)
    assert watched.ledger.storage_full(INSTANCE)
    rows = [flow(0, throttled_ms=600)]
    watched.ledger.set_registered(None)
    for _ in range(3):
        watched.sequence += 1
        watched.now += 1
        watched.recorder._wait((INSTANCE, "produce"), 1, rows[0])
        watched.recorder.tick(watched.ledger, watched.now, int(watched.now * 1000))
    (interval,) = watched.recorder.close(6)
    assert interval.blocked == "storage"
    assert interval.throttled_ms > 0
    assert interval.under_limit_ms == 0  # the guarantee of bandwidth was not broken
    assert "storage was full" in explain_interval(interval)
    assert ThrottledInterval.from_document(json.loads(interval.to_json())) == interval


def test_waiting_before_storage_was_full_is_an_interval_of_its_own():
    watched = Watched(produce=300, storage=50)
    assert watched.second(waits(200), flow(0)) == []
    watched.ledger._fences.move(INSTANCE, up=True)
    watched.now += 1
    watched.recorder._wait((INSTANCE, "produce"), 1, flow(0, throttled_ms=500))
    (before,) = watched.recorder.tick(watched.ledger, watched.now, 1_763_715_602_000)
    (since,) = watched.recorder.close(6)
    assert (before.blocked, since.blocked) == (None, "storage")
    assert "only" in explain_interval(before)
