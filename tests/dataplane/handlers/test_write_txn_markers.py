"""WriteTxnMarkers: each partition is answered for itself, when its marker is committed; groups hear of theirs.

Whoever is no broker aborts by it what is open, and nothing else.
"""

from __future__ import annotations

import pytest

from dataplane.cluster.metadata import OFFSETS_TOPIC
from dataplane.handlers import transaction_charges
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.produce import (
    DescribeProducersRequest,
    DescribeProducersRequestTopicRequest,
)
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


# --- whoever is no broker ---------------------------------------------------------------------------------------------


def hanging(tenant, producer, *, epoch=0):
    """A transaction that no coordinator knows: a batch that was never verified. Its first offset."""
    partition = leader_of(tenant, ORDERS)
    broker = tenant.cluster.brokers[partition.state.leader_id]
    batch = build_batch([Record(b"k", b"v")], now_ms=1, producer_id=producer, producer_epoch=epoch, transactional=True)
    verifies, broker.replicas.appending._verifies = broker.replicas.appending._verifies, lambda: False
    broker.doors.loop.post(lambda: broker.replicas.appending.append(partition, memoryview(batch), -1, is_checked=True))
    tenant.cluster.network.run_for(1)
    broker.replicas.appending._verifies = verifies
    return partition.log.transactions.open[producer]


def abort(tenant, *markers, version=1):
    """By the tenant's own port and names."""
    answer = tenant.ask(WriteTxnMarkersRequest(markers), version)
    return {
        (row.producer_id, topic.name, partition.partition_index): partition.error_code
        for row in answer.markers
        for topic in row.topics
        for partition in topic.partitions
    }


def aborting(producer, *topics, epoch=0, coordinator_epoch=0):
    return marker(
        *(topics or (("orders", [0]),)),
        producer=producer,
        epoch=epoch,
        coordinator_epoch=coordinator_epoch,
        committed=False,
    )


@pytest.mark.parametrize("version", [0, 1])
def test_a_tenant_ends_a_transaction_that_hangs_by_what_the_partition_says_of_it(tenant, version):
    """As `kafka-transactions abort --start-offset`."""
    producer = 60 + version
    first = hanging(tenant, producer)
    request = DescribeProducersRequest((DescribeProducersRequestTopicRequest("orders", (0,)),))
    rows = tenant.ask(request, 0).topics[0].partitions[0].active_producers
    (found,) = [row for row in rows if row.current_txn_start_offset == first]
    assert found.producer_id == producer
    epochs = {"epoch": found.producer_epoch, "coordinator_epoch": max(found.coordinator_epoch, 0)}
    assert abort(tenant, aborting(producer, **epochs), version=version) == {(producer, "orders", 0): ErrorCode.NONE}
    log = leader_of(tenant, ORDERS).log
    assert producer not in log.transactions.open
    end = log.end_offset
    assert abort(tenant, aborting(producer, **epochs), version=version) == {(producer, "orders", 0): ErrorCode.NONE}
    tenant.cluster.network.run_for(1)
    assert log.end_offset == end, "nothing was open any more, and nothing was written"


def test_a_tenant_is_not_offered_the_versions_of_brokers(tenant):
    answer = tenant.cluster.client.call(leader_of(tenant, ORDERS).state.leader_id, WriteTxnMarkersRequest(()), 2)
    tenant.cluster.until(lambda: answer.done, 60)
    assert answer.error is not None or answer.result() is None, "the connection was closed"


def test_a_tenant_commits_nothing(tenant):
    hanging(tenant, 62)
    found = abort(tenant, marker(("orders", [0]), producer=62, committed=True))
    assert found == {(62, "orders", 0): ErrorCode.INVALID_REQUEST}
    assert 62 in leader_of(tenant, ORDERS).log.transactions.open
    abort(tenant, aborting(62))


def test_a_marker_for_a_producer_that_nobody_knows_leaves_no_trace(tenant):
    partition = leader_of(tenant, ORDERS)
    end = partition.log.end_offset
    assert abort(tenant, aborting(63)) == {(63, "orders", 0): ErrorCode.NONE}
    tenant.cluster.network.run_for(1)
    assert partition.log.end_offset == end


def test_an_older_epoch_of_the_producer_or_of_the_coordinator_is_told_so(tenant):
    leader = leader_of(tenant, ORDERS).state.leader_id
    ask(tenant, leader, marker((ORDERS, [0]), producer=64, epoch=4, coordinator_epoch=6))
    hanging(tenant, 64, epoch=4)
    assert set(abort(tenant, aborting(64, epoch=3, coordinator_epoch=6)).values()) == {ErrorCode.INVALID_PRODUCER_EPOCH}
    older = aborting(64, epoch=4, coordinator_epoch=5)
    assert set(abort(tenant, older).values()) == {ErrorCode.TRANSACTION_COORDINATOR_FENCED}
    assert set(abort(tenant, aborting(64, epoch=4, coordinator_epoch=6)).values()) == {ErrorCode.NONE}


def test_a_later_coordinator_than_there_has_been_shuts_out_nobody(tenant):
    leader = leader_of(tenant, ORDERS).state.leader_id
    ask(tenant, leader, marker((ORDERS, [0]), producer=65, epoch=0, coordinator_epoch=6))
    for producer, known in ((65, 6), (66, 0)):
        hanging(tenant, producer)
        assert set(abort(tenant, aborting(producer, coordinator_epoch=2**31 - 1)).values()) == {ErrorCode.NONE}
        again = marker((ORDERS, [0]), producer=producer, epoch=0, coordinator_epoch=known)
        assert ask(tenant, leader, again) == {(producer, ORDERS, 0): ErrorCode.NONE}


def test_topics_of_others_and_of_the_cluster_do_not_exist_for_a_tenant(tenant):
    names = ("absent", OFFSETS_TOPIC, "simulate.orders", "__transaction_state")
    found = abort(tenant, aborting(67, *((name, [0]) for name in names)))
    assert found == {(67, name, 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for name in names}


def test_what_the_service_keeps_for_an_instance_is_not_written_to(tenant):
    assert set(abort(tenant, aborting(68, ("__sluice_audit", [0]))).values()) == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}


def test_the_markers_that_a_tenant_writes_are_charged_with_what_groups_store(tenant, monkeypatch):
    charged = []
    monkeypatch.setattr(
        transaction_charges,
        "_charge",
        lambda ctx, bucket, size: charged.append((bucket is ctx.session.instance.group_bucket, size)),
    )
    hanging(tenant, 69)
    abort(tenant, aborting(69), aborting(70))
    assert charged == [(True, transaction_charges.MARKER_BYTES)]
