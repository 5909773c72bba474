"""`make bench`: produce and consume, 16 KiB and 128 KiB batches, through a tenant's port of one broker.

CPU seconds per GB are the broker's own, over the whole run. The prototype's column is BROKER.md's (another machine of the
same kind); `floor` is what receiving and writing alone cost here in the same run. Aim: within 1.5 times the prototype.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from tests.benchmarks import floor
from tests.benchmarks.consume import RawConsumer
from tests.benchmarks.librdkafka import BulkProducer
from tests.benchmarks.rig import Rig

RECORD_BYTES = 1024
PARTITIONS = 3
ROUNDS = 3
TOTAL_BYTES = 1_000_000_000
WARM_BYTES = 1_600_000_000
BATCHES = {"16 KiB": 16 * 2**10, "128 KiB": 128 * 2**10}
PROTOTYPE = {  # (MB/s, CPU-s per GB)
    ("produce", "16 KiB"): (651, 0.73),
    ("produce", "128 KiB"): (939, 0.54),
    ("consume", "16 KiB"): (1115, 0.57),
    ("consume", "128 KiB"): (1129, 0.57),
}


def main() -> int:
    """Measure, print a table, write the figures."""
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {text}", flush=True)

    runs: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with Rig() as rig:
        say("the machine's floor on fresh pages: receive and write, nothing else")
        fresh = floor.cpu_s_per_gb(directory=str(rig.directory))
        say(f"{fresh[0]:.2f} CPU-s/GB; touching pages so that they are warm")
        rig.keep_pages_warm(WARM_BYTES)
        base = floor.cpu_s_per_gb(directory=str(rig.directory))
        say(f"the floor on warm pages: {base[0]:.2f} CPU-s/GB, {base[1]:.0f} MB/s")
        idle = rig.resident_mib()
        for number in range(ROUNDS):
            for label, size in BATCHES.items():
                topic = f"bench-{number}-{size}"
                rig.topic(topic, PARTITIONS)
                runs.setdefault(("produce", label), []).append(produce(rig, topic, size))
                runs.setdefault(("consume", label), []).append(consume(rig, topic))
                rig.delete_topic(topic)
                say(f"round {number + 1} of {ROUNDS}, {label}: " + _line(runs, label))
        report = _report(runs, base, fresh, idle, rig)
    print(_table(report))
    file = Path("var/reports/bench.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(report, indent=1))
    print(f"figures: {file}")
    return 0


def produce(rig: Rig, topic: str, batch_bytes: int) -> tuple[float, float]:
    """(MB/s, CPU-s per GB) of producing, acks=1."""
    producer = BulkProducer(
        rig.bootstrap,
        topic,
        {
            "acks": "1",
            "linger.ms": "50",
            "batch.size": str(batch_bytes),
            "batch.num.messages": "1000000",
            "queue.buffering.max.messages": "400000",
            "queue.buffering.max.kbytes": "600000",
        },
    )
    count = TOTAL_BYTES // RECORD_BYTES
    producer.send(os.urandom(RECORD_BYTES), 20_000, PARTITIONS)  # connections, first metadata, first pages
    before = rig.cpu_s()
    seconds = producer.send(os.urandom(RECORD_BYTES), count, PARTITIONS, run=max(1, batch_bytes // RECORD_BYTES))
    used = rig.cpu_s() - before
    producer.close()
    return TOTAL_BYTES / 1e6 / seconds, used / (TOTAL_BYTES / 1e9)


def consume(rig: Rig, topic: str) -> tuple[float, float]:
    """(MB/s, CPU-s per GB) of fetching everything back, 4 MiB at a time."""
    seconds = used = got = 0.0
    for partition in range(PARTITIONS):
        consumer = RawConsumer(("127.0.0.1", rig.port), topic, partition)
        share = TOTAL_BYTES // PARTITIONS * 9 // 10
        before = rig.cpu_s()
        seconds += consumer.drain(share, 4 * 2**20)
        used += rig.cpu_s() - before
        got += share
        consumer.close()
    return got / 1e6 / seconds, used / (got / 1e9)


def _line(runs: dict[tuple[str, str], list[tuple[float, float]]], label: str) -> str:
    parts = []
    for what in ("produce", "consume"):
        rate, cost = runs[(what, label)][-1]
        parts.append(f"{what} {rate:.0f} MB/s, {cost:.2f} CPU-s/GB")
    return "; ".join(parts)


def _report(
    runs: dict[tuple[str, str], list[tuple[float, float]]],
    base: tuple[float, float],
    fresh: tuple[float, float],
    idle: float,
    rig: Rig,
) -> dict[str, Any]:
    rows = []
    for (what, label), values in sorted(runs.items()):
        rates, costs = [v[0] for v in values], [v[1] for v in values]
        rate, cost = statistics.median(rates), statistics.median(costs)
        reference = PROTOTYPE[(what, label)]
        rows.append(
            {
                "what": what,
                "batch": label,
                "mb_per_s": round(rate),
                "mb_per_s_spread": [round(min(rates)), round(max(rates))],
                "cpu_s_per_gb": round(cost, 3),
                "cpu_s_per_gb_spread": [round(min(costs), 3), round(max(costs), 3)],
                "prototype": {"mb_per_s": reference[0], "cpu_s_per_gb": reference[1]},
                "cost_to_prototype": round(cost / reference[1], 2),
                "rate_to_prototype": round(rate / reference[0], 2),
                "cost_to_floor": round(cost / base[0], 2),
            }
        )
    return {
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "kernel": platform.release()},
        "congestion_control": Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip(),
        "log_on_tmpfs": rig.on_tmpfs,
        "record_bytes": RECORD_BYTES,
        "partitions": PARTITIONS,
        "rounds": ROUNDS,
        "floor": {"cpu_s_per_gb": round(base[0], 3), "mb_per_s": round(base[1])},
        "floor_on_fresh_pages": {"cpu_s_per_gb": round(fresh[0], 3), "mb_per_s": round(fresh[1])},
        "resident_mib": {"idle": round(idle, 1), "after": round(rig.resident_mib(), 1)},
        "rows": rows,
    }


def _table(report: dict[str, Any]) -> str:
    head = f"{'':<18}{'MB/s':>8}{'CPU-s/GB':>10}{'prototype':>16}{'cost ratio':>12}{'to floor':>10}"
    lines = [head]
    for row in report["rows"]:
        reference = row["prototype"]
        lines.append(
            f"{row['what'] + ' ' + row['batch']:<18}{row['mb_per_s']:>8}{row['cpu_s_per_gb']:>10.2f}"
            f"{reference['mb_per_s']:>8}{reference['cpu_s_per_gb']:>8.2f}"
            f"{row['cost_to_prototype']:>12.2f}{row['cost_to_floor']:>10.2f}"
        )
    floor_ = report["floor"]
    memory = report["resident_mib"]
    lines.append(f"{'floor':<18}{floor_['mb_per_s']:>8}{floor_['cpu_s_per_gb']:>10.2f}")
    floor_ = report["floor_on_fresh_pages"]
    lines.append(f"{'  on fresh pages':<18}{floor_['mb_per_s']:>8}{floor_['cpu_s_per_gb']:>10.2f}")
    lines.append(f"resident: {memory['idle']} MiB idle, {memory['after']} MiB after")
    lines.append(f"congestion control {report['congestion_control']}, log on tmpfs: {report['log_on_tmpfs']}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
