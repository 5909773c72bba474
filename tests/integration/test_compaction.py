"""Compacted topics on real brokers, through real clients, while they are written to and while brokers die."""

from __future__ import annotations

import random
import time

import pytest
from confluent_kafka import KafkaError, TopicPartition

from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from dataplane.records.batch import Record, build_batch
from tests.integration.clients import TIMEOUT_S, Sender, consumer, create_topic
from tests.support.cluster import ProcessCluster
from tests.support.waiting import wait_for
from tests.support.wire import Wire

pytestmark = pytest.mark.integration

KEYS = 200
SETTINGS = {
    "group_min_session_timeout_ms": 1000,
    "offsets_topic_num_partitions": 1,
    "offsets_topic_segment_bytes": 2**20,
    "log_cleaner_backoff_ms": 300,
    "log_cleaner_min_cleanable_ratio": 0.2,
}


@pytest.fixture(scope="module")
def quick_cluster(tmp_path_factory):
    with ProcessCluster(tmp_path_factory.mktemp("compaction"), SETTINGS) as made:
        made.make_coordinators()
        yield made


@pytest.fixture
def tenant(quick_cluster):
    quick_cluster.heal()
    made = quick_cluster.tenant()
    yield made
    quick_cluster.forget(made)


def stored(cluster, topic: str, broker: int) -> int:
    """Bytes of the first partition's log files on a broker."""
    total = 0
    home = cluster.brokers[broker].config.parent / f"data-{broker}"
    for path in (home / f"{topic}-0").glob("*.log"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # it has just been replaced
            continue
    return total


def read_table(tenant, topic: str) -> tuple[dict[bytes, bytes | None], int]:
    """What a reader from the beginning ends up with, and how many records that took."""
    table: dict[bytes, bytes | None] = {}
    count, last = 0, -1
    with consumer(tenant, "table", enable_partition_eof="true") as reader:
        reader.assign([TopicPartition(topic, 0, 0)])
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            assert time.monotonic() < deadline, f"{count} records, and no end"
            message = reader.poll(1.0)
            if message is None:
                continue
            if message.error() is not None:
                if message.error().code() == KafkaError._PARTITION_EOF:
                    return table, count
                continue
            assert message.offset() > last
            last, count = message.offset(), count + 1
            table[message.key()] = message.value()


def write(sender: Sender, model: dict[bytes, bytes | None], count: int, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(count):
        key = f"key-{chance.randrange(KEYS)}".encode()
        value = None if chance.random() < 0.05 else chance.randbytes(500)
        sender.send("table", value, key, 0)
        model[key] = value


@pytest.mark.parametrize("codec", ["none", "zstd", "lz4"])
def test_a_table_stays_small_on_all_replicas_while_it_is_written(tenant, quick_cluster, codec):
    create_topic(tenant, "table", cleanup_policy="compact", segment_bytes="1048576")
    model: dict[bytes, bytes | None] = {}
    sender = Sender(tenant, compression_type=codec, enable_idempotence=True)
    for seed in range(12):
        write(sender, model, 1_500, seed)
        sender.flush()
    assert not sender.refused
    topic = f"{tenant.key}.table"
    for broker in (1, 2, 3):
        wait_for(lambda: stored(quick_cluster, topic, broker) < 4 * 2**20, 40, f"broker {broker} to compact")  # noqa: B023
    table, count = read_table(tenant, "table")
    assert count < 12_000
    assert {key: value for key, value in table.items() if value is not None} == {
        key: value for key, value in model.items() if value is not None
    }


def test_it_survives_the_death_of_brokers(tenant, quick_cluster):
    create_topic(tenant, "table", cleanup_policy="compact", segment_bytes="1048576", min_cleanable_dirty_ratio="0.1")
    model: dict[bytes, bytes | None] = {}
    sender = Sender(tenant, enable_idempotence=True)
    for seed in range(6):
        leader = quick_cluster.leader(tenant, "table")
        write(sender, model, 1_500, seed)
        if seed % 2:
            quick_cluster.brokers[leader].kill()
            write(sender, model, 500, 100 + seed)
            quick_cluster.restart(leader)
            quick_cluster.heal()
        sender.flush(60)
    assert not sender.refused
    for leader in (1, 2, 3):  # whoever leads, readers see the same
        quick_cluster.heal()
        others = [broker for broker in (1, 2, 3) if broker != leader]
        for broker in others:
            quick_cluster.brokers[broker].kill()
        table, _ = read_table_when_led(tenant, quick_cluster, leader)
        assert {k: v for k, v in table.items() if v is not None} == {k: v for k, v in model.items() if v is not None}


def read_table_when_led(tenant, cluster, leader: int):
    wait_for(lambda: cluster.leader(tenant, "table") == leader, 30, f"broker {leader} to lead")
    return read_table(tenant, "table")


def test_records_without_a_key_are_refused_one_by_one(tenant, quick_cluster):
    create_topic(tenant, "table", cleanup_policy="compact")
    records = [Record(b"k", b"1"), Record(None, b"2"), Record(b"k", b"3"), Record(None, b"4")]
    data = PartitionProduceData(0, bytes(build_batch(records, now_ms=1_700_000_000_000)))
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=(TopicProduceData("table", (data,)),))
    with Wire(tenant.addresses[quick_cluster.leader(tenant, "table")]) as wire:
        answer = wire.call(request, 9).responses[0].partition_responses[0]
        assert answer.error_code == 87  # INVALID_RECORD
        assert [error.batch_index for error in answer.record_errors] == [1, 3]
        assert tenant.key not in str(answer)
        assert wire.call(request, 7).responses[0].partition_responses[0].error_code == 87
    assert read_table(tenant, "table") == ({}, 0)


def test_committed_offsets_stay_small_and_are_there_after_a_new_coordinator_has_loaded_them(tenant, quick_cluster):
    create_topic(tenant, "orders")
    place = TopicPartition("orders", 0)
    with consumer(tenant, "billing") as reader:
        reader.assign([place])
        for offset in range(1, 9_000):
            reader.commit(
                offsets=[TopicPartition("orders", 0, offset, metadata="m" * 100)], asynchronous=offset % 500 > 0
            )
        reader.commit(offsets=[TopicPartition("orders", 0, 12_345)], asynchronous=False)
    topic = "__consumer_offsets"
    for broker in (1, 2, 3):
        wait_for(lambda: stored(quick_cluster, topic, broker) < 2.2 * 2**20, 40, f"broker {broker} to compact")  # noqa: B023
    quick_cluster.brokers[quick_cluster.coordinator(tenant, "billing")].kill()
    with consumer(tenant, "billing") as reader:
        assert reader.committed([place], TIMEOUT_S)[0].offset == 12_345
    quick_cluster.heal()
