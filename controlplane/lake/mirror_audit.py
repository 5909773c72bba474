"""Compares a topic with its mirror: `python -m controlplane.lake.mirror_audit --brokers A --topic orders --target-brokers B`.

Both are read by Spark up to ends that are fixed before, the target's first: what a mirror copies meanwhile is in neither, and
records of the source behind the last one of the target are told as lag. Order, key, value, headers (a mirror's mark apart) and
times are compared, whatever the offsets; times are left out where the target stamps records itself.

A partition's beginning must be the same on both sides. Where retention has deleted more on one than on the other, `--from-time`
names a moment that both still have; `--from-time` and `--to-time` make an audit of a day. `mirror … compare` does the same in one
process without Spark, for all topics of a mirror, and begins where the mirror's checkpoints say.

The exit status is 0 where all partitions are equal, 7 where one is not (with `--whole` also where one is behind), else that of
the error (`errors`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from controlplane.lake import mirror_frames as frames
from controlplane.lake import topic
from controlplane.lake.comparing import DIFFERENT, compared
from controlplane.lake.errors import LakeError, RequestError
from controlplane.lake.load import FAILED
from controlplane.lake.mirror_frames import Audited, Side
from controlplane.lake.planning import Span, Spans, offsets_of
from controlplane.lake.progress import Progress, Say
from controlplane.lake.request import moment_ms
from controlplane.spark.errors import first_line
from controlplane.spark.topics import Topic, TopicAwayError

OFFSETS_A_TASK = 50_000


@dataclass(frozen=True, slots=True)
class Place:
    """A topic, and how it is reached."""

    brokers: str
    topic: str
    properties: Path | None

    def options(self, spark: SparkSession) -> dict[str, str]:
        """For Spark's Kafka source. Raises LakeError, OSError."""
        return topic.options(spark, self.brokers, self.properties.read_text() if self.properties else "")


@dataclass(frozen=True, slots=True)
class Request:
    """One audit."""

    source: Place
    target: Place
    from_ms: int | None = None
    to_ms: int | None = None
    marked: str | None = None  # the source's name in the target's headers
    whole: bool = False

    @classmethod
    def read(cls, words: Sequence[str]) -> Request:
        """Ends the program with status 2, and a sentence, where words make no sense."""
        parser = _parser()
        read = parser.parse_args(words)
        if read.from_time is not None and read.to_time is not None and read.from_time >= read.to_time:
            parser.error("--from-time is not before --to-time")
        source = Place(read.brokers, read.topic, read.properties)
        target = Place(read.target_brokers, read.target_topic or read.topic, read.target_properties)
        return cls(source, target, read.from_time, read.to_time, read.marked, read.whole)

    def is_kept_by(self, found: Sequence[Audited]) -> bool:
        """Whether the mirror is as it should be."""
        return all(each.is_equal and not (self.whole and each.lag) for each in found)


class Audit:
    """One run."""

    def __init__(self, spark: SparkSession, request: Request, say: Say) -> None:
        self._spark, self._request, self._progress = spark, request, Progress(spark, say)

    def run(self) -> list[Audited]:
        """By partition. Raises LakeError, TopicAwayError, OSError and Spark's errors."""
        with self._progress.of("looking at both topics"):
            there = self._spans(self._request.target)
            here = self._spans(self._request.source)
        with (
            self._kept(self._request.target, there, self._request.marked) as target,
            self._kept(self._request.source, here, None) as source,
        ):
            found, counts = self._compared(source, target)
        for partition, (missing, foreign) in counts.items():
            found[partition] = replace(found[partition], missing=missing, foreign=foreign)
        partitions = sorted({*here, *there})
        return [found.get(partition, Audited(partition, Side(), Side())) for partition in partitions]

    def _compared(self, source: DataFrame, target: DataFrame) -> tuple[dict[int, Audited], dict[int, tuple[int, int]]]:
        """By partition; and what is missing and foreign of those that differ."""
        with self._progress.of("reading both topics"):
            if frames.stamps_itself(target):
                if self._request.from_ms is not None or self._request.to_ms is not None:
                    raise RequestError(
                        "the target stamps records itself: times of both sides do not say which are the same"
                    )
                source, target = frames.without_times(source), frames.without_times(target)
            found = frames.audited(source, target)
        different = [partition for partition, each in found.items() if not each.is_equal]
        with self._progress.of("looking for what is missing"):
            return found, frames.unmatched(source, target, different) if different else {}

    def _spans(self, place: Place) -> Spans:
        """What the topic has now, up to its last stable offset."""
        asked = Topic(self._spark, place.options(self._spark), place.topic)
        try:
            state = topic.look(asked)
        finally:
            asked.close()
        return {partition: Span(first, state.end[partition]) for partition, first in state.first.items()}

    @contextmanager
    def _kept(self, place: Place, spans: Spans, marked: str | None) -> Iterator[DataFrame]:
        """Some forty bytes of each record, on the executors' disks: a topic is read once."""
        tasks = max(self._spark.sparkContext.defaultParallelism, offsets_of(spans) // OFFSETS_A_TASK)
        records = topic.records(self._spark, place.options(self._spark), place.topic, spans, tasks=tasks)
        records = frames.of_source(frames.within(records, self._request.from_ms, self._request.to_ms), marked)
        rows = frames.numbered(records).persist(StorageLevel.DISK_ONLY)
        try:
            yield rows
        finally:
            rows.unpersist()


def run(spark: SparkSession, request: Request, say: Say) -> tuple[int, list[str]]:
    """The exit status, and a line for each partition. Errors are said."""
    try:
        found = Audit(spark, request, say).run()
    except LakeError as error:
        say(str(error))
        return error.exit_status, []
    except TopicAwayError as error:
        say(str(error))
        return FAILED, []
    except (PySparkException, Py4JError, OSError) as error:
        say(f"{type(error).__name__}: {first_line(error)}")
        return FAILED, []
    return 0 if request.is_kept_by(found) else DIFFERENT, [each.line for each in found]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mirror_audit", description="Compares a topic with its mirror, record by record."
    )
    parser.add_argument("--brokers", required=True, metavar="HOST:PORT", help="of the source")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--target-brokers", required=True, metavar="HOST:PORT")
    parser.add_argument("--target-topic", metavar="TOPIC", help="where it has another name in the target")
    parser.add_argument(
        "--properties", type=Path, metavar="FILE", help="a Kafka client's own, for the source: security.protocol=…"
    )
    parser.add_argument("--target-properties", type=Path, metavar="FILE", help="likewise, for the target")
    parser.add_argument("--from-time", type=moment_ms, metavar="ISO", help="only records as new as this")
    parser.add_argument("--to-time", type=moment_ms, metavar="ISO", help="only records older than this")
    parser.add_argument(
        "--marked", metavar="NAME", help="of a target with several sources: what a mirror has marked as this one's"
    )
    parser.add_argument("--whole", action="store_true", help="a mirror that is behind is different, too")
    return parser


def main(words: Sequence[str]) -> int:
    """The exit status."""
    request = Request.read(words)
    return compared(lambda spark, say: run(spark, request, say))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
