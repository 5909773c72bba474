"""``python -m tests.benchmarks.compaction``: does compaction beside it slow a producer down?

One broker. A table is filled; then a producer sends to another topic at a steady rate, and the latency of each of its
records is taken (from `produce()` to the acknowledgement, by librdkafka itself): first while nothing is compacted, then
while the cleaner's process rewrites the table as fast as it can. Only records that were sent while that process lived
count for the second figure. Several rounds, medians and spread; `var/reports/compaction.json`.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.benchmarks.report import keep
from tests.benchmarks.rig import Rig

REPORT = Path("var/reports/compaction.json")
SETTINGS = {"log_cleaner_backoff_ms": 200, "default_replication_factor": 1}
NEVER, AT_ONCE = "1.0", "0.1"
_VALUE = random.Random(1).randbytes(1024)
_QUIET = {"log_level": 0}


class Watch:
    """When a process of the cleaner lived."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._moments: list[tuple[float, bool]] = []
        self._stopped = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def is_busy(self) -> bool:
        """As last looked at."""
        return bool(self._moments) and self._moments[-1][1]

    def _look(self) -> bool:
        for task in Path(f"/proc/{self._pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                for child in (task / "children").read_text().split():
                    if b"dataplane.apart" in Path(f"/proc/{child}/cmdline").read_bytes():
                        return True
        return False

    def _run(self) -> None:
        while not self._stopped:
            self._moments.append((time.monotonic(), self._look()))
            time.sleep(0.02)

    def stop(self) -> list[tuple[float, bool]]:
        self._stopped = True
        self._thread.join()
        return self._moments


def fill(bootstrap: str, topic: str, megabytes: int, keys: int, seed: int) -> None:
    """Write to the table, uncompressed."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "batch.size": 200_000, "acks": "1", **_QUIET})
    chance = random.Random(seed)
    for _ in range(megabytes * 1024):
        while True:
            try:
                producer.produce(topic, _VALUE, f"key-{chance.randrange(keys)}".encode(), partition=0)
                break
            except BufferError:
                producer.poll(0.05)
    assert producer.flush(60) == 0


def measure(bootstrap: str, topic: str, rate: int, until: Any) -> list[tuple[float, float]]:
    """(when sent, latency in ms) of records at a steady rate, as long as `until` says no."""
    taken: list[tuple[float, float]] = []

    def delivered(error: Any, message: Any) -> None:
        assert error is None, error
        taken.append((time.monotonic() - message.latency(), message.latency() * 1000))

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": "all", **_QUIET})
    producer.list_topics(topic, timeout=10)
    began, number = time.monotonic(), 0
    while not until(time.monotonic() - began):
        due = began + number / rate
        producer.poll(max(0.0, due - time.monotonic()))
        if time.monotonic() >= due:
            producer.produce(topic, _VALUE, partition=0, on_delivery=delivered)
            number += 1
    assert producer.flush(30) == 0
    return [sample for sample in taken if sample[0] > began + 1.0]  # the first second warms up


def clean_when(bootstrap: str, topic: str, ratio: str) -> None:
    """From which dirty ratio on the table is compacted."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **_QUIET})
    entry = ConfigEntry("min.cleanable.dirty.ratio", ratio, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(20)


def percentile(samples: list[tuple[float, float]], share: float) -> float:
    values = sorted(latency for _, latency in samples)
    return round(values[min(len(values) - 1, int(len(values) * share))], 3)


def one_round(rig: Rig, bootstrap: str, options: argparse.Namespace, number: int) -> dict[str, float]:
    clean_when(bootstrap, "table", NEVER)
    fill(bootstrap, "table", options.megabytes, options.keys, number)
    time.sleep(2)
    quiet = measure(bootstrap, "orders", options.rate, lambda seconds: seconds > options.seconds)
    watch = Watch(rig.pid())
    clean_when(bootstrap, "table", AT_ONCE)
    seen = [False]

    def ended(seconds: float) -> bool:
        busy = watch.is_busy()
        seen[0] = seen[0] or busy
        return seconds > 120 or (seen[0] and not busy and seconds > 3)

    both = measure(bootstrap, "orders", options.rate, ended)
    moments = watch.stop()
    busy = [at for at, is_busy in moments if is_busy]
    assert busy, "nothing was compacted"
    beside = [sample for sample in both if busy[0] <= sample[0] <= busy[-1]]
    return {
        "quiet_p50_ms": percentile(quiet, 0.5),
        "quiet_p99_ms": percentile(quiet, 0.99),
        "beside_p50_ms": percentile(beside, 0.5),
        "beside_p99_ms": percentile(beside, 0.99),
        "beside_max_ms": percentile(beside, 1.0),
        "beside_records": len(beside),
        "compaction_s": round(busy[-1] - busy[0], 2),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=600)
    parser.add_argument("--keys", type=int, default=50_000)
    parser.add_argument("--rate", type=int, default=2_000)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    with Rig(dict(SETTINGS)) as rig:
        bootstrap = rig.bootstrap
        admin = AdminClient({"bootstrap.servers": bootstrap, **_QUIET})
        table = {"cleanup.policy": "compact", "segment.bytes": str(64 * 2**20)}
        topics = [NewTopic("table", 1, 1, config=table), NewTopic("orders", 1, 1)]
        for future in admin.create_topics(topics).values():
            future.result(20)
        rounds = []
        for number in range(options.rounds):
            rounds.append(one_round(rig, bootstrap, options, number))
            print(json.dumps(rounds[-1]), flush=True)
    medians = {name: statistics.median(entry[name] for entry in rounds) for name in rounds[0]}
    report = {"options": vars(options), "medians": medians, "rounds": rounds}
    print(json.dumps(medians, indent=2))
    keep(REPORT, report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
