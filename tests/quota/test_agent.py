"""The agent inside a broker: which rate is in force, what it reports and when, which master it obeys."""

import pytest

from quota.agent.agent import Agent, InstanceFacts
from quota.contracts.grant import BLOCKED_STORAGE, Grant, Grants, InstanceGrant
from tests.quota.samples import INSTANCE

FACTS = {INSTANCE: InstanceFacts(leaders=2, all_leaders=6, storage_bytes=77, connections=3)}


def new_agent(produce=3000, consume=6000):
    agent = Agent(broker=2, boot="b", now=0.0)
    agent.configure(INSTANCE, produce, consume, 0.0)
    return agent


def grants(produce=500, consume=900, *, epoch=1, blocked=None, used=0, lease_ms=10_000):
    entry = InstanceGrant(Grant(produce, "headroom", blocked), Grant(consume, "initial"), used)
    return Grants(epoch, 1, lease_ms, {INSTANCE: entry})


def rates(agent):
    return agent.rate(INSTANCE, "produce"), agent.rate(INSTANCE, "consume")


def test_without_a_grant_the_initial_share_is_in_force_and_follows_the_leaders():
    agent = new_agent()
    assert rates(agent) == (3000, 6000)  # nobody said yet who leads what
    agent.set_leaders(INSTANCE, 2, 6, 0.0)
    assert rates(agent) == (1000, 2000)
    agent.set_leaders(INSTANCE, 4, 6, 0.0)
    assert rates(agent) == (2000, 4000)


def test_a_grant_is_in_force_until_its_lease_expires_and_then_the_initial_share_is():
    agent = new_agent()
    agent.set_leaders(INSTANCE, 2, 6, 0.0)
    assert agent.apply(grants(), 5.0)
    assert rates(agent) == (500, 900)
    agent.tick(14.9)
    assert rates(agent) == (500, 900)
    agent.tick(15.0)
    assert rates(agent) == (1000, 2000)


def test_a_renewed_lease_runs_from_its_renewal():
    agent = new_agent()
    agent.apply(grants(), 0.0)
    agent.apply(grants(), 9.0)
    agent.tick(10.0)
    assert rates(agent) == (500, 900)
    agent.tick(19.0)
    assert rates(agent) == (3000, 6000)


def test_grants_of_a_lower_epoch_are_refused():
    agent = new_agent()
    assert agent.apply(grants(500, epoch=3), 0.0)
    assert not agent.apply(grants(700, epoch=2), 0.1)
    assert agent.rate(INSTANCE, "produce") == 500
    agent.see_epoch(5)
    assert not agent.apply(grants(700, epoch=4), 0.2)
    assert agent.apply(grants(700, epoch=5), 0.3)
    assert agent.rate(INSTANCE, "produce") == 700


def test_a_storage_block_outlives_the_lease_until_a_grant_lifts_it():
    agent = new_agent()
    agent.apply(grants(blocked=BLOCKED_STORAGE, used=1234), 0.0)
    agent.tick(1000.0)
    assert agent.blocked(INSTANCE) == BLOCKED_STORAGE
    assert agent.blocked(INSTANCE, "consume") is None
    assert agent.storage_used_bytes(INSTANCE) == 1234
    report = agent.report(FACTS, 1000.0).instances[INSTANCE]
    assert (report.produce.blocked, report.consume.blocked) == (BLOCKED_STORAGE, None)
    agent.apply(grants(), 1001.0)
    assert agent.blocked(INSTANCE) is None


def test_a_grant_never_exceeds_the_limit_and_never_overrides_blocked_or_unlimited():
    agent = new_agent(produce=400, consume=0)
    agent.apply(grants(500, 900), 0.0)
    assert rates(agent) == (400, 0)
    agent.configure(INSTANCE, None, 800, 0.0)
    assert rates(agent) == (None, 800)


def test_a_grant_of_no_allocation_under_a_limit_means_the_initial_share():
    agent = new_agent()
    agent.set_leaders(INSTANCE, 2, 6, 0.0)
    agent.apply(grants(None, None), 0.0)
    assert rates(agent) == (1000, 2000)


def test_the_bucket_is_the_same_object_through_every_change():
    agent = new_agent()
    bucket = agent.bucket(INSTANCE, "produce")
    agent.configure(INSTANCE, 9000, 9000, 0.0)
    agent.apply(grants(123), 0.0)
    assert agent.bucket(INSTANCE, "produce") is bucket
    assert bucket.rate == 123


def test_an_instance_that_is_gone_has_no_bucket_and_is_not_reported():
    agent = new_agent()
    agent.remove(INSTANCE)
    assert agent.bucket(INSTANCE, "produce") is None
    assert agent.apply(grants(), 0.0)
    assert agent.report(FACTS, 1.0).instances == {}


def test_a_report_holds_what_came_since_the_last_one():
    agent = new_agent()
    agent.apply(grants(500, 900), 0.0)
    agent.bucket(INSTANCE, "produce").charge(30, 0.5)
    agent.bucket(INSTANCE, "consume").charge(40, 0.5)
    first = agent.report(FACTS, 1.0)
    assert (first.broker, first.boot, first.sequence, first.period_ms) == (2, "b", 1, 1000)
    entry = first.instances[INSTANCE]
    assert (entry.produce.bytes, entry.consume.bytes) == (30, 40)
    assert (entry.produce.leaders, entry.produce.queued_bytes, entry.produce.allocation) == (2, 0, 500)
    assert (entry.storage_bytes, entry.connections) == (77, 3)
    second = agent.report(FACTS, 2.0)
    assert (second.sequence, second.period_ms, second.instances[INSTANCE].produce.bytes) == (2, 1000, 0)


