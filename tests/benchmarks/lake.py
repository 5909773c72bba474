"""``make lake``: a topic loaded into a Delta table, beside a plain consumer and the disk, killed, and compared.

    python -m tests.benchmarks.lake [--gigabytes 10] [--kills 20] [--directory var] [--master 'local[2]']

One broker of ours with its log and the lake below `--directory`. A topic of eight partitions with records of 1 KiB that are all
different is written in transactions, of which each tenth is aborted; a compacted topic of a twentieth of the size has few keys.

    disk         MB/s of one writer that writes and syncs a gigabyte where the lake will be
    consumer     MB/s of librdkafka that reads the topic, read_committed
    load         the program as people start it, from the start of its process to its end
    again        the same once more: it must load nothing
    range        a tenth of the offsets, deleted from the table before: it must be whole after
    compacted    the compacted topic
    cluster      the topic into another table, by a standalone Spark: a Master and two Workers, each with a folder of its own
    audit        `mirror_audit` of the topic beside itself: it reads it twice
    killed       into another table, with SIGKILL to the program and its JVM at random moments, started again each time

After each load `lake.verify` compares counts and checksums of every partition, by another reader than the one that loaded
(librdkafka beside Spark's Kafka source). A table at the end; `var/reports/lake.json`; exit status 1 where something differs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from controlplane.env import ROOT
from controlplane.stack.process import dies_with_parent
from tests.benchmarks.mirror import kill_points
from tests.benchmarks.numbered import NumberedRecords, produce
from tests.benchmarks.report import Say, keep, progress
from tests.benchmarks.rig import Rig
from tests.support.spark_cluster import WORKERS, SparkCluster

REPORT = Path("var/reports/lake.json")
TOPIC, TABLE = "events", "accounts"
PARTITIONS = 8
RECORD_BYTES = 1024
TRANSACTION = 10_000
"""Records of one transaction; each tenth of them is aborted."""
ABORTED_EACH = 10
COMPACTED_SHARE = 0.05
KEYS = 1000
RANGE_SHARE = 0.1
NOTHING = "nothing to load: the table has all that the topic has"
COMMITS = 60
"""Of the load that is killed: a kill costs what was read since the last one."""
_DISK_BYTES = 10**9
_LOOK_S, _BATCH_S = 0.1, 0.1
_SILENT_S = 30.0
_SAY_S = 15.0
_LOAD_WITHIN_S = 3600.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table, write the figures."""
    options = _options(arguments)
    say = progress()
    with Rig({"default_replication_factor": 1, "log_cleaner_backoff_ms": 200}, parent=options.directory) as rig:
        figures = _Bench(rig, options, say).run()
    print(table(figures))
    keep(REPORT, {"options": vars(options) | {"directory": str(options.directory)}, **figures})
    return 0 if all(each["is_equal"] for each in figures["loads"].values()) else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make lake ARGS=", description="Loads into a lake, measured and killed.")
    parser.add_argument("--gigabytes", type=float, default=1.0, help="of what the topic holds for readers")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1, help="of the moments at which it is killed")
    parser.add_argument("--master", default="local[2]", help="of Spark")
    parser.add_argument("--directory", type=Path, default=Path("var"), help="for log and lake; removed again")
    options = parser.parse_args(arguments)
    options.directory.mkdir(parents=True, exist_ok=True)
    options.directory = options.directory.resolve()
    return options


