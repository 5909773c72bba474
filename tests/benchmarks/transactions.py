"""``python -m tests.benchmarks.transactions``: what transactions cost, beside Apache Kafka.

    python -m tests.benchmarks.transactions [--rounds 3] [--seconds 5] [--alone]

One broker each, clients by librdkafka. *Small*: transactions of 100 records of 100 bytes over four partitions, one after the
other; how many a second, and how long the commits took. *Copied*: the same, of what was read as a member of a group, the offsets
sent with them. *Large*: transactions of 16 MiB in records of 1 KiB, every fourth of them aborted, and a reader of what was
committed. MB/s, and seconds of the broker's processor. Medians of the rounds and spread; var/reports/transactions.json.
`--alone`: without Apache Kafka.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.benchmarks.apache import ApacheRig
from tests.benchmarks.report import Figures, keep, progress, table
from tests.benchmarks.rig import Rig

REPORT = Path("var/reports/transactions.json")
PARTITIONS = 4
RECORDS, SMALL = 100, bytes(100)
LARGE, LARGE_RECORD = 16 * 2**20, bytes(1024)
ABORTED_EVERY = 4
LIMIT_S = 30.0
_WARM_UP_S = 3.0
_LARGE_TRANSACTIONS = 12


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table, write the figures."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.transactions", description="What transactions cost."
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="of small transactions, in a round")
    parser.add_argument("--alone", action="store_true", help="without Apache Kafka")
    options = parser.parse_args(arguments)
    say, figures = progress(), Figures()
    for number in range(options.rounds):
        for make in (Rig,) if options.alone else (Rig, ApacheRig):
            with make() as server:
                _Round(server, figures).measure(options.seconds)
            say(f"round {number + 1}: {server.name}")
    rows = figures.rows()
    print(table(rows))
    keep(REPORT, {"options": vars(options), "figures": rows})
    return 0


class _Round:
    """One server's."""

    def __init__(self, server: Any, figures: Figures) -> None:
        self._server, self._figures = server, figures
        host, port = server.address()
        self._common = {"bootstrap.servers": f"{host}:{port}", "log_level": 0}

    def measure(self, seconds: float) -> None:
        for topic in ("small", "copied", "large"):
            self._server.topic(topic, PARTITIONS)
        producer = self._producer("small")
        self._small(producer, _WARM_UP_S)  # connections and code that are new
        self._told("small", self._small(producer, seconds))
        self._told("copied", self._copied(seconds))
        self._large()

    def _producer(self, name: str) -> Producer:
        producer = Producer(
            {
                **self._common,
                "transactional.id": name,
                "linger.ms": 1,
                "batch.size": 1_000_000,
                "queue.buffering.max.kbytes": 1_000_000,
                "queue.buffering.max.messages": 1_000_000,
            }
        )
        producer.init_transactions(LIMIT_S)
        return producer

    def _told(self, what: str, taken: tuple[list[float], float, float]) -> None:
        commits, seconds, cpu_s = taken
        self._add(f"{what} transactions, /s", len(commits) / seconds)
        self._add(f"{what} transactions, commit p50 ms", sorted(commits)[len(commits) // 2] * 1000)
        self._add(f"{what} transactions, commit p99 ms", sorted(commits)[int(len(commits) * 0.99)] * 1000)
        self._add(f"{what} transactions, broker's CPU-ms", cpu_s / len(commits) * 1000)

    def _add(self, figure: str, value: float) -> None:
        self._figures.add(figure, self._server.name, value)

    def _small(self, producer: Producer, seconds: float) -> tuple[list[float], float, float]:
        def one() -> None:
            for number in range(RECORDS):
                producer.produce("small", SMALL, partition=number % PARTITIONS)

        return self._one_after_the_other(producer, seconds, one)

    def _copied(self, seconds: float) -> tuple[list[float], float, float]:
        producer = self._producer("copier")
        consumer = Consumer(
            {
                **self._common,
                "group.id": "copiers",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        consumer.subscribe(["small"])

        def one() -> None:
            messages: list[Any] = []
            while not messages:
                messages = [message for message in consumer.consume(RECORDS, 1.0) if message.error() is None]
            for message in messages:
                producer.produce("copied", message.value(), partition=message.partition())
            behind = {message.partition(): message.offset() + 1 for message in messages}
            offsets = [TopicPartition("small", partition, offset) for partition, offset in behind.items()]
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), LIMIT_S)

        self._one_after_the_other(producer, 1.0, one)  # the group comes to rest
        taken = self._one_after_the_other(producer, seconds, one)
        consumer.close()
        return taken

    def _one_after_the_other(
        self, producer: Producer, seconds: float, one: Callable[[], None]
    ) -> tuple[list[float], float, float]:
        """How long each commit took, in how many seconds, and the broker's CPU seconds."""
        commits: list[float] = []
        before, began = self._server.cpu_s(), time.monotonic()
        while time.monotonic() < began + seconds:
            producer.begin_transaction()
            one()
            asked = time.monotonic()
            producer.commit_transaction(LIMIT_S)
            commits.append(time.monotonic() - asked)
        return commits, time.monotonic() - began, self._server.cpu_s() - before

    def _large(self) -> None:
        producer = self._producer("large")
        before, began = self._server.cpu_s(), time.monotonic()
        for number in range(_LARGE_TRANSACTIONS):
            producer.begin_transaction()
            for record in range(LARGE // len(LARGE_RECORD)):
                producer.produce("large", LARGE_RECORD, partition=record % PARTITIONS)
            if number % ABORTED_EVERY == 0:
                producer.flush(LIMIT_S)  # an abort throws away what was not sent
                producer.abort_transaction(LIMIT_S)
            else:
                producer.commit_transaction(LIMIT_S)
        self._rates(
            "large, written", _LARGE_TRANSACTIONS * LARGE, time.monotonic() - began, self._server.cpu_s() - before
        )
        committed = _LARGE_TRANSACTIONS - -(-_LARGE_TRANSACTIONS // ABORTED_EVERY)
        self._read(committed * (LARGE // len(LARGE_RECORD)))

    def _read(self, records: int) -> None:
        consumer = Consumer(
            {
                **self._common,
                "group.id": "nobody",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "fetch.message.max.bytes": 8 * 2**20,
                "queued.max.messages.kbytes": 512 * 1024,
            }
        )
        consumer.assign([TopicPartition("large", partition, 0) for partition in range(PARTITIONS)])
        read, before, began = 0, self._server.cpu_s(), time.monotonic()
        while read < records:
            read += sum(message.error() is None for message in consumer.consume(10_000, 1.0))
            assert time.monotonic() < began + 4 * LIMIT_S, f"{read} of {records} records were read"
        took_s, cpu_s = time.monotonic() - began, self._server.cpu_s() - before
        consumer.close()
        assert read == records, f"{read} records were read, {records} are committed"
        self._rates("large, read committed", records * len(LARGE_RECORD), took_s, cpu_s)

    def _rates(self, what: str, size: int, seconds: float, cpu_s: float) -> None:
        self._add(f"{what}, MB/s", size / 1e6 / seconds)
        self._add(f"{what}, broker's CPU-s/GB", cpu_s / (size / 1e9))


if __name__ == "__main__":
    sys.exit(main())
