"""librdkafka as it speaks to brokers of 0.8.2 to 0.10, and as it is: they read each other's messages in one topic.

With `api.version.request` off it believes `broker.version.fallback`: Produce 0 to 2 with message formats 0 and 1, Fetch 0
to 2. It writes and reads snappy, gzip and lz4 by itself (the last with the historic wrong header checksum where the
broker is older than 0.10).
"""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.integration.clients import QUIET, create_topic

pytestmark = pytest.mark.integration

OLD = ["0.8.2.2", "0.9.0.1", "0.10.0.1"]
CODECS = ["none", "gzip", "snappy", "lz4"]


def as_if(version: str | None) -> dict[str, object]:
    """The configuration of a client that takes the brokers for this version."""
    if version is None:
        return {}
    return {"api.version.request": False, "broker.version.fallback": version}


def write(tenant, version, codec, values):
    producer = Producer(
        {"bootstrap.servers": tenant.bootstrap, "acks": "all", "compression.type": codec, "linger.ms": 50}
        | QUIET
        | as_if(version)
    )
    failures = []
    for value in values:
        producer.produce("orders", value, b"key", 0, on_delivery=lambda error, _: error and failures.append(error))
    assert producer.flush(30) == 0
    assert failures == []


def read(tenant, version, count):
    consumer = Consumer(
        {"bootstrap.servers": tenant.bootstrap, "group.id": "unused", "enable.auto.commit": False}
        | QUIET
        | as_if(version)
    )
    consumer.assign([TopicPartition("orders", 0, 0)])
    messages = []
    deadline = time.monotonic() + 40
    while len(messages) < count and time.monotonic() < deadline:
        for message in consumer.consume(count, 0.5):
            assert message.error() is None
            messages.append(message)
    consumer.close()
    return messages


@pytest.mark.parametrize("codec", CODECS)
def test_every_client_reads_what_every_client_wrote(tenant, codec):
    create_topic(tenant, "orders")
    expected = []
    for version in (*OLD, None):
        if version == "0.8.2.2" and codec == "lz4":
            continue  # that broker had no lz4, and the client sends it plain
        values = [f"{version} {codec} {number} ".encode() + b"." * (number % 700) for number in range(700)]
        write(tenant, version, codec, values)
        expected += values
    for version in (*OLD, None):
        messages = read(tenant, version, len(expected))
        assert [message.offset() for message in messages] == list(range(len(expected)))
        assert [message.value() for message in messages] == expected
        assert {message.key() for message in messages} == {b"key"}
        timed = [message for message in messages if message.timestamp()[1] > 0]
        if version in OLD[:2]:
            assert timed == []  # format 0 has no timestamps
        else:
            assert [message.offset() for message in timed] == list(range(len(expected) - 1400, len(expected)))
