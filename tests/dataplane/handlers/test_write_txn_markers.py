"""WriteTxnMarkers: each partition is answered for itself, when its marker is committed; groups hear of theirs."""

from __future__ import annotations

import pytest

from dataplane.cluster.metadata import OFFSETS_TOPIC
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from dataplane.records.batch import Record, build_batch
from tests.dataplane.handlers.asking import Tenant
from tests.simulation.cluster import SimulatedCluster

ORDERS = "simulate.orders"


@pytest.fixture(scope="module")
def tenant():
    cluster = SimulatedCluster(seed=3)
    cluster.until(cluster.up)
    cluster.create_topic("orders", 2)
    broker = next(iter(cluster.brokers.values()))
    made = broker.ensure_internal_topic(OFFSETS_TOPIC)
    cluster.until(lambda: made.done, 30)
    cluster.network.run_for(2)
    return Tenant(cluster)


def leader_of(tenant, topic, index=0):
    replicas = [broker.replicas.registry.get(topic, index) for broker in tenant.cluster.brokers.values()]
    return next(replica for replica in replicas if replica is not None and replica.state.is_leader)


def marker(*topics, producer=7, epoch=0, coordinator_epoch=0, committed=True, version=0):
    rows = tuple(WritableTxnMarkerTopic(name, tuple(indexes)) for name, indexes in topics)
    return WritableTxnMarker(producer, epoch, committed, rows, coordinator_epoch, version)


def ask(tenant, leader, *markers):
    """{(producer, topic, index): code}."""
    cluster = tenant.cluster
    asking = next(broker for number, broker in cluster.brokers.items() if number != leader)
    answer = asking.peers.call(leader, WriteTxnMarkersRequest(markers), 2, 30.0)
    cluster.until(lambda: answer.done, 40)
    return {
        (row.producer_id, topic.name, partition.partition_index): partition.error_code
        for row in answer.result().markers
        for topic in row.topics
        for partition in topic.partitions
    }


def test_each_partition_is_answered_for_itself(tenant):
    leader = leader_of(tenant, ORDERS).state.leader_id
    other = leader_of(tenant, ORDERS, 1)
    found = ask(
        tenant, leader, marker((ORDERS, [0, 1, 9]), ("simulate.nothing", [0])), marker((ORDERS, [0]), producer=8)
    )
    is_led_here = other.state.leader_id == leader
    assert found == {
        (7, ORDERS, 0): ErrorCode.NONE,
        (7, ORDERS, 1): ErrorCode.NONE if is_led_here else ErrorCode.NOT_LEADER_OR_FOLLOWER,
        (7, ORDERS, 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (7, "simulate.nothing", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (8, ORDERS, 0): ErrorCode.NONE,
    }


def test_a_marker_is_answered_when_it_is_committed(tenant):
    partition = leader_of(tenant, ORDERS)
    found = ask(tenant, partition.state.leader_id, marker((ORDERS, [0]), producer=20))
    assert found == {(20, ORDERS, 0): ErrorCode.NONE}
    assert partition.state.high_watermark == partition.log.end_offset


def test_an_older_coordinator_and_an_older_producer_are_told_so(tenant):
    leader = leader_of(tenant, ORDERS).state.leader_id
    ask(tenant, leader, marker((ORDERS, [0]), producer=30, epoch=4, coordinator_epoch=6))
    older = marker((ORDERS, [0]), producer=30, epoch=3, coordinator_epoch=6)
    assert ask(tenant, leader, older) == {(30, ORDERS, 0): ErrorCode.INVALID_PRODUCER_EPOCH}
    deposed = marker((ORDERS, [0]), producer=30, epoch=4, coordinator_epoch=5)
    assert ask(tenant, leader, deposed) == {(30, ORDERS, 0): ErrorCode.TRANSACTION_COORDINATOR_FENCED}


@pytest.mark.parametrize("version", [0, 2])
def test_a_marker_that_comes_again_ends_no_transaction_that_has_begun_since_where_each_has_its_own_epoch(
    tenant, version
):
    partition, producer = leader_of(tenant, ORDERS), 50 + version
    leader, again = partition.state.leader_id, marker((ORDERS, [0]), producer=producer, epoch=4, version=version)
    for _ in range(2):
        assert ask(tenant, leader, again) == {(producer, ORDERS, 0): ErrorCode.NONE}
    begins = build_batch([Record(b"k", b"v")], now_ms=1, producer_id=producer, producer_epoch=4, transactional=True)
    broker = tenant.cluster.brokers[leader]
    broker.doors.loop.post(lambda: broker.replicas.appending.append(partition, memoryview(begins), -1, is_checked=True))
    broker.replicas.appending._verifies = lambda: False
    tenant.cluster.network.run_for(1)
    is_late = ask(tenant, leader, again)[producer, ORDERS, 0] == ErrorCode.INVALID_PRODUCER_EPOCH
    assert (is_late, producer in partition.log.transactions.open) == ((True, True) if version else (False, False))


def test_groups_hear_of_the_markers_of_their_partitions(tenant, monkeypatch):
    partition = leader_of(tenant, OFFSETS_TOPIC)
    leader = partition.state.leader_id
    heard = []

    def ended(index, producer_id, *, committed):
        assert partition.state.high_watermark == partition.log.end_offset
        heard.append((index, producer_id, committed))

    monkeypatch.setattr(tenant.cluster.brokers[leader].groups, "transaction_ended", ended)
    ask(tenant, leader, marker((OFFSETS_TOPIC, [0]), producer=40, committed=False), marker((ORDERS, [0]), producer=41))
    assert heard == [(0, 40, False)]
