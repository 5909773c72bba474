"""Three bugs that another tenant-wide quota had, as tests: it must not have them here.

Pulsar: a quota of 0 meant "no limit" (PR 11916), division by a total use of 0 (PR 11821), and an integer division that
lost small use, so that reports were never sent (PR 15292).
"""

from quota.agent.agent import Agent, InstanceFacts
from quota.core.allocate import allocate
from quota.core.bucket import MAX_DELAY_S, TokenBucket
from quota.core.model import BrokerFlow
from tests.quota.samples import INSTANCE


def test_a_quota_of_zero_is_blocked_and_not_unlimited():
    allocation = allocate(0, [BrokerFlow(1, 1, 50), BrokerFlow(2, 1, 0)])
    assert [share.allocation_bytes_per_s for share in allocation.shares] == [0, 0]
    bucket = TokenBucket(0, now=0.0)
    assert bucket.charge(0, 0.0) == MAX_DELAY_S
    assert bucket.charge(1, 0.0) == MAX_DELAY_S
    assert bucket.charge(0, 100.0) == MAX_DELAY_S
    assert bucket.delay(100.0) == MAX_DELAY_S
    assert bucket.fetch_bytes() == 0


def test_an_agent_keeps_zero_and_unlimited_apart():
    agent = Agent(broker=1, boot="a", now=0.0)
    agent.configure(INSTANCE, 0, None, 0.0)
    agent.set_leaders(INSTANCE, 1, 3, 0.0)
    assert agent.rate(INSTANCE, "produce") == 0
    assert agent.rate(INSTANCE, "consume") is None


def test_a_total_use_of_zero_is_no_division():
    for limit in (0, 1, 10**9):
        for strategy in ("ckafka", "bounded"):
            shares = allocate(limit, [BrokerFlow(1, 1, 0), BrokerFlow(2, 3, 0)], strategy).shares
            assert sum(share.allocation_bytes_per_s for share in shares) <= limit * 1.05


def test_small_use_is_reported_and_none_of_it_is_lost():
    """One byte now and then under a limit of 1 GiB/s: every report has what came, and the sum is exact."""
    agent = Agent(broker=1, boot="a", now=0.0)
    agent.configure(INSTANCE, 2**30, 2**30, 0.0)
    facts = {INSTANCE: InstanceFacts(leaders=1, all_leaders=3, storage_bytes=0, connections=1)}
    reported = []
    for second in range(1, 51):
        if second % 7 == 0:
            agent.bucket(INSTANCE, "produce").charge(1, second - 0.5)
        assert agent.report_due(float(second))
        reported.append(agent.report(facts, float(second)).instances[INSTANCE].produce.bytes)
    assert [index + 1 for index, count in enumerate(reported) if count] == [7, 14, 21, 28, 35, 42, 49]
    assert sum(reported) == agent.bucket(INSTANCE, "produce").charged_bytes == 7
