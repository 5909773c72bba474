"""From `produce()` to the consumer's hands, in milliseconds: librdkafka on both ends, linger 0, a steady rate.

The consumer is a process of its own. Each record carries the moment it was made, by the machine's monotonic clock.
"""

from __future__ import annotations

import multiprocessing
import struct
import time
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

_STAMP = struct.Struct(">q")
_PADDING = bytes(1024 - _STAMP.size)
_WARM_S = 1.0
_QUIET = {"log_level": 0}


def end_to_end(bootstrap: str, topic: str, rate: int, seconds: float, *, acks: str = "1") -> tuple[float, float]:
    """(median, 99th percentile) in ms of records that were made after the first second."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    count = int(rate * (seconds + _WARM_S))
    reader = context.Process(target=_read, args=(bootstrap, topic, count, theirs), daemon=True)
    reader.start()
    assert ours.poll(30), "the consumer did not start"
    ours.recv()
    _write(bootstrap, topic, rate, count, acks)
    assert ours.poll(60), "records are missing"
    taken = sorted(ours.recv()[int(rate * _WARM_S) :])
    reader.join(10)
    return taken[len(taken) // 2] / 1e6, taken[len(taken) * 99 // 100] / 1e6


def _write(bootstrap: str, topic: str, rate: int, count: int, acks: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": acks, **_QUIET})
    producer.list_topics(topic, timeout=10)
    began = time.monotonic_ns()
    for number in range(count):
        due = began + number * 10**9 // rate
        while (now := time.monotonic_ns()) < due:
            if due - now > 200_000:
                time.sleep((due - now - 100_000) / 1e9)
        producer.produce(topic, _STAMP.pack(time.monotonic_ns()) + _PADDING, partition=0)
        if number % 50 == 0:
            producer.poll(0)
    producer.flush(30)


def _read(bootstrap: str, topic: str, count: int, pipe: Any) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "latency", "fetch.wait.max.ms": 500, **_QUIET})
    consumer.assign([TopicPartition(topic, 0, 0)])
    consumer.poll(0.5)
    pipe.send("ready")
    taken: list[int] = []
    deadline = time.monotonic() + 120
    while len(taken) < count and time.monotonic() < deadline:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            taken.append(time.monotonic_ns() - _STAMP.unpack_from(message.value())[0])
    pipe.send(taken)
    consumer.close()
