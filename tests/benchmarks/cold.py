"""``python -m tests.benchmarks.cold``: does a tenant that reads old data slow its neighbours down?

One broker with its logs on a real disk, two tenants. One has written `--gigabytes` and nobody has read them since; the
other produces and consumes at a steady rate all the time, and the way of each of its records is timed (`latency`). In
every round the broker is started anew and all of its files are dropped from the page cache, so that nothing of the first
tenant's logs and indexes is in memory. The neighbour's records are timed while the reader

    cold         reads all of it, from the disk
    warm         reads the beginning again, at that rate: what the same traffic costs without the disk
    quiet        does nothing
    scattered    reads here and there, from the disk, after another start

`steady` is the 99th percentile of those records that were under way while the machine ran: one that works beyond its share
of its host is stopped as a whole, and reading 10 GB at full speed is such work (`pauses`; their sum stands beside it).
What the broker itself read from the disk, and how often it waited for a page of a mapped file, stands beside it. Medians
of the rounds and spread; `var/reports/cold.json`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from tests.benchmarks import cold_reader
from tests.benchmarks.latency import Sample, SteadyTraffic, percentile
from tests.benchmarks.librdkafka import BulkProducer
from tests.benchmarks.pauses import Pause, Pauses, may_watch, outside
from tests.benchmarks.report import Say, keep, progress
from tests.benchmarks.rig import Rig
from tests.benchmarks.server import create_topic
from tests.benchmarks.throughput import RECORD_BYTES

REPORT = Path("var/reports/cold.json")
OLD, BUSY = "old", "busy"
PARTITIONS = 4
WARM_SHARE = 0.1
"""Of each partition: what "warm" reads again and again."""
SETTLE_S = 2.0
_IN_MEMORY = ("tmpfs", "ramfs")
_FIGURES = (
    "p50_ms",
    "p99_ms",
    "steady_p99_ms",
    "max_ms",
    "paused_ms",
    "reader_mb_per_s",
    "from_disk_mb",
    "page_waits",
    "records",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table, write the figures."""
    options = _options(arguments)
    say = progress()
    with Rig({"default_replication_factor": 1}, parent=options.directory) as rig:
        bench = _Bench(rig, options, say)
        bench.fill()
        rounds = [bench.round(f"round {number + 1} of {options.rounds}, ") for number in range(options.rounds)]
    phases = {phase: _summary([entry[phase] for entry in rounds]) for phase in rounds[0]}
    report = {"options": vars(options) | {"directory": str(options.directory)}, "phases": phases, "rounds": rounds}
    print(_table(phases))
    keep(REPORT, report)
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.cold", description="Neighbours of a cold reader.")
    parser.add_argument("--gigabytes", type=float, default=10.0, help="of old data")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=int, default=1_000, help="records a second of the neighbour")
    parser.add_argument("--reader-mb", type=float, help="a second, at most, of who reads it all; without, what it can")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each phase but the first, which reads all")
    parser.add_argument("--directory", type=Path, default=Path("var"), help="on a disk; removed again")
    options = parser.parse_args(arguments)
    options.directory.mkdir(parents=True, exist_ok=True)
    options.directory = options.directory.resolve()
    if not may_watch():
        parser.error("telling pauses of the machine apart needs the right to real-time priority")
    kind = _file_system(options.directory)
    if kind in _IN_MEMORY:
        parser.error(f"{options.directory} is on {kind}: --directory has to be on a disk")
    return options


def _file_system(directory: Path) -> str:
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    return max(((point, kind) for point, kind in mounts if directory.is_relative_to(point)), key=lambda m: len(m[0]))[1]


