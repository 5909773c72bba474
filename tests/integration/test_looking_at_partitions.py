"""What brokers say of partitions: pages of metadata, producers, sizes on disk; to a tenant only of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dataplane.protocol.messages.discovery import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    DescribeTopicPartitionsRequestTopicRequest,
)
from dataplane.protocol.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from dataplane.protocol.messages.produce import DescribeProducersRequest, DescribeProducersRequestTopicRequest
from tests.integration import asks
from tests.integration.clients import create_topic, produce
from tests.support.processes import HOST, SECRET
from tests.support.waiting import wait_for
from tests.support.wire import Wire

pytestmark = pytest.mark.integration


def call(address, request, version):
    with Wire(address) as wire:
        return wire.call(request, version)


def inside(cluster, broker, request, version):
    with Wire((HOST, cluster.brokers[broker].ports["internal"])) as wire:
        assert wire.log_in(SECRET) == 0
        return wire.call(request, version)


def pages(address, names, limit):
    """All pages, as lists of (topic, error, partitions)."""
    found, cursor = [], None
    while True:
        asked = tuple(DescribeTopicPartitionsRequestTopicRequest(name) for name in names)
        answer = call(address, DescribeTopicPartitionsRequest(asked, limit, cursor), 0)
        found.append([(t.name, t.error_code, [p.partition_index for p in t.partitions]) for t in answer.topics])
        if answer.next_cursor is None:
            return found
        cursor = DescribeTopicPartitionsRequestCursor(answer.next_cursor.topic_name, answer.next_cursor.partition_index)
        assert len(found) < 20


def test_partitions_come_in_pages_that_together_are_everything(tenant, new_tenant):
    create_topic(new_tenant(), "others", 5)
    create_topic(tenant, "a", 3)
    create_topic(tenant, "b", 2)
    address = tenant.addresses[1]
    assert pages(address, [], 100) == [[("a", 0, [0, 1, 2]), ("b", 0, [0, 1])]]
    assert pages(address, [], 2) == [[("a", 0, [0, 1])], [("a", 0, [2]), ("b", 0, [0])], [("b", 0, [1])]]
    assert pages(address, [], 3) == [[("a", 0, [0, 1, 2])], [("b", 0, [0, 1])]]
    assert pages(address, [], 0) == pages(address, [], 1)
    assert pages(address, ["b", "ghost", "b"], 100) == [[("b", 0, [0, 1]), ("ghost", 3, [])]]
    assert pages(address, ["others"], 100) == [[("others", 3, [])]]
    gone = DescribeTopicPartitionsRequest((), 100, DescribeTopicPartitionsRequestCursor("aa", 7))
    assert [t.name for t in call(address, gone, 0).topics] == ["b"]
    (topic,) = call(address, DescribeTopicPartitionsRequest((), 1), 0).topics
    (partition,) = topic.partitions
    assert sorted(partition.replica_nodes) == sorted(partition.isr_nodes) == [1, 2, 3]
    assert (partition.leader_id, topic.is_internal) == (partition.replica_nodes[0], False)


def test_producers_of_a_partition_are_told_by_each_of_its_replicas(tenant, cluster):
    """Of followers too: `kafka-transactions find-hanging --broker-id` asks the broker about all partitions that it has."""
    create_topic(tenant, "orders")
    leader = cluster.leader(tenant, "orders")
    for sequence in (0, 3):
        batch = asks.batch(count=3, producer_id=4711, producer_epoch=2, base_sequence=sequence)
        answer = call(tenant.addresses[leader], asks.produce("orders", batch), 9)
        assert asks.error_codes(answer) == set()
    request = DescribeProducersRequest((DescribeProducersRequestTopicRequest("orders", (0, 9, 0)),))
    one, missing = call(tenant.addresses[leader], request, 0).topics[0].partitions
    (producer,) = one.active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (4711, 2, 5)
    assert (producer.coordinator_epoch, producer.current_txn_start_offset) == (-1, -1)
    assert producer.last_timestamp > 1_700_000_000_000
    assert missing.error_code == 3  # UNKNOWN_TOPIC_OR_PARTITION
    wait_for(lambda: not cluster.behind(), 20, "the replicas")
    for follower in cluster.other_brokers(leader):
        (row,) = call(tenant.addresses[follower], request, 0).topics[0].partitions[0].active_producers
        assert replace(row, last_timestamp=producer.last_timestamp) == producer


def test_a_tenant_sees_how_large_its_partitions_are_and_nothing_of_the_disks(tenant, new_tenant, cluster):
    other = new_tenant()
    for who in (tenant, other):
        create_topic(who, "orders", 2)
        produce(who, "orders", [b"x" * 1000] * 20)
    wait_for(lambda: not cluster.behind(), 20, "the replicas")

    def sizes(broker):
        (directory,) = call(tenant.addresses[broker], DescribeLogDirsRequest(None), 4).results
        assert (directory.log_dir, directory.total_bytes, directory.usable_bytes) == ("/kafka-logs", -1, -1)
        (topic,) = directory.topics
        assert topic.name == "orders"
        assert all(p.offset_lag == 0 and not p.is_future_key for p in topic.partitions)
        return {p.partition_index: p.partition_size for p in topic.partitions}

    wait_for(lambda: sizes(1) == sizes(2) == sizes(3), 30, "equal sizes")
    assert sum(sizes(1).values()) > 20_000
    named = DescribeLogDirsRequest((DescribableLogDirTopic("orders", (1, 7)), DescribableLogDirTopic("ghost", (0,))))
    (directory,) = call(tenant.addresses[1], named, 1).results
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in directory.topics] == [("orders", [1])]


def test_an_operator_sees_every_replica_in_its_directory(tenant, cluster):
    create_topic(tenant, "orders", 2)
    (directory,) = inside(cluster, 2, DescribeLogDirsRequest(None), 4).results
    assert directory.log_dir.endswith("data-2")
    assert {f"{tenant.key}.orders", "__consumer_offsets"} <= {topic.name for topic in directory.topics}
    assert 0 < directory.usable_bytes < directory.total_bytes


def test_moves_that_cannot_be_are_refused_and_those_that_need_not_be_are_done(tenant, cluster):
    create_topic(tenant, "orders")
    name = f"{tenant.key}.orders"
    home = inside(cluster, 1, DescribeLogDirsRequest(()), 1).results[0].log_dir

    def codes(path):
        moves = (AlterReplicaLogDirTopic(name, (0, 9)), AlterReplicaLogDirTopic("ghost", (0,)))
        answer = inside(cluster, 1, AlterReplicaLogDirsRequest((AlterReplicaLogDir(path, moves),)), 2)
        return {t.topic_name: [p.error_code for p in t.partitions] for t in answer.results}

    assert codes("/nowhere") == {name: [57, 57], "ghost": [57]}  # LOG_DIR_NOT_FOUND
    assert codes(home) == {name: [0, 3], "ghost": [3]}
