"""A member by librdkafka: `python -m tests.chaos.members.librdkafka BOOTSTRAP GROUP TOPIC MODE SESSION_MS`."""

from __future__ import annotations

import sys
import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

BATCH = 50
MODES = {
    "eager": {"partition.assignment.strategy": "range"},
    "cooperative": {"partition.assignment.strategy": "cooperative-sticky"},
    "consumer": {"group.protocol": "consumer"},
}


def say(*words: object) -> None:
    print(*words, flush=True)


class Member:
    """Reads, and commits what it has read."""

    def __init__(self, bootstrap: str, group: str, topic: str, mode: str, session_ms: str) -> None:
        times = {} if mode == "consumer" else {"session.timeout.ms": int(session_ms), "heartbeat.interval.ms": 500}
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "client.id": "librdkafka",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "max.poll.interval.ms": max(15_000, int(session_ms)),
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
                **times,
                **MODES[mode],
            }
        )
        self._topic = topic
        self._begun: set[int] = set()
        self._taken: dict[int, tuple[int, int]] = {}  # first and last of each partition, not yet committed
        self._consumer.subscribe([topic], on_assign=self._came, on_revoke=self._went, on_lost=self._went)

    def _came(self, _consumer: Any, places: list[TopicPartition]) -> None:
        say("assigned", time.monotonic(), _list(places))
        self._begun -= {place.partition for place in places}

    def _went(self, _consumer: Any, places: list[TopicPartition]) -> None:
        for place in places:
            self._taken.pop(place.partition, None)  # whoever has it now reads it again
        say("lost", _list(places))

    def run(self) -> None:
        """Until it is killed."""
        while True:
            message = self._consumer.poll(0.05)
            if message is not None and message.error() is None:
                self._take(message.partition(), message.offset())
            taken = sum(last - first + 1 for first, last in self._taken.values())
            if taken >= BATCH or (taken and message is None):
                self._commit()

    def _take(self, partition: int, offset: int) -> None:
        if partition not in self._begun:
            self._begun.add(partition)
            say("begin", partition, offset)
        first, _ = self._taken.get(partition, (offset, offset))
        self._taken[partition] = first, offset

    def _commit(self) -> None:
        taken, self._taken = self._taken, {}
        for partition, (first, last) in taken.items():
            say("got", partition, first, last)
        asked = time.monotonic()
        offsets = [TopicPartition(self._topic, partition, last + 1) for partition, (_, last) in taken.items()]
        try:
            answered = self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            say("refused", error.args[0].name())
            return
        for place in answered:
            if place.error is None:
                say("committed", asked, place.partition, place.offset)
            else:
                say("refused", place.error.name())


def _list(places: list[TopicPartition]) -> str:
    return ",".join(str(place.partition) for place in places)


if __name__ == "__main__":
    Member(*sys.argv[1:]).run()