class _Bench:
    """The broker, its two tenants, and what is done to them."""

    def __init__(self, rig: Rig, options: argparse.Namespace, say: Say) -> None:
        self._rig, self._options, self._say = rig, options, say
        self._neighbour = rig.add_tenant().bootstrap
        self._ends: list[int] = []

    def fill(self) -> None:
        """The old data."""
        self._rig.topic(OLD, PARTITIONS)
        create_topic(self._neighbour, BUSY, 1)
        size = self._options.gigabytes * 1e9
        settings = {"linger.ms": "50", "batch.size": "131072", "queue.buffering.max.messages": "200000"}
        producer = BulkProducer(self._rig.bootstrap, OLD, settings)
        parts = max(1, round(size / 1e9))
        for part in range(parts):
            producer.send(os.urandom(RECORD_BYTES), int(size / parts) // RECORD_BYTES, PARTITIONS)
            self._say(f"written: {part + 1} of {parts} GB")
        producer.close()
        consumer = Consumer({"bootstrap.servers": self._rig.bootstrap, "group.id": "ends"})
        self._ends = [consumer.get_watermark_offsets(TopicPartition(OLD, n), 10)[1] for n in range(PARTITIONS)]
        consumer.close()

    def round(self, prefix: str) -> dict[str, dict[str, float]]:
        """The figures of each phase."""
        seconds, found = self._options.seconds, {}
        self._start_anew()
        with Pauses() as pauses, SteadyTraffic(self._neighbour, BUSY, self._options.rate) as traffic:
            time.sleep(SETTLE_S)
            most = self._options.reader_mb
            phases = {"cold": self._phase(cold_reader.whole, self._ends, most * 1e6 if most else None, None)}
            rate = phases["cold"]["reader_mb_per_s"] * 1e6
            beginnings = [int(end * WARM_SHARE) for end in self._ends]
            self._warm()
            phases["warm"] = self._phase(cold_reader.whole, beginnings, rate, seconds)
            phases["quiet"] = self._phase(None, [], None, seconds)
            found.update(self._timed(phases, traffic.stop(), pauses.stop(), prefix))
        self._start_anew()
        with Pauses() as pauses, SteadyTraffic(self._neighbour, BUSY, self._options.rate) as traffic:
            time.sleep(SETTLE_S)
            phases = {"scattered": self._phase(cold_reader.scattered, self._ends, None, seconds)}
            return found | self._timed(phases, traffic.stop(), pauses.stop(), prefix)

    def _start_anew(self) -> None:
        """The broker knows nothing, and nothing of its files is in memory."""
        self._rig.stop_brokers()
        for file in self._rig.directory.glob("data-*/*/*"):
            fd = os.open(file, os.O_RDONLY)
            os.fsync(fd)  # what is dirty cannot be dropped
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)
        self._rig.start_brokers()

    def _warm(self) -> None:
        """Have the beginnings in memory: the broker reads past the page cache."""
        share = int(self._options.gigabytes * 1e9 / PARTITIONS * WARM_SHARE * 1.1)
        for file in self._rig.directory.glob(f"data-*/*{OLD}*/{0:020}.log"):
            with file.open("rb") as log:
                left = share
                while left > 0 and (data := log.read(min(left, 2**20))):
                    left -= len(data)

    def _phase(
        self, read: cold_reader.Reading | None, ends: list[int], rate: float | None, seconds: float | None
    ) -> dict[str, float]:
        """When it was and what the broker did meanwhile; the reader works in a process of its own."""
        disk, waits, began = self._from_disk_mb(), self._page_waits(), time.monotonic()
        got = 0.0
        if read is None:
            time.sleep(seconds or 0.0)
        else:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                got = pool.apply(read, (self._rig.address(), OLD, ends, rate, seconds))
        return {
            "from": began,
            "to": time.monotonic(),
            "reader_mb_per_s": round(got / 1e6, 1),
            "from_disk_mb": round(self._from_disk_mb() - disk, 1),
            "page_waits": self._page_waits() - waits,
        }

    def _from_disk_mb(self) -> float:
        """By the broker and by the processes that read for it."""
        return sum(_from_disk_mb(pid) for pid in [self._rig.pid(), *_children(self._rig.pid())])

    def _page_waits(self) -> int:
        """Major faults: the loop stood still while a page of a mapped file came from the disk."""
        return int(Path(f"/proc/{self._rig.pid()}/stat").read_text().rpartition(")")[2].split()[9])

    def _timed(
        self, phases: dict[str, dict[str, float]], samples: list[Sample], pauses: list[Pause], prefix: str
    ) -> dict[str, dict[str, float]]:
        """With the neighbour's latencies, of what it made during each phase."""
        for name, phase in phases.items():
            began, ended = phase.pop("from"), phase.pop("to")
            those = [sample for sample in samples if began <= sample.made_s < ended]
            phase["records"] = len(those)
            for figure, share in (("p50_ms", 0.5), ("p99_ms", 0.99), ("max_ms", 1.0)):
                phase[figure] = round(percentile(those, share), 3)
            phase["steady_p99_ms"] = round(percentile(outside(those, pauses), 0.99), 3)
            within = [pause for pause in pauses if began <= pause.began_s < ended]
            phase["paused_ms"] = round(sum(pause.ended_s - pause.began_s for pause in within) * 1000, 1)
            self._say(
                f"{prefix}{name}: neighbour p50 {phase['p50_ms']:.2f} ms, p99 {phase['p99_ms']:.2f} ms, "
                f"steady {phase['steady_p99_ms']:.2f} ms (paused {phase['paused_ms']:.0f} ms); reader "
                f"{phase['reader_mb_per_s']:.0f} MB/s, {phase['from_disk_mb']:.0f} MB from the disk"
            )
        return phases


def _from_disk_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("read_bytes")) / 1e6


def _children(pid: int) -> list[int]:
    """Of all of its threads."""
    return [int(child) for file in Path(f"/proc/{pid}/task").glob("*/children") for child in file.read_text().split()]


def _summary(rounds: list[dict[str, float]]) -> dict[str, dict[str, Any]]:
    return {
        figure: {
            "median": statistics.median(entry[figure] for entry in rounds),
            "spread": [min(entry[figure] for entry in rounds), max(entry[figure] for entry in rounds)],
        }
        for figure in _FIGURES
    }


def _table(phases: dict[str, dict[str, dict[str, Any]]]) -> str:
    lines = [f"{'':<18}" + "".join(f"{phase:>12}{'spread':>18}" for phase in phases)]
    for figure in _FIGURES:
        cells = [phase[figure] for phase in phases.values()]
        spreads = [f"{cell['spread'][0]:g} - {cell['spread'][1]:g}" for cell in cells]
        columns = (f"{cell['median']:>12g}{text:>18}" for cell, text in zip(cells, spreads, strict=True))
        lines.append(f"{figure:<18}" + "".join(columns))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
