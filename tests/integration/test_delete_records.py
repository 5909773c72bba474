"""DeleteRecords by real clients, through a tenant's port, on three brokers."""

from __future__ import annotations

import warnings

import pytest
from confluent_kafka import KafkaException, TopicPartition

from tests.integration.clients import TIMEOUT_S, admin, consumer, create_topic, produce, take

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python reads its schemas in a way that Python 3.11 calls old
    import kafka
    from kafka.admin import KafkaAdminClient

pytestmark = pytest.mark.integration


def delete(tenant, topic: str, offset: int, partition: int = 0) -> int:
    client = admin(tenant)
    place = TopicPartition(topic, partition, offset)
    [future] = client.delete_records([place], request_timeout=TIMEOUT_S, operation_timeout=10).values()
    return int(future.result(TIMEOUT_S).low_watermark)


def watermarks(tenant, topic: str) -> tuple[int, int]:
    with consumer(tenant) as reader:
        return reader.get_watermark_offsets(TopicPartition(topic, 0), TIMEOUT_S)


def test_what_lies_before_the_offset_is_gone_for_readers(tenant):
    create_topic(tenant, "orders")
    produce(tenant, "orders", [f"v{number}".encode() for number in range(20)])
    assert delete(tenant, "orders", 15) == 15
    assert watermarks(tenant, "orders") == (15, 20)
    with consumer(tenant) as reader:
        reader.assign([TopicPartition("orders", 0, 3)])
        assert [message.offset() for message in take(reader, 5)] == list(range(15, 20))


def test_all_of_it(tenant):
    create_topic(tenant, "orders")
    produce(tenant, "orders", [b"v"] * 20)
    assert delete(tenant, "orders", -1) == 20
    assert watermarks(tenant, "orders") == (20, 20)
    produce(tenant, "orders", [b"next"])
    assert watermarks(tenant, "orders") == (20, 21)


def test_it_holds_after_the_leader_is_killed_and_on_the_replica_that_takes_over(tenant, cluster):
    create_topic(tenant, "orders")
    produce(tenant, "orders", [b"v"] * 20)
    leader = cluster.leader(tenant, "orders")
    assert delete(tenant, "orders", 12) == 12
    cluster.brokers[leader].kill()
    produce(tenant, "orders", [b"more"])
    assert watermarks(tenant, "orders") == (12, 21)
    cluster.restart(leader)
    cluster.heal()
    assert watermarks(tenant, "orders") == (12, 21)


@pytest.mark.parametrize("offset", [21, 2**40])
def test_beyond_the_end_is_out_of_range(tenant, offset):
    create_topic(tenant, "orders")
    produce(tenant, "orders", [b"v"] * 20)
    with pytest.raises(KafkaException, match="OFFSET_OUT_OF_RANGE"):
        delete(tenant, "orders", offset)
    assert watermarks(tenant, "orders") == (0, 20)


def test_a_compacted_topic_refuses(tenant):
    create_topic(tenant, "table", cleanup_policy="compact")
    produce(tenant, "table", [b"v"] * 5)
    with pytest.raises(KafkaException, match="POLICY_VIOLATION"):
        delete(tenant, "table", 3)


def test_kafka_python_deletes_too(tenant):
    create_topic(tenant, "orders")
    produce(tenant, "orders", [b"v"] * 20)
    client = KafkaAdminClient(bootstrap_servers=tenant.bootstrap.split(","))
    try:
        place = kafka.TopicPartition("orders", 0)
        found = client.delete_records({place: 7}, timeout_ms=10_000)
        assert found[place]["low_watermark"] == 7
    finally:
        client.close()
