"""A key goes to the partition to which clients in Java send it: shown with librdkafka's own brokers, which are no processes."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import pytest

from controlplane.kafka.message_door import KafkaMessages, Message

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python reads its schemas in a way that Python 3.11 calls old
    from kafka.partitioner.default import murmur2

PARTITIONS = 4
"""That librdkafka's own brokers give a topic."""
JAVAS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
"""Hashes of Kafka's own UtilsTest.testMurmur2."""


def written(keys):
    door = KafkaMessages(SimpleNamespace(settings={"test.mock.num.brokers": 1}))
    return [
        found.partition for found in door.produce_several("orders", [Message(-1, -1, None, key, b"x") for key in keys])
    ]


def test_the_partition_of_a_key_is_the_one_that_javas_clients_choose():
    assert written(JAVAS) == [(hashed & 0x7FFFFFFF) % PARTITIONS for hashed in JAVAS.values()]


@pytest.mark.parametrize("key", [b"", b"\0", b"\xff" * 7, b"order-4711", "订单".encode()])
def test_and_the_one_that_kafka_python_chooses(key):
    assert written([key] * 3) == [(murmur2(key) & 0x7FFFFFFF) % PARTITIONS] * 3


def test_one_message_alone_goes_where_many_do():
    door = KafkaMessages(SimpleNamespace(settings={"test.mock.num.brokers": 1}))
    found = door.produce("orders", Message(-1, -1, None, b"abc", b"x"), None)
    assert found.partition == (JAVAS[b"abc"] & 0x7FFFFFFF) % PARTITIONS
