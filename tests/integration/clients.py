"""confluent-kafka for tests: short to call, bounded in time, and strict about errors."""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.support.specs import Tenant

TIMEOUT_S = 30.0
_FAILS_OVER = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)
_NEW_LEADER = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.OFFSET_NOT_AVAILABLE)
QUIET = {"log_level": 0, "socket.timeout.ms": 10_000}


def admin(tenant: Tenant) -> AdminClient:
    return AdminClient({"bootstrap.servers": tenant.bootstrap, **QUIET})


def create_topic(tenant: Tenant, name: str, partitions: int = 1, factor: int = 3, **config: str) -> None:
    """Raises KafkaException as the cluster refuses."""
    topic = NewTopic(name, partitions, factor, config={key.replace("_", "."): value for key, value in config.items()})
    client = admin(tenant)  # kept: an AdminClient that is collected takes its requests along
    client.create_topics([topic], request_timeout=TIMEOUT_S)[name].result(TIMEOUT_S)


def delete_topic(tenant: Tenant, name: str) -> None:
    client = admin(tenant)
    client.delete_topics([name], request_timeout=TIMEOUT_S)[name].result(TIMEOUT_S)


class Sender:
    """A producer that remembers what became of every value."""

    def __init__(self, tenant: Tenant, **config: Any) -> None:
        self.acknowledged: list[tuple[int, int, bytes]] = []  # partition, offset, value
        self.refused: list[tuple[KafkaError, bytes]] = []
        config = {name.replace("_", "."): value for name, value in config.items()}
        self.producer = Producer({"bootstrap.servers": tenant.bootstrap, "acks": "all", **QUIET, **config})

    def send(self, topic: str, value: bytes, key: bytes | None = None, partition: int = -1) -> None:
        while True:
            try:
                self.producer.produce(topic, value, key, partition, on_delivery=self._done)
                break
            except BufferError:
                self.producer.poll(0.05)
        self.producer.poll(0)

    def _done(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.refused.append((error, message.value()))
        else:
            self.acknowledged.append((message.partition(), message.offset(), message.value()))

    def flush(self, timeout_s: float = TIMEOUT_S) -> None:
        left = self.producer.flush(timeout_s)
        assert left == 0, f"{left} messages were neither acknowledged nor refused within {timeout_s} s"


def produce(tenant: Tenant, topic: str, values: Iterable[bytes], **config: Any) -> list[tuple[int, int, bytes]]:
    """Send, and wait until all are acknowledged: (partition, offset, value) of each."""
    sender = Sender(tenant, **config)
    for value in values:
        sender.send(topic, value, value[-8:])  # keyed, so that partitions share them
    sender.flush()
    assert not sender.refused, sender.refused[:3]
    return sender.acknowledged


@contextmanager
def consumer(tenant: Tenant, group: str = "readers", **config: Any) -> Iterator[Consumer]:
    """Closed at the end. Commits nothing by itself."""
    settings = {
        "bootstrap.servers": tenant.bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        **QUIET,
        **{name.replace("_", "."): value for name, value in config.items()},
    }
    made = Consumer(settings)
    try:
        yield made
    finally:
        made.close()


def take(reader: Consumer, count: int, timeout_s: float = TIMEOUT_S) -> list[Message]:
    """The next `count` messages."""
    found: list[Message] = []
    deadline = time.monotonic() + timeout_s
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} messages within {timeout_s} s"
        for message in reader.consume(count - len(found), 0.2):
            error = message.error()
            if error is None:
                found.append(message)
            elif not error.retriable() and error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise KafkaException(error)
    return found


def committed_offsets(reader: Consumer, partitions: list[TopicPartition]) -> dict[int, int]:
    """The group's offset by partition; negative: none.

    The client looks for the coordinator once. Just after a fail-over the broker that it is sent to may not have taken over
    yet, as with Apache Kafka: then it is asked again.
    """
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return {found.partition: found.offset for found in reader.committed(partitions, TIMEOUT_S)}
        except KafkaException as error:
            if error.args[0].code() not in _FAILS_OVER or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def read_all(tenant: Tenant, topic: str) -> dict[int, list[bytes]]:
    """Everything in a topic by partition, from its beginning to where it ends now."""
    found: dict[int, list[bytes]] = defaultdict(list)
    with consumer(tenant, "read-all") as reader:
        partitions = reader.list_topics(topic, TIMEOUT_S).topics[topic].partitions
        ends = {p: _end(reader, TopicPartition(topic, p)) for p in partitions}
        reader.assign([TopicPartition(topic, p, 0) for p in partitions])
        for message in take(reader, sum(ends.values()), 60):
            assert message.offset() == len(found[message.partition()]), "an offset is missing or doubled"
            found[message.partition()].append(message.value())
    return dict(found)


def _end(reader: Consumer, partition: TopicPartition) -> int:
    """Where a partition ends. The client does not ask again by itself when the leader has just changed, nor while a new one
    does not know yet how far its followers are."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return int(reader.get_watermark_offsets(partition, TIMEOUT_S)[1])
        except KafkaException as error:
            if error.args[0].code() not in _NEW_LEADER or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
            reader.list_topics(partition.topic, TIMEOUT_S)
