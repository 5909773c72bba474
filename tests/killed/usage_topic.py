"""`__usage` as librdkafka reads it: where its partitions end, and its records."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping

from confluent_kafka import Consumer, KafkaException, TopicPartition

from quota.contracts.identity import credential
from tests.support.processes import SECRET

TOPIC, PARTITIONS = "__usage", 4
_WITHIN_S = 240.0
_ANSWERS_WITHIN_S = 20.0


class UsageTopic:
    """By the internal listeners of the brokers, which may come and go."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def ends(self) -> dict[int, int]:
        """By partition."""
        with self._reader() as reader:
            partitions = reader.list_topics(TOPIC, _ANSWERS_WITHIN_S).topics[TOPIC].partitions
            places = (TopicPartition(TOPIC, partition) for partition in partitions)
            return {place.partition: reader.get_watermark_offsets(place, _ANSWERS_WITHIN_S)[1] for place in places}

    def records(self, known: Mapping[int, int], until: Mapping[int, int]) -> list[tuple[int, int, int, bytes]]:
        """(partition, offset, time in ms, value) between the offsets that are known and others. Raises AssertionError."""
        left = {partition: end for partition, end in until.items() if known.get(partition, 0) < end}
        found: list[tuple[int, int, int, bytes]] = []
        with self._reader() as reader:
            reader.assign([TopicPartition(TOPIC, partition, known.get(partition, 0)) for partition in left])
            deadline = time.monotonic() + _WITHIN_S
            while left:
                assert time.monotonic() < deadline, f"{TOPIC} was not read to {left}"
                for message in reader.consume(5000, 0.5):
                    error = message.error()
                    if error is not None:
                        if error.retriable():
                            continue
                        raise KafkaException(error)
                    partition, offset = message.partition(), message.offset()
                    if offset < until[partition]:
                        found.append((partition, offset, message.timestamp()[1], message.value()))
                    if offset + 1 >= until[partition]:
                        left.pop(partition, None)
        return found

    @contextlib.contextmanager
    def _reader(self) -> Iterator[Consumer]:
        reader = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "operator",
                "sasl.password": credential(SECRET, "operator"),
                "group.id": "unused",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        try:
            yield reader
        finally:
            reader.close()
