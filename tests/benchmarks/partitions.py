"""What ten thousand partitions cost that nobody uses: start, memory, descriptors, ticks.

    python -m tests.benchmarks.partitions [--partitions 10000] [--directory …]

A data directory is made in a process of its own, closed in order, and opened in another one by the real log manager over
the real file system, with everything that hangs on a log in a broker (`Partition`). Then every log is written to, so that
each of them would like to hold descriptors; the directory is closed again and, as after a kill, opened once more without
the marker of an orderly stop. Figures go to var/reports/partitions.json; the aims are those of issue 5.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from dataplane.clock import SystemClock
from dataplane.config import BrokerConfig, Settings
from dataplane.records.batch import Record, build_batch, read_header
from dataplane.replication.accounting import Accounting
from dataplane.replication.replica.partition import Partition
from dataplane.replication.replica.partition_state import ReplicaRules
from dataplane.replication.upkeep.housekeeping import Housekeeping
from dataplane.storage.directories import CLEAN_SHUTDOWN
from dataplane.storage.files import SystemFiles
from dataplane.storage.log import Log, appending
from dataplane.storage.manager import LogManager
from dataplane.storage.segments.descriptors import DESCRIPTORS_EACH
from dataplane.tasks import Future
from tests.benchmarks.report import keep

PARTITIONS = 10_000
PER_TOPIC = 100
BATCHES = 6
BATCH_RECORDS = 8
RECORD = b"x" * 1024
OPEN_SEGMENTS = 500
START_AIM_S, MEMORY_AIM_KIB = 5.0, 10.0


class HastyFiles(SystemFiles):
    """Syncs nothing: for making the directory, which is not what is measured."""

    def write_file(self, path: str, data: bytes) -> None:
        Path(path).write_bytes(data)

    def sync_directory(self, path: str) -> None:
        pass


class Later:
    """A background door that works when it is told to, so that its work is not in the figures of the loop."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Callable[[], Any], Future[Any]]] = []

    def run(self, work: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        self._waiting.append((work, future))
        return future

    def do_it(self) -> None:
        while self._waiting:
            work, future = self._waiting.pop(0)
            try:
                future.resolve(work())
            except OSError as error:
                future.fail(error)


class Loop:
    """Runs one thing after the other and times each."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        self._soon: deque[Callable[[], None]] = deque()

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._soon.append(callback)

    def measure(self, begin: Callable[[], None]) -> tuple[float, float]:
        """(longest turn, all turns) in ms of the processor: others use the machine, too."""
        self._soon.clear()
        self._soon.append(begin)
        longest = total = 0.0
        while self._soon:
            before = time.thread_time()
            self._soon.popleft()()
            took = time.thread_time() - before
            longest, total = max(longest, took), total + took
        return round(longest * 1e3, 2), round(total * 1e3, 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write the figures. Exit status 1 where an aim is missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--directory", default=None, help="where the data directory is made and removed again")
    parser.add_argument("--phase", choices=("make", "open"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.phase == "make":
        return _make(options.directory, options.partitions)
    if options.phase == "open":
        return _open(options.directory, options.partitions)
    with tempfile.TemporaryDirectory(dir=options.directory, prefix="partitions-") as home:
        _run("make", home, options.partitions)
        figures = json.loads(_run("open", home, options.partitions))
        Path(home, CLEAN_SHUTDOWN).unlink()
        killed = json.loads(_run("open", home, options.partitions))
    figures["after_a_kill_without_syncs"] = {name: killed[name] for name in ("start_s", "start_cpu_s")}
    figures["aims"] = {"start_s": START_AIM_S, "kib_per_partition": MEMORY_AIM_KIB}
    print(json.dumps(figures, indent=1))
    keep(Path("var/reports/partitions.json"), figures)
    return 0 if figures["start_s"] < START_AIM_S and figures["kib_per_partition"] < MEMORY_AIM_KIB else 1


def _run(phase: str, home: str, partitions: int) -> str:
    command = [sys.executable, "-m", __spec__.name, "--phase", phase, "--directory", home]
    return subprocess.run(
        [*command, "--partitions", str(partitions)], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def _manager(home: str, files: SystemFiles, background: Later) -> LogManager:
    settings = Settings(log_open_segments_max=OPEN_SEGMENTS)
    config = BrokerConfig(id=1, data_dirs=(home,), internal=("127.0.0.1", 1), settings=settings)
    return LogManager(files, SystemClock(), background, config)


def _append(log: Log, sequence: int) -> None:
    records = [Record(None, RECORD)] * BATCH_RECORDS
    batch = build_batch(
        records, now_ms=SystemClock().now_ms(), producer_id=7, producer_epoch=0, base_sequence=sequence * BATCH_RECORDS
    )
    appending.stage(log, memoryview(batch), read_header(batch), 0)
    appending.commit(log)


def _make(home: str, partitions: int) -> int:
    os.fsync = os.fdatasync = lambda fd: None  # type: ignore[assignment]
    background = Later()
    manager = _manager(home, HastyFiles(), background)
    manager.open_all()
    for number in range(partitions):
        log = manager.create(
            f"abcdefgh.topic-{number // PER_TOPIC}", number % PER_TOPIC, UUID(int=1 + number // PER_TOPIC)
        )
        for sequence in range(BATCHES):
            _append(log, sequence)
        background.do_it()
    manager.close()
    return 0


def _open(home: str, partitions: int) -> int:
    background = Later()
    if not Path(home, CLEAN_SHUTDOWN).exists():
        os.fsync = os.fdatasync = lambda fd: None  # type: ignore[assignment]  # recovery's work, without the disk's
    manager = _manager(home, SystemFiles(), background)
    gc.collect()
    memory, cpu, began = _resident_kib(), time.process_time(), time.perf_counter()
    manager.open_all()
    figures: dict[str, Any] = {
        "partitions": partitions,
        "log_bytes_each": manager.logs()[0].size_bytes,
        "start_s": round(time.perf_counter() - began, 2),
        "start_cpu_s": round(time.process_time() - cpu, 2),
    }
    gc.collect()
    figures["kib_per_log"] = round((_resident_kib() - memory) / partitions, 2)
    rules = ReplicaRules(1, 10.0, lambda broker_id: True)
    parts = {
        (log.topic, log.partition): Partition(log.topic, log.partition, log.topic_id, log, rules)
        for log in manager.logs()
    }
    gc.collect()
    figures["kib_per_partition"] = round((_resident_kib() - memory) / partitions, 2)
    figures["descriptors_idle"] = _descriptors(home)
    figures["ticks_cpu_ms"] = _ticks(manager, parts, background)
    began = time.perf_counter()
    for log in manager.logs():
        _append(log, BATCHES)
    figures["append_to_each_us"] = round((time.perf_counter() - began) / partitions * 1e6, 1)
    figures["descriptors_all_written"] = _descriptors(home)
    os.fsync = os.fdatasync = lambda fd: None  # type: ignore[assignment]
    background.do_it()
    figures["descriptors_limit"] = OPEN_SEGMENTS * DESCRIPTORS_EACH
    began = time.perf_counter()
    manager.close()
    figures["stop_without_syncs_s"] = round(time.perf_counter() - began, 2)
    print(json.dumps(figures))
    return 0


def _ticks(
    manager: LogManager, parts: dict[tuple[str, int], Partition], background: Later
) -> dict[str, dict[str, float]]:
    """The longest turn that each kind of round takes, and all of its turns together, in ms of the processor."""
    loop = Loop()
    replicas = SimpleNamespace(
        loop=loop,
        logs=manager,
        registry=SimpleNamespace(partitions=lambda: iter(parts.values()), get=lambda topic, index: parts[topic, index]),
        accounting=Accounting(),
        progress=SimpleNamespace(start_moved=lambda partition: None),
    )
    housekeeping = Housekeeping(replicas)  # type: ignore[arg-type]
    housekeeping._timers = dict.fromkeys(("isr", "checkpoint", "retention"), SimpleNamespace())  # as when started
    found = {}
    for name, round_ in (
        ("laggards", housekeeping._look_for_laggards),
        ("first_checkpoint", housekeeping._checkpoint_in_slices),
        ("checkpoint", housekeeping._checkpoint_in_slices),
        ("first_retention", housekeeping._retain_in_slices),
        ("retention", housekeeping._retain_in_slices),
    ):
        longest, total = loop.measure(round_)
        found[name] = {"longest_turn": longest, "all": total}
        background.do_it()
    return found


def _descriptors(home: str) -> int:
    links = (entry.readlink() for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink())
    return sum(str(link).startswith(home) for link in links)


def _resident_kib() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


if __name__ == "__main__":
    sys.exit(main())
