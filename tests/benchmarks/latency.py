"""From `produce()` to the consumer's hands, in milliseconds: librdkafka on both ends, linger 0, a steady rate.

Producer and consumer are processes of their own. Each record carries the moment it was made, by the machine's monotonic
clock; so what was measured can be told apart by time, too.
"""

from __future__ import annotations

import multiprocessing
import struct
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Self

from confluent_kafka import Consumer, Producer, TopicPartition

_STAMP = struct.Struct(">q")
_PADDING = bytes(1024 - _STAMP.size)
_WARM_S = 1.0
_PATIENCE_S = 60.0
_QUIET = {"log_level": 0}


class Sample(NamedTuple):
    """One record."""

    made_s: float  # monotonic
    took_ms: float


def end_to_end(bootstrap: str, topic: str, rate: int, seconds: float, *, acks: str = "1") -> tuple[float, float]:
    """(median, 99th percentile) in ms of records that were made after the first second."""
    with SteadyTraffic(bootstrap, topic, rate, acks=acks) as traffic:
        time.sleep(_WARM_S + seconds)
        samples = traffic.stop()[int(rate * _WARM_S) :]
    return percentile(samples, 0.5), percentile(samples, 0.99)


def acknowledged(bootstrap: str, topic: str, rate: int, seconds: float) -> tuple[float, float]:
    """(median, 99th percentile) in ms from `produce()` to the acknowledgement of all replicas in sync, without a consumer."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": "all", **_QUIET})
    samples: list[Sample] = []

    def taken(made_s: float) -> Callable[[Any, Any], None]:
        def done(error: Any, _message: Any) -> None:
            assert error is None, error
            samples.append(Sample(made_s, (time.monotonic() - made_s) * 1000))

        return done

    producer.list_topics(topic, timeout=10)
    began, number = time.monotonic(), 0
    while (now := time.monotonic()) < began + _WARM_S + seconds:
        due = began + number / rate
        if now < due:
            producer.poll(due - now)
        else:
            producer.produce(topic, _PADDING, partition=0, on_delivery=taken(now))
            number += 1
    producer.flush(30)
    counted = [sample for sample in samples if sample.made_s > began + _WARM_S]
    return percentile(counted, 0.5), percentile(counted, 0.99)


def percentile(samples: list[Sample], share: float) -> float:
    """In ms."""
    taken = sorted(sample.took_ms for sample in samples)
    return taken[min(len(taken) - 1, int(len(taken) * share))]


class SteadyTraffic:
    """A producer and a consumer of one partition, from entering the context until `stop`."""

    def __init__(self, bootstrap: str, topic: str, rate: int, *, acks: str = "1") -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._ends = context.Event()
        made = context.Value("q", -1, lock=False)
        self._reader = context.Process(target=_read, args=(bootstrap, topic, made, theirs), daemon=True)
        self._writer = context.Process(
            target=_write, args=(bootstrap, topic, rate, acks, self._ends, made), daemon=True
        )

    def __enter__(self) -> Self:
        self._reader.start()
        assert self._pipe.poll(30), "the consumer did not start"
        self._pipe.recv()
        self._writer.start()
        return self

    def stop(self) -> list[Sample]:
        """All records, as they came."""
        self._ends.set()
        assert self._pipe.poll(2 * _PATIENCE_S), "records are missing"
        return [Sample(made / 1e9, took / 1e6) for made, took in self._pipe.recv()]

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        for process in (self._writer, self._reader):
            process.join(10)
            process.kill()


def _write(bootstrap: str, topic: str, rate: int, acks: str, ends: Any, made: Any) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": acks, **_QUIET})
    producer.list_topics(topic, timeout=10)
    began, number = time.monotonic_ns(), 0
    while not ends.is_set():
        due = began + number * 10**9 // rate
        while (now := time.monotonic_ns()) < due:
            if due - now > 200_000:
                time.sleep((due - now - 100_000) / 1e9)
        producer.produce(topic, _STAMP.pack(time.monotonic_ns()) + _PADDING, partition=0)
        number += 1
        if number % 50 == 0:
            producer.poll(0)
    producer.flush(30)
    made.value = number


def _read(bootstrap: str, topic: str, made: Any, pipe: Any) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "latency", "fetch.wait.max.ms": 500, **_QUIET})
    end = consumer.get_watermark_offsets(TopicPartition(topic, 0), 10)[1]
    consumer.assign([TopicPartition(topic, 0, end)])
    consumer.poll(0.5)
    pipe.send("ready")
    taken: list[tuple[int, int]] = []
    last = time.monotonic()
    while not 0 <= made.value <= len(taken) and time.monotonic() - last < _PATIENCE_S:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            last, stamp = time.monotonic(), _STAMP.unpack_from(message.value())[0]
            taken.append((stamp, time.monotonic_ns() - stamp))
    assert len(taken) == made.value, "records are missing"
    pipe.send(taken)
    consumer.close()