def test_what_was_let_through_and_is_not_paid_for_is_queued():
    agent = new_agent()
    agent.apply(grants(500, 900), 0.0)
    agent.bucket(INSTANCE, "produce").charge(1_050, 0.0)
    assert agent.report(FACTS, 1.0).instances[INSTANCE].produce.queued_bytes == 500
    assert agent.report(FACTS, 2.0).instances[INSTANCE].produce.queued_bytes == 0


def test_an_early_report_covers_a_whole_period_too():
    """So that brokers that report at different moments are compared by the same measure."""
    agent = new_agent(None, None)
    bucket, bytes_of = agent.bucket(INSTANCE, "produce"), []
    for tick in range(1, 41):
        now = tick / 10
        if tick <= 20:
            bucket.charge(7, now - 0.05)
        agent.tick(now)
        if tick in (10, 13, 20, 25, 30, 40):
            report = agent.report(FACTS, now)
            assert report.period_ms == 1000
            bytes_of.append(report.instances[INSTANCE].produce.bytes)
    assert bytes_of == [70, 70, 70, 35, 0, 0]


def test_under_throttling_a_report_shows_the_rate_and_not_the_sizes_of_single_requests():
    """A request of three seconds' worth: each period carries what was paid in it."""
    agent = new_agent()
    agent.apply(grants(1000), 0.0)
    agent.bucket(INSTANCE, "produce").charge(3000, 0.0)
    flows = [agent.report(FACTS, float(second)).instances[INSTANCE].produce for second in (1, 2, 3, 4)]
    assert [flow.bytes for flow in flows] == [1100, 1000, 900, 0]  # a slice was saved up
    assert [flow.throttled_ms for flow in flows] == [1000, 1000, 900, 0]


def test_all_that_was_waited_and_paid_is_reported_once_and_a_quiet_instance_says_what_it_holds():
    agent, reports = new_agent(produce=1000), []
    agent.apply(grants(1000, 2000), 0.0)
    agent.bucket(INSTANCE, "produce").charge(3100, 0.5)  # a slice of 100, and a debt of three seconds
    for tenth in range(1, 80):
        agent.tick(tenth / 10)
        if tenth % 10 == 0:
            reports.append(agent.report(FACTS, tenth / 10).instances[INSTANCE].produce)
    assert sum(flow.throttled_ms for flow in reports) == 3000
    assert sum(flow.bytes for flow in reports) == pytest.approx(3100, abs=1)
    agent.apply(grants(700, 2000, blocked=BLOCKED_STORAGE), 8.0)
    quiet = agent.report(FACTS, 8.1).instances[INSTANCE].produce
    assert quiet == (0, 0, 0, 2, 700, BLOCKED_STORAGE)


def test_a_report_is_due_once_a_period():
    agent = new_agent()
    assert [agent.report_due(now) for now in (0.5, 0.99, 1.0)] == [False, False, True]
    agent.report(FACTS, 1.0)
    assert [agent.report_due(now) for now in (1.5, 2.0)] == [False, True]


def test_throttling_makes_a_report_due_early_but_at_most_every_100_ms():
    agent = new_agent(produce=1000)
    agent.report(FACTS, 1.0)
    agent.bucket(INSTANCE, "produce").charge(400, 1.02)
    assert not agent.report_due(1.05)
    assert agent.report_due(1.1)
    agent.report(FACTS, 1.1)
    agent.bucket(INSTANCE, "produce").charge(400, 1.11)  # throttling goes on: no second early report
    assert not agent.report_due(1.5)


def test_an_expired_lease_is_reported_as_nothing_held():
    agent = new_agent()
    agent.apply(grants(500), 0.0)
    agent.tick(10.0)
    assert agent.report(FACTS, 10.0).instances[INSTANCE].produce.allocation is None


@pytest.mark.parametrize("leaders", [(0, 0), (0, 6), (3, 2)])
def test_a_rate_is_never_zero_just_because_leaders_are_not_known_yet(leaders):
    agent = new_agent()
    agent.set_leaders(INSTANCE, *leaders, 0.0)
    assert 0 < agent.rate(INSTANCE, "produce") <= 3000


def test_what_was_carried_grows_with_what_is_paid_for_and_begins_anew_with_the_instance():
    agent = new_agent()
    produce = agent.bucket(INSTANCE, "produce")
    assert agent.carried_bytes(INSTANCE, 0.0)[1:] == (0, 0)
    produce.charge(3300, 0.0)  # 300 at once, the rest at 3,000 a second
    assert agent.carried_bytes(INSTANCE, 0.5)[1:] == (1800, 0)
    agent.tick(0.6)
    agent.bucket(INSTANCE, "consume").charge(500, 0.6)
    assert agent.carried_bytes(INSTANCE, 5.0)[1:] == (3300, 500)
    agent.tick(6.0)
    produce.charge(100, 6.0)
    produce.refused_bytes += 100  # the storage is full: it is no flow
    number, *carried = agent.carried_bytes(INSTANCE, 7.0)
    assert carried == [3300, 500]
    agent.remove(INSTANCE)
    assert agent.carried_bytes(INSTANCE, 8.0) == (0, 0, 0)
    agent.configure(INSTANCE, 3000, 6000, 8.0)
    assert agent.carried_bytes(INSTANCE, 9.0) == (number + 1, 0, 0)
