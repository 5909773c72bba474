"""Disks that fail or fill up in a cluster of three: leadership moves, nothing acknowledged is lost, others go on."""

from __future__ import annotations

import errno
import os

import pytest

from dataplane.doors import Delete
from dataplane.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from tests.simulation.cluster import SimulatedCluster

TOPIC = "orders"
PARTITIONS = 3


def values_of(cluster: SimulatedCluster, partition: int) -> dict[int, bytes]:
    return dict(cluster.run(cluster.client.read_all(TOPIC, partition, cluster.ids)))


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_a_disk_that_refuses_loses_its_leaderships_and_nothing_that_was_acknowledged(code):
    cluster = SimulatedCluster(11)
    cluster.until(cluster.up)
    cluster.create_topic(TOPIC, PARTITIONS, min_insync_replicas="2")
    acknowledged: dict[tuple[int, int], bytes] = {}

    async def produce(rounds: range) -> None:
        producer_id = await cluster.client.producer_id(cluster.ids)
        for number in rounds:
            for partition in range(PARTITIONS):
                value = b"%d-%d" % (partition, number)
                sequence = number - rounds.start
                base = await cluster.client.produce(TOPIC, partition, [value], producer_id, sequence, cluster.ids)
                acknowledged[partition, base] = value

    cluster.run(produce(range(5)))
    physical = f"simulate.{TOPIC}"
    victim = next(
        n
        for n, b in cluster.brokers.items()
        if any(p.state.is_leader for p in b.replicas.registry.partitions() if p.topic == physical)
    )

    def refuse(operation: str, path: str) -> None:
        if operation in ("append", "write_file", "sync", "truncate"):
            raise OSError(code, os.strerror(code), path)

    cluster.files[victim].fault = refuse
    cluster.run(produce(range(5, 10)))
    assert cluster.brokers[victim].logs.directories() == [("/data", os.strerror(code))]

    def moved() -> bool:
        return all(
            state.leader not in (victim, -1) and victim not in state.isr
            for broker in cluster.brokers.values()
            for state in broker.metadata.partitions(physical).values()
        )

    cluster.until(moved)
    assert any("OFFLINE" in text for _, text in cluster.log)
    cluster.kill(victim)
    cluster.files[victim].fault = None
    cluster.start(victim)
    cluster.until(lambda: cluster.up() and cluster.in_sync(TOPIC))
    for partition in range(PARTITIONS):
        expected = {offset: value for (p, offset), value in acknowledged.items() if p == partition}
        assert values_of(cluster, partition) == expected


def test_a_broker_starts_without_a_directory_that_cannot_be_read_and_hosts_no_empty_log_in_its_place():
    cluster = SimulatedCluster(13, data_dirs=("/broken", "/data"))
    cluster.until(cluster.up)
    cluster.create_topic(TOPIC, 2)
    physical = f"simulate.{TOPIC}"
    lost = next(index for index in range(2) if cluster.files[3].exists(f"/broken/{physical}-{index}"))
    cluster.kill(3)
    cluster.until(lambda: cluster.brokers[1].metadata.alive() == [1, 2])

    def refuse(operation: str, path: str) -> None:
        if path.startswith("/broken"):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    cluster.files[3].fault = refuse
    cluster.start(3)
    cluster.until(cluster.up)
    cluster.until(lambda: 3 in cluster.brokers[1].metadata.partition(physical, 1 - lost).isr)
    assert cluster.brokers[3].logs.directories() == [("/broken", os.strerror(errno.EIO)), ("/data", None)]
    assert 3 not in cluster.brokers[1].metadata.partition(physical, lost).isr
    assert cluster.brokers[3].logs.get(physical, lost) is None


@pytest.mark.parametrize("made_again", [False, True])
def test_a_log_of_a_topic_that_was_deleted_while_its_broker_was_away_is_removed(made_again):
    cluster = SimulatedCluster(12)
    cluster.until(cluster.up)
    cluster.create_topic(TOPIC, 1)
    cluster.create_topic("kept", 1)
    old_id = cluster.brokers[1].metadata.topic_id(f"simulate.{TOPIC}")
    cluster.kill(3)
    cluster.until(lambda: cluster.brokers[1].metadata.alive() == [1, 2])
    stray = cluster.files[3].exists(f"/data/simulate.{TOPIC}-0")
    assert stray
    # As if its deletion had been finished without broker 3.
    nodes = [path for path in cluster.zookeeper.tree.dump() if f"simulate.{TOPIC}" in path]
    cluster.zookeeper.write([Delete(path) for path in sorted(nodes, reverse=True)])
    if made_again:
        create = CreateTopicsRequest(topics=(CreatableTopic(TOPIC, 1, 2, (), ()),), timeout_ms=10_000)

        async def make_again() -> None:
            while cluster.brokers[1].metadata.topic_id(f"simulate.{TOPIC}") in (None, old_id):
                await cluster.client.call(cluster.brokers[1].metadata.controller_id, create, 5)
                await cluster.client.sleep(0.1)

        cluster.run(make_again())
    cluster.until(lambda: cluster.brokers[1].metadata.topic_id(f"simulate.{TOPIC}") != old_id)
    cluster.start(3)
    cluster.until(cluster.up)
    cluster.until(lambda: not cluster.files[3].exists(f"/data/simulate.{TOPIC}-0"))
    assert cluster.brokers[3].logs.get("simulate.kept", 0) is not None
    assert cluster.brokers[3].logs.get(f"simulate.{TOPIC}", 0) is None
