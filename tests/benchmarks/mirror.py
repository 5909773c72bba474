"""``make mirror``: a topic copied between a real Apache Kafka and ours, both ways, by our mirror and by MirrorMaker 2.

    python -m tests.benchmarks.mirror [--gigabytes 10] [--kills 20] [--rounds 1] [--directory var] [--alone]

A topic of four partitions with records of 1 KiB that are all different is filled at the source. In each direction it is then
copied

    by each of the two, in alternation    MB/s from the first message in the target to the last, CPU seconds per GB of
                                          the copying process
    by ours, killed again and again       at random moments of the way, each time started again; afterwards both sides
                                          are compared

Ours copies exactly once, MirrorMaker as it is by default. A table at the end; `var/reports/mirror.json`; exit status 1 where
a comparison finds a difference. The logs are on tmpfs, or below `--directory`: there is room needed for twice the size.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.benchmarks.apache import ApacheRig
from tests.benchmarks.mirror_copies import PARTITIONS, TOPIC, Copy, MirrorMakerCopy, OurCopy
from tests.benchmarks.numbered import NumberedRecords, number_text, produce
from tests.benchmarks.report import Say, keep, progress
from tests.benchmarks.rig import Rig
from tests.benchmarks.server import Server
from tests.support.apache_kafka import NotAvailableError
from tests.support.mirror_maker import jars
from tests.support.waiting import wait_for

REPORT = Path("var/reports/mirror.json")
RECORD_BYTES = 1024
LAST_POINT = 0.95
"""Of the way: the last kill is before, so that there is something left to be copied."""
_LOOK_S = 0.05
_SAY_S = 10.0
_STANDS_STILL_S = 180.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table, write the figures."""
    options = _options(arguments)
    say = progress()
    folder = Path(tempfile.mkdtemp(prefix="sluice-mirror-"))
    try:
        with contextlib.ExitStack() as stack:
            if not options.alone:
                jars()  # fetched before the clock starts
            ours: Server = stack.enter_context(Rig(parent=options.directory))
            theirs: Server = stack.enter_context(ApacheRig(parent=options.directory))
            say("one broker of ours and one of Apache Kafka are up")
            ways = [
                _Way(source, target, folder, options, say).run() for source, target in ((theirs, ours), (ours, theirs))
            ]
    except NotAvailableError as error:
        print(f"this needs Apache Kafka: {error}", file=sys.stderr)
        return 2
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(table(ways))
    keep(
        REPORT,
        {"options": vars(options) | {"directory": str(options.directory)}, "record_bytes": RECORD_BYTES, "ways": ways},
    )
    return 0 if all(way["killed"]["is_equal"] for way in ways) else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make mirror ARGS=", description="The mirror beside MirrorMaker 2, and killed."
    )
    parser.add_argument("--gigabytes", type=float, default=0.2, help="of the topic, each way")
    parser.add_argument("--kills", type=int, default=5, help="of our mirror, each way")
    parser.add_argument("--rounds", type=int, default=1, help="of what is measured without kills")
    parser.add_argument("--seed", type=int, default=1, help="of the moments at which it is killed")
    parser.add_argument("--alone", action="store_true", help="without MirrorMaker")
    parser.add_argument("--directory", type=Path, default=None, help="for the logs, instead of tmpfs; removed again")
    options = parser.parse_args(arguments)
    if options.directory is not None:
        options.directory.mkdir(parents=True, exist_ok=True)
        options.directory = options.directory.resolve()
    return options


def kill_points(kills: int, choices: random.Random) -> list[float]:
    """At which shares of the way it is killed."""
    return sorted(choices.uniform(0.0, LAST_POINT) for _ in range(kills))


