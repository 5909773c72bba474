"""A replica that catches up takes no more than the throttle gives it; replicas in sync know nothing of it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from dataplane.records.steps import run_through
from dataplane.replication.throttling import names
from tests.dataplane.replication.cluster import SETTINGS, TOPIC, ReplicatedCluster

RATE = 50_000
RECORDS, SIZE = 50, 10_000
CATCH_UP_S = RECORDS * SIZE / RATE
THROTTLES = {
    "sending": {"leader_replication_throttled_rate": RATE},
    "copying": {"follower_replication_throttled_rate": RATE},
}
TOPIC_NAMES_IT = {
    "sending": {"leader_replication_throttled_replicas": "0:1"},
    "copying": {"follower_replication_throttled_replicas": "0:3"},
}


def moving(rates: dict[str, int], **overrides: str) -> ReplicatedCluster:
    """A partition on brokers 1 and 2 with records in it, and an empty replica that was added on broker 3."""
    settings = replace(SETTINGS, replica_fetch_max_bytes=20_000, **rates)
    cluster = ReplicatedCluster(settings=settings)
    for broker in cluster.brokers.values():
        broker.metadata.partition = lambda topic, index: SimpleNamespace(isr=cluster.controller.states[TOPIC, 0].isr)
    cluster.create((1, 2), **overrides)
    for _ in range(RECORDS):
        cluster.produce(1, "x" * SIZE)
        cluster.run(0.05)
    state = cluster.controller.states[TOPIC, 0]
    cluster.controller.states[TOPIC, 0] = replace(state, replicas=(1, 2, 3))
    cluster.elect(1, (1, 2))
    return cluster


def seconds_until_in_sync(cluster: ReplicatedCluster) -> float:
    began = cluster.network.clock.monotonic()
    cluster.network.run_until(lambda: 3 in cluster.controller.states[TOPIC, 0].isr, 60)
    return cluster.network.clock.monotonic() - began


@pytest.mark.parametrize("side", THROTTLES)
def test_a_new_replica_catches_up_at_the_rate_that_was_set(side):
    cluster = moving(THROTTLES[side], **TOPIC_NAMES_IT[side])
    took = seconds_until_in_sync(cluster)
    assert CATCH_UP_S * 0.8 < took < CATCH_UP_S * 1.3
    assert len(cluster[3].values()) == RECORDS


@pytest.mark.parametrize("side", THROTTLES)
def test_without_a_rate_or_without_a_name_it_is_not_held_back(side):
    assert seconds_until_in_sync(moving({}, **TOPIC_NAMES_IT[side])) < 1
    assert seconds_until_in_sync(moving(THROTTLES[side])) < 1


@pytest.mark.parametrize("side", THROTTLES)
def test_replicas_in_sync_are_not_held_back_whatever_is_named(side):
    everybody = dict.fromkeys(TOPIC_NAMES_IT[side], "*")
    cluster = moving(THROTTLES[side], **everybody)
    assert 2 in cluster.controller.states[TOPIC, 0].isr
    seconds = []
    for _ in range(20):  # more in a second than the throttle gives in four
        produced = cluster.produce(1, "y" * SIZE)
        began = cluster.network.clock.monotonic()
        cluster.network.run_until(lambda: produced.code is not None, 5)  # noqa: B023 - called at once
        assert produced.code == 0
        seconds.append(cluster.network.clock.monotonic() - began)
    assert max(seconds) < 0.05


@pytest.mark.parametrize("side", THROTTLES)
def test_a_rate_that_is_lifted_holds_nobody_back_for_long(side):
    cluster = moving(THROTTLES[side], **TOPIC_NAMES_IT[side])
    cluster.run(1)
    for broker in cluster.brokers.values():
        broker.replicas.configuration.take_settings(replace(broker.replicas.configuration.config, settings=SETTINGS))
        run_through(broker.replicas.configuration.all_anew())
    assert seconds_until_in_sync(cluster) < 1


@pytest.mark.parametrize("side", THROTTLES)
def test_a_throttled_fetch_does_not_run_in_circles_while_the_leader_is_written_to(side):
    cluster = moving(THROTTLES[side], **TOPIC_NAMES_IT[side])
    before = cluster[1].fetch_requests
    for _ in range(100):
        cluster.produce(1, "z", acks=1)
        cluster.run(0.01)
    asked_by_the_one_in_sync = 110
    assert cluster[1].fetch_requests - before < asked_by_the_one_in_sync + 30


@pytest.mark.parametrize(
    ("value", "named"),
    [("", False), ("*", True), ("3:7", True), ("1:1, 3:7", True), ("3:70", False), ("7:3", False), ("13:7", False)],
)
def test_a_list_names_pairs_of_partition_and_broker(value, named):
    assert names(value, 3, 7) is named


def test_the_settings_of_a_broker_are_taken_over_by_its_partitions_in_steps():
    """25 us each: ten thousand of them were a turn of a quarter of a second."""
    cluster = ReplicatedCluster(size=1)
    for index in range(10):
        cluster.create((1,), index=index)
    configuration = cluster[1].replicas.configuration
    configuration.take_settings(
        replace(configuration.config, settings=replace(configuration.settings, message_max_bytes=77))
    )
    steps, taken = configuration.all_anew(), []
    for _ in steps:
        taken.append(sum(p.state.settings.max_message_bytes == 77 for p in cluster[1].replicas.registry.partitions()))
        if len(taken) == 1:
            cluster.create((1,), index=10)  # what comes meanwhile has them from the beginning
    assert taken[0] < 5
    assert all(p.state.settings.max_message_bytes == 77 for p in cluster[1].replicas.registry.partitions())