class _Bench:
    """One run."""

    def __init__(self, rig: Rig, options: argparse.Namespace, say: Say) -> None:
        self._rig, self._options, self._say = rig, options, say
        self._lake = rig.directory / "lake"
        self._lake.mkdir()
        self._master = {"SPARK_MASTER": options.master}
        self._records = NumberedRecords(RECORD_BYTES)
        self._count = max(TRANSACTION, int(options.gigabytes * 1e9) // RECORD_BYTES // TRANSACTION * TRANSACTION)

    def run(self) -> dict[str, Any]:
        """All of it, in order."""
        self._fill()
        self._fill_compacted()
        size = self._count * RECORD_BYTES
        found: dict[str, Any] = {"records": self._count, "bytes": size, "record_bytes": RECORD_BYTES}
        found["disk_mb_per_s"] = self._disk()
        found["consumer_mb_per_s"] = round(size / 1e6 / self._consumed_s(), 1)
        self._say(f"disk {found['disk_mb_per_s']} MB/s, consumer {found['consumer_mb_per_s']} MB/s")
        loads = found["loads"] = {}
        loads["load"] = self._loaded(TOPIC, "load", size)
        again = loads["again"] = self._loaded(TOPIC, "load", 0)
        again["is_equal"] &= again["said"] == NOTHING
        loads["range"] = self._range()
        loads["compacted"] = self._loaded(TABLE, "compacted", 0)
        loads["audit"] = self._audited(size)
        loads["cluster"] = self._on_a_cluster(size)
        loads["killed"] = self._killed(size)
        return found

    # --- what is to be loaded --------------------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Each value begins with its number and is random behind it. Aborted transactions come on top of what is asked for."""
        self._created(TOPIC, PARTITIONS, {"retention.ms": "-1"})
        producer = self._producer({"transactional.id": "filler", "acks": "all"})
        producer.init_transactions(60)
        written, number, said = 0, 0, time.monotonic()
        while written < self._count:
            producer.begin_transaction()
            for _ in range(TRANSACTION):
                self._send(producer, TOPIC, number % PARTITIONS, number, None)
                number += 1
            if number // TRANSACTION % ABORTED_EACH == 0:
                # What has not been sent yet would be thrown away, and the topic have nothing that is to be left out.
                producer.flush(60)
                producer.abort_transaction(60)
                continue
            producer.commit_transaction(60)
            written += TRANSACTION
            if time.monotonic() - said > _SAY_S:
                said = time.monotonic()
                self._say(f"{written:,} of {self._count:,} records are in the topic")
        self._say(f"{written:,} records are in the topic, and {number - written:,} of transactions that were aborted")

    def _fill_compacted(self) -> None:
        count = max(KEYS, int(self._count * COMPACTED_SHARE))
        settings = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1", "segment.bytes": str(16 * 2**20)}
        self._created(TABLE, 1, settings)
        producer = self._producer({"acks": "all"})
        for number in range(count):
            self._send(producer, TABLE, 0, number, b"%d" % (number % KEYS))
        if producer.flush(120):
            raise AssertionError("records of the compacted topic were not acknowledged")
        self._say(f"{count:,} records of {KEYS:,} keys are in the compacted topic")

    def _created(self, name: str, partitions: int, settings: dict[str, str]) -> None:
        client = AdminClient({"bootstrap.servers": self._rig.bootstrap})
        (future,) = client.create_topics([NewTopic(name, partitions, 1, config=settings)]).values()
        future.result(20)

    def _producer(self, settings: dict[str, str]) -> Producer:
        common = {"bootstrap.servers": self._rig.bootstrap, "linger.ms": "50", "batch.size": "262144"}
        return Producer({**common, "queue.buffering.max.messages": "200000", **settings})

    def _send(self, producer: Producer, topic: str, partition: int, number: int, key: bytes | None) -> None:
        produce(producer, topic, self._records.value(number), key, partition)
        if number % 1000 == 0:
            producer.poll(0)

    # --- beside what -----------------------------------------------------------------------------------------------------

    def _disk(self) -> float:
        block, path = os.urandom(2**22), self._lake / "written"
        began = time.monotonic()
        with path.open("wb", buffering=0) as file:
            for _ in range(_DISK_BYTES // len(block)):
                file.write(block)
            os.fsync(file.fileno())
        took_s = time.monotonic() - began
        path.unlink()
        return round(_DISK_BYTES / 1e6 / took_s, 1)

    def _consumed_s(self) -> float:
        """How long a plain consumer takes for all of the topic."""
        settings = {
            "bootstrap.servers": self._rig.bootstrap, "group.id": "unused", "enable.partition.eof": True,
            "isolation.level": "read_committed", "enable.auto.commit": False,
        }  # fmt: skip
        with contextlib.closing(Consumer(settings)) as reader:
            began = time.monotonic()
            reader.assign([TopicPartition(TOPIC, partition, OFFSET_BEGINNING) for partition in range(PARTITIONS)])
            ended: set[int] = set()
            count, heard_s = 0, began
            while len(ended) < PARTITIONS:
                messages = reader.consume(1000, _BATCH_S)  # it waits for so many, or so long
                heard_s = time.monotonic() if messages else heard_s
                if time.monotonic() - heard_s > _SILENT_S:
                    raise AssertionError(f"the topic does not answer, after {count:,} records")
                for message in messages:
                    if message.error() is None:
                        count += 1
                    elif message.error().code() == KafkaError._PARTITION_EOF:  # librdkafka's name for it
                        ended.add(message.partition())
            took_s = time.monotonic() - began
        if count != self._count:
            raise AssertionError(f"the consumer read {count:,} records of {self._count:,}")
        return took_s

    # --- loads -----------------------------------------------------------------------------------------------------------

    def _loaded(self, topic: str, name: str, size: int, *words: str) -> dict[str, Any]:
        """One load to its end, and compared."""
        began = time.monotonic()
        said = self._to_its_end(self._started(topic, name, *words), name)
        took_s = time.monotonic() - began
        found = {"took_s": round(took_s, 1), "said": said.strip().splitlines()[-1], **self._compared(topic, name)}
        if size:
            found["mb_per_s"] = round(size / 1e6 / took_s, 1)
        self._say(f"{name}: {json.dumps({key: value for key, value in found.items() if key != 'compared'})}")
        return found

    def _range(self) -> dict[str, Any]:
        """A tenth of each partition's offsets, which the table has lost."""
        table = next(iter(self._manifests("load")))["loaded"]
        ranges = []
        for partition, (first, end) in sorted(table.items()):
            length = max(1, int((end - first) * RANGE_SHARE))
            middle = (first + end) // 2
            ranges.append(f"{partition}:{middle}-{middle + length}")
        self._sql("load", " OR ".join(_within(each) for each in ranges))
        return self._loaded(TOPIC, "load", 0, "--offsets", ",".join(ranges))

    def _audited(self, size: int) -> dict[str, Any]:
        """MB/s of what is read of both sides."""
        places = ("--brokers", self._rig.bootstrap, "--topic", TOPIC, "--target-brokers", self._rig.bootstrap)
        began = time.monotonic()
        is_equal, lines = self._compare("mirror_audit", "audit", *places, "--whole")
        took_s = time.monotonic() - began
        whole = sum(int(line.split("equal, ")[1].split()[0]) for line in lines if "equal, " in line) == self._count
        return {
            "took_s": round(took_s, 1),
            "mb_per_s": round(2 * size / 1e6 / took_s, 1),
            "is_equal": is_equal and whole,
            "compared": lines,
        }

    def _on_a_cluster(self, size: int) -> dict[str, Any]:
        """By executors that are processes of their own."""
        alone, folder = self._master, self._rig.directory / "spark"
        with SparkCluster(folder) as cluster:
            self._master = cluster.of_jobs
            try:
                found = self._loaded(TOPIC, "cluster", size)
            finally:
                self._master = alone
        worked = {path.parent.parent.name for path in folder.glob("work-*/app-*/*")}
        if len(worked) != WORKERS:
            raise AssertionError(f"of {WORKERS} workers {sorted(worked)} had an executor")
        return found

    def _killed(self, size: int) -> dict[str, Any]:
        """Into a table of its own, killed at random shares of its way."""
        points = kill_points(self._options.kills, random.Random(self._options.seed))
        words = (TOPIC, "killed", "--offsets-a-commit", str(max(1000, self._count // COMMITS)))
        began = time.monotonic()
        process = self._started(*words)
        for number, point in enumerate(points, start=1):
            self._until_share("killed", point, process)
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            self._say(f"killed {number} of {len(points)} times, at {self._share('killed'):.0%}")
            process = self._started(*words)
        self._to_its_end(process, "killed")
        took_s = time.monotonic() - began
        return {
            "kills": len(points),
            "points": [round(point, 3) for point in points],
            "took_s": round(took_s, 1),
            "mb_per_s": round(size / 1e6 / took_s, 1),
            **self._compared(TOPIC, "killed"),
        }

    def _to_its_end(self, process: subprocess.Popen[str], name: str) -> str:
        """What it said."""
        said, _ = process.communicate(timeout=_LOAD_WITHIN_S)
        if process.returncode:
            raise AssertionError(f"the load ended with status {process.returncode}; see {self._log(name)}")
        return said

    def _until_share(self, name: str, share: float, process: subprocess.Popen[str]) -> None:
        """So much of the topic is in the table, and a moment more: a kill falls between two commits, or into one."""
        end = time.monotonic() + _LOAD_WITHIN_S
        while self._share(name) < share:
            if process.poll() is not None or time.monotonic() > end:
                raise AssertionError(
                    f"the load ended with status {process.poll()} before it was killed; see {self._log(name)}"
                )
            time.sleep(_LOOK_S)
        time.sleep(random.Random(f"{self._options.seed} {share}").uniform(0.0, 3.0))

    def _share(self, name: str) -> float:
        """Of all records."""
        return sum(part["rows"] for each in self._manifests(name) for part in each["partitions"].values()) / self._count

    def _manifests(self, name: str) -> Iterator[dict[str, Any]]:
        """Of all commits, the newest first, as anybody finds them who reads the log's files."""
        for path in sorted((self._lake / name / "_delta_log").glob("*.json"), reverse=True):
            for line in path.read_text().splitlines():
                text = json.loads(line).get("commitInfo", {}).get("userMetadata")
                if text:
                    yield json.loads(text)

    def _compared(self, topic: str, name: str) -> dict[str, Any]:
        is_equal, lines = self._compare("verify", name, *self._words(topic, name))
        return {"is_equal": is_equal, "compared": lines}

    def _compare(self, program: str, name: str, *words: str) -> tuple[bool, list[str]]:
        """Whether a program of the lake finds both sides equal, and what it says of each partition."""
        done = subprocess.run(
            [sys.executable, "-m", f"controlplane.lake.{program}", *words],
            cwd=ROOT, env=self._environment(), stdout=subprocess.PIPE, stderr=self._opened(name), text=True, check=False,
            timeout=_LOAD_WITHIN_S,
        )  # fmt: skip
        return done.returncode == 0, done.stdout.strip().splitlines()

    def _sql(self, name: str, where: str) -> None:
        """Delete rows of a table, by a session of its own."""
        program = (
            "import os; from controlplane.lake import load; from controlplane.spark.session import open_session, close_session\n"
            "session = open_session(load.setup(os.environ))\n"
            f'session.sql("DELETE FROM delta.`file:{self._lake / name}` WHERE {where}")\n'
            "close_session(session)\n"
        )
        subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, env=self._environment(), stderr=self._opened(name), check=True
        )

    def _started(self, topic: str, name: str, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "controlplane.lake.load", *self._words(topic, name), *words],
            cwd=ROOT, env=self._environment(), stdout=subprocess.PIPE, stderr=self._opened(name), text=True,
            start_new_session=True,
            preexec_fn=dies_with_parent(),  # noqa: PLW1509  # it only calls prctl
        )  # fmt: skip

    def _words(self, topic: str, name: str) -> list[str]:
        return ["--brokers", self._rig.bootstrap, "--topic", topic, "--to", f"file:{self._lake / name}"]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, **self._master}

    def _log(self, name: str) -> Path:
        return self._rig.directory / f"{name}.log"

    def _opened(self, name: str) -> Any:
        return self._log(name).open("ab")


def _within(words: str) -> str:
    """``0:5-30``, in SQL."""
    partition, _, span = words.partition(":")
    first, _, end = span.partition("-")
    return f"(partition = {partition} AND offset >= {first} AND offset < {end})"


def table(figures: dict[str, Any]) -> str:
    """For people."""
    lines = [f"{'':<14}{'s':>10}{'MB/s':>10}  compared"]
    lines.append(f"{'disk':<14}{'':>10}{figures['disk_mb_per_s']:>10.1f}")
    lines.append(f"{'consumer':<14}{'':>10}{figures['consumer_mb_per_s']:>10.1f}")
    for name, found in figures["loads"].items():
        what = f"killed {found['kills']}x" if "kills" in found else name
        speed = f"{found['mb_per_s']:>10.1f}" if "mb_per_s" in found else f"{'':>10}"
        lines.append(f"{what:<14}{found['took_s']:>10.1f}{speed}  {'equal' if found['is_equal'] else 'DIFFERENT'}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