class _Way:
    """From one cluster to the other."""

    def __init__(self, source: Server, target: Server, folder: Path, options: argparse.Namespace, say: Say) -> None:
        self._source, self._target, self._folder, self._options = source, target, folder, options
        self._name = f"{source.name}-to-{target.name}"
        self._count = max(PARTITIONS, int(options.gigabytes * 1e9) // RECORD_BYTES)
        self._say: Say = lambda text: say(f"{self._name}: {text}")

    def run(self) -> dict[str, Any]:
        """The figures of this way."""
        self._source.topic(TOPIC, PARTITIONS)
        self._fill()
        rounds: dict[str, list[dict[str, float]]] = {}
        kinds: list[type[OurCopy | MirrorMakerCopy]] = [OurCopy] if self._options.alone else [OurCopy, MirrorMakerCopy]
        for number in range(self._options.rounds):
            for kind in kinds:
                copy = kind(self._folder, self._source, self._target, f"{self._name}-{kind.name}-{number}")
                rounds.setdefault(kind.name, []).append(self._measured(copy))
                self._target.delete_topic(copy.topic)
        killed = self._killed(OurCopy(self._folder, self._source, self._target, f"{self._name}-killed"))
        self._source.delete_topic(TOPIC)
        medians = {
            name: {figure: round(statistics.median(one[figure] for one in found), 2) for figure in found[0]}
            for name, found in rounds.items()
        }
        return {"way": self._name, "messages": self._count, "rounds": rounds, "medians": medians, "killed": killed}

    def _fill(self) -> None:
        """Each value begins with its number, and is random behind it; every tenth message has a header."""
        records = NumberedRecords(RECORD_BYTES)
        refused: list[str] = []
        producer = Producer(
            {
                "bootstrap.servers": self._source.bootstrap,
                "acks": "1",
                "linger.ms": "50",
                "batch.size": "131072",
                "queue.buffering.max.messages": "200000",
            }
        )
        said = time.monotonic()
        for number in range(self._count):
            key = number_text(number)
            produce(
                producer,
                TOPIC,
                records.value(number),
                key,
                number % PARTITIONS,
                on_delivery=lambda error, _: refused.append(str(error)) if error else None,
                headers=[("number", key)] if number % 10 == 0 else None,
            )
            if number % 1_000 == 0:
                producer.poll(0)
                if time.monotonic() - said > _SAY_S:
                    said = time.monotonic()
                    self._say(f"{number:,} of {self._count:,} messages are in the source")
        left = producer.flush(120)
        if left or refused:
            raise AssertionError(f"{left} messages of the source were not acknowledged: {refused[:1]}")
        self._say(f"{self._count:,} messages are in the source")

    def _measured(self, copy: Copy) -> dict[str, float]:
        started = time.monotonic()
        copy.start()
        try:
            self._until(copy, 1)
            began, used = time.monotonic(), copy.cpu_s()
            self._until(copy, self._count)
            seconds, used = time.monotonic() - began, copy.cpu_s() - used
        finally:
            copy.stop()
        size = self._count * RECORD_BYTES
        found = {
            "mb_per_s": round(size / 1e6 / max(seconds, _LOOK_S), 2),
            "cpu_s_per_gb": round(used / (size / 1e9), 2),
            "first_after_s": round(began - started, 2),
        }
        self._say(f"{copy.name}: {found['mb_per_s']:.1f} MB/s, {found['cpu_s_per_gb']:.1f} CPU-s/GB")
        return found

    def _until(self, copy: Copy, count: int) -> None:
        """So many messages are copied. AssertionError where nothing moves any more."""
        last, since, said = -1, time.monotonic(), time.monotonic()
        while (copied := copy.copied()) < count:
            now = time.monotonic()
            if copied != last:
                last, since = copied, now
            if now - since > _STANDS_STILL_S:
                raise AssertionError(f"{copy.name} has copied nothing for {_STANDS_STILL_S:.0f} s, at {copied:,}")
            if now - said > _SAY_S:
                said = now
                self._say(f"{copy.name}: {copied:,} of {self._count:,} are copied")
            time.sleep(_LOOK_S)

    def _killed(self, copy: OurCopy) -> dict[str, Any]:
        points = kill_points(self._options.kills, random.Random(f"{self._options.seed} {self._name}"))
        began = time.monotonic()
        copy.start()
        for number, point in enumerate(points, start=1):
            self._until(copy, max(1, int(point * self._count)))
            copy.kill()
            self._say(f"killed {number} of {len(points)} times, at {point:.0%}")
            copy.start()
        self._until(copy, self._count)
        copy.stop()
        seconds = time.monotonic() - began
        wait_for(lambda: _has_ended(self._target.bootstrap, copy.topic), 90, "every transaction to have ended")
        self._say("comparing both sides")
        is_equal, lines = copy.compare()
        for line in lines:
            self._say(line)
        self._target.delete_topic(copy.topic)
        return {
            "kills": len(points),
            "points": [round(point, 3) for point in points],
            "seconds": round(seconds, 1),
            "mb_per_s": round(self._count * RECORD_BYTES / 1e6 / seconds, 2),
            "is_equal": is_equal,
            "compared": lines,
        }


def _has_ended(bootstrap: str, topic: str) -> bool:
    """Whether no transaction is open: the last stable offset of each partition is its end."""
    ends = []
    for level in ("read_committed", "read_uncommitted"):
        consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "nobody", "isolation.level": level, "log_level": 0}
        )
        with contextlib.closing(consumer):
            places = [TopicPartition(topic, index) for index in range(PARTITIONS)]
            ends.append([consumer.get_watermark_offsets(place, 10, cached=False)[1] for place in places])
    return ends[0] == ends[1]


def table(ways: Sequence[dict[str, Any]]) -> str:
    """For people."""
    lines = [f"{'':<20}{'':<14}{'MB/s':>10}{'CPU-s/GB':>12}{'first after, s':>16}"]
    for way in ways:
        for name, found in way["medians"].items():
            cells = f"{found['mb_per_s']:>10.1f}{found['cpu_s_per_gb']:>12.1f}{found['first_after_s']:>16.1f}"
            lines.append(f"{way['way']:<20}{name:<14}{cells}")
        killed = way["killed"]
        verdict = "equal" if killed["is_equal"] else "DIFFERENT"
        times = f"killed {killed['kills']} times"
        lines.append(
            f"{way['way']:<20}{times:<18}{killed['mb_per_s']:>6.1f}  {verdict} after {killed['seconds']:.0f} s"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
