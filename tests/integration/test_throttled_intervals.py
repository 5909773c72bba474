"""From a producer that has to wait to the sentence that says why: real brokers, a real master, its journal."""

from __future__ import annotations

import os

import pytest

from quota.contracts.instance import Limits
from quota.contracts.throttled import ThrottledInterval
from quota.core.explain import explain_interval
from tests.integration import asks
from tests.integration.clients import create_topic
from tests.support.waiting import wait_for
from tests.support.wire import Wire

pytestmark = pytest.mark.integration

LIMIT = 256 * 1024
LARGE = 600_000


def kept(cluster, tenant):
    """The tenant's intervals, as the last line of each tells them."""
    position, found = 0, {}
    while True:
        page = cluster.master_says(f"/v1/throttled/{position}")
        for document in page["intervals"]:
            if document["instance"] == tenant.id:
                found[document["started_at_ms"]] = ThrottledInterval.from_document(document)
        if page["next"] == position:
            return list(found.values())
        position = page["next"]


def decides_for(cluster, tenant):
    """A master that has just taken over renews what brokers hold, and has nothing to tell of it."""
    return not cluster.master_says(f"/v1/instances/{tenant.id}/allocation")["learning"]


def test_a_producer_that_had_to_wait_is_in_the_journal_with_every_input(new_tenant, cluster):
    tenant = new_tenant(limits=Limits(LIMIT, None, None, None))
    create_topic(tenant, "orders")
    leader = cluster.leader(tenant, "orders")
    wait_for(lambda: decides_for(cluster, tenant), 30, "a master that decides for the instance")
    with Wire(tenant.addresses[leader], timeout_s=30) as wire:
        answers = [wire.call(asks.produce("orders", asks.batch(os.urandom(LARGE))), 9) for _ in range(2)]
    assert answers[0].throttle_time_ms > 1000
    wait_for(lambda: kept(cluster, tenant), 30, "the interval")
    interval = kept(cluster, tenant)[0]
    assert (interval.direction, interval.limit, interval.rule) == ("produce", LIMIT, None)
    assert interval.throttled_ms > 0
    assert list(interval.waits_ms) == [leader]
    (broker,) = interval.moment.brokers
    assert (broker.broker, broker.leaders, broker.initial_share) == (leader, 1, LIMIT)
    assert 0 < broker.allocation <= LIMIT
    assert explain_interval(interval).startswith("Producing waited ")
