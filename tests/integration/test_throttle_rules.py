"""Limits inside an instance with real clients: set by Kafka's own tool, and held."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from statistics import median

import pytest

from quota.contracts.instance import MIB
from quota.contracts.rules import RuleKind, RuleSet, ThrottleRule
from tests.integration import asks
from tests.integration.asks import batch, error_codes
from tests.integration.clients import create_topic
from tests.support import apache_kafka
from tests.support.wire import Wire

pytestmark = pytest.mark.integration

KIB = 1024


def seconds_to_produce(address, topic, count, size=64 * KIB):
    """Of each request."""
    taken = []
    with Wire(address, timeout_s=60) as wire:
        for _ in range(count):
            began = time.monotonic()
            assert error_codes(wire.call(asks.produce(topic, batch(os.urandom(size))), 9)) == set()
            taken.append(time.monotonic() - began)
    return taken


def test_a_topic_is_held_to_its_rule_and_its_neighbour_is_not(tenant, cluster):
    for topic in ("orders", "events"):
        create_topic(tenant, topic)
    rule = ThrottleRule("rule-1", RuleKind.TOPIC, 128 * KIB, None, topics=("orders",))
    cluster.specs.change(tenant, rules=RuleSet(1, (rule,)))
    held = seconds_to_produce(tenant.addresses[cluster.leader(tenant, "orders")], "orders", 8)
    free = seconds_to_produce(tenant.addresses[cluster.leader(tenant, "events")], "events", 8)
    assert sum(held) > 3.0  # 512 KiB at 128 KiB/s, without what is saved up and the last, which need not be paid for
    assert median(free) < median(held) / 2  # not the sum: a machine that stands still takes one of them long


class Configs:
    """kafka-configs, as the tenant."""

    def __init__(self, tenant):
        if shutil.which("java") is None or not apache_kafka.JARS.is_dir():
            pytest.skip("Kafka's tools are not here: `make conformance` fetches them")
        self._command = [
            *apache_kafka.tool("kafka.admin.ConfigCommand"),
            "--bootstrap-server",
            tenant.bootstrap,
        ]

    def __call__(self, *arguments):
        done = subprocess.run([*self._command, *arguments], capture_output=True, text=True, timeout=90, check=False)
        return done.stdout + done.stderr


@pytest.mark.timeout(300)
def test_kafkas_own_tool_sets_shows_and_takes_away_quotas(new_tenant):
    tenant, other = new_tenant(), new_tenant()
    configs = Configs(tenant)
    entity = ("--entity-type", "clients", "--entity-name", "loader")
    said = configs("--alter", *entity, "--add-config", f"producer_byte_rate={MIB},consumer_byte_rate={2 * MIB}")
    assert "Completed updating config" in said
    configs("--alter", "--entity-type", "users", "--entity-default", "--add-config", f"producer_byte_rate={3 * MIB}")
    shown = configs("--describe", *entity)
    assert f"producer_byte_rate={float(MIB)}" in shown
    assert f"consumer_byte_rate={float(2 * MIB)}" in shown
    assert f"producer_byte_rate={float(3 * MIB)}" in configs("--describe", "--entity-type", "users")
    assert "loader" not in Configs(other)("--describe", "--entity-type", "clients")
    configs("--alter", *entity, "--delete-config", "producer_byte_rate,consumer_byte_rate")
    assert "loader" not in configs("--describe", "--entity-type", "clients")
    assert "not limited here" in configs("--alter", *entity, "--add-config", "request_percentage=50")
