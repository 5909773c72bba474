"""The flow master may die: the other takes over, limits hold, and traffic does not notice."""

from __future__ import annotations

import time

import pytest

from quota.contracts.instance import MIB, Limits
from tests.integration.clients import Sender, create_topic
from tests.support.cluster import LEASE_MS
from tests.support.waiting import promised, wait_for

pytestmark = pytest.mark.integration


def test_the_standby_takes_over_and_traffic_never_stops(new_tenant, cluster):
    tenant = new_tenant(limits=Limits(10 * MIB, 10 * MIB, None, None))
    create_topic(tenant, "orders", 3)
    sender = Sender(tenant, linger_ms=5)
    active, path = cluster.master(), f"/v1/instances/{tenant.id}/allocation"
    wait_for(lambda: cluster.master_says(path), 20, "the master to know the instance")
    epoch = cluster.master_says(path)["epoch"]
    gap_s, last, acknowledged = 0.0, time.monotonic(), 0

    def send() -> None:
        nonlocal gap_s, last, acknowledged
        for number in range(20):
            sender.send("orders", b"x" * 1000, b"%d" % number)
        sender.producer.poll(0.02)
        if len(sender.acknowledged) > acknowledged:
            acknowledged, last = len(sender.acknowledged), time.monotonic()
        gap_s = max(gap_s, time.monotonic() - last)

    def taken_over() -> bool:
        send()
        return cluster.master() not in (None, active)

    def steered() -> bool:
        """The new master hears of the flow, and gives what was bought."""
        send()
        document = cluster.master_says(path)
        shares = document["produce"]["brokers"]
        flow = sum(share["flow"] for share in shares)
        granted = sum(share["allocation"] or 0 for share in shares)
        return document["epoch"] > epoch and not document["learning"] and flow > 0 and granted <= 10 * MIB * 1.01

    until = time.monotonic() + 2
    while time.monotonic() < until:
        send()
    cluster.masters[active].kill()
    print(f"taken over after {wait_for(taken_over, promised(15), 'the standby'):.2f} s")
    wait_for(steered, promised(15 + LEASE_MS / 1000), "the new master to steer")
    sender.flush()
    assert not sender.refused
    print(f"longest gap between acknowledgements: {gap_s:.2f} s")
    assert gap_s < promised(2)


def test_without_any_master_traffic_goes_on_within_the_limit(new_tenant, cluster):
    tenant = new_tenant(limits=Limits(MIB, MIB, None, None))
    create_topic(tenant, "orders", 3)
    for master in cluster.masters.values():
        master.kill()
    sender = Sender(tenant, linger_ms=5, message_timeout_ms=60_000)
    began = time.monotonic()
    for number in range(8 * 1024):
        sender.send("orders", b"x" * 1000, b"%d" % number)
    sender.flush(60)
    seconds = time.monotonic() - began
    assert not sender.refused
    print(f"8 MB at 1 MiB/s in {seconds:.1f} s")
    assert seconds > 4  # each broker gives a burst at first
    assert seconds < 45
