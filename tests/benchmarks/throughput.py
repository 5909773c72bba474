"""MB/s and CPU seconds per GB of producing and consuming records of 1 KiB in batches of a given size."""

from __future__ import annotations

import os

from tests.benchmarks.consume import RawConsumer
from tests.benchmarks.librdkafka import BulkProducer
from tests.benchmarks.server import Server

RECORD_BYTES = 1024
PARTITIONS = 3
FETCH_BYTES = 4 * 2**20


def produce(server: Server, topic: str, batch_bytes: int, total_bytes: int, *, acks: str = "1") -> tuple[float, float]:
    """(MB/s, CPU-s per GB) of producing `total_bytes`, by librdkafka."""
    producer = BulkProducer(
        server.bootstrap,
        topic,
        {
            "acks": acks,
            "linger.ms": "50",
            "batch.size": str(batch_bytes),
            "batch.num.messages": "1000000",
            "message.max.bytes": "4000000",
            "queue.buffering.max.messages": "400000",
            "queue.buffering.max.kbytes": "600000",
        },
    )
    count = total_bytes // RECORD_BYTES
    payload = os.urandom(RECORD_BYTES)
    producer.send(payload, 20_000, PARTITIONS)  # connections, first metadata, first pages
    before = server.cpu_s()
    seconds = producer.send(payload, count, PARTITIONS, run=max(1, batch_bytes // RECORD_BYTES))
    used = server.cpu_s() - before
    producer.close()
    return total_bytes / 1e6 / seconds, used / (total_bytes / 1e9)


def consume(server: Server, topic: str, total_bytes: int) -> tuple[float, float]:
    """(MB/s, CPU-s per GB) of fetching back nine tenths of it from one broker, 4 MiB at a time."""
    seconds = used = got = 0.0
    for partition in range(PARTITIONS):
        consumer = RawConsumer(server.address(), topic, partition)
        share = total_bytes // PARTITIONS * 9 // 10
        before = server.cpu_s()
        seconds += consumer.drain(share, FETCH_BYTES)
        used += server.cpu_s() - before
        got += share
        consumer.close()
    return got / 1e6 / seconds, used / (got / 1e9)
