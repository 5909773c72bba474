"""Compares a table with its topic: `python -m controlplane.lake.verify --brokers host:port --topic orders --to URI`.

Rows are counted and summed by Spark, records by librdkafka, which has nothing in common with Spark's Kafka source: if both
come to the same checksum, the table has each record once and unaltered. Compared is what both have: of each partition the
offsets that the manifest says are loaded, from the oldest record that the topic still keeps.

The exit status is 0 where all partitions are equal, 7 where one is not, else that of the error (`errors`). A topic that has been
compacted since the load has fewer records than the table; that is a difference. Whether it is still the same topic is not
asked: one that was made again is different.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from controlplane.lake import columns
from controlplane.lake.checksum import Total, record_total
from controlplane.lake.comparing import DIFFERENT, compared
from controlplane.lake.errors import LakeError
from controlplane.lake.load import FAILED
from controlplane.lake.planning import Span, Spans
from controlplane.lake.progress import Progress, Say
from controlplane.lake.table import Table
from controlplane.spark.errors import first_line

ANSWERS_WITHIN_S = 30


@dataclass(frozen=True, slots=True)
class Comparison:
    """Of one partition."""

    partition: int
    span: Span
    table: Total
    topic: Total

    @property
    def line(self) -> str:
        """For people."""
        what = f"partition {self.partition} offsets {self.span.first}-{self.span.end}"
        if self.table == self.topic:
            return f"{what}: equal, {self.table.rows} rows, checksum {self.table.checksum:016x}"
        return (
            f"{what}: DIFFERENT, table {self.table.rows} rows, checksum {self.table.checksum:016x};"
            f" topic {self.topic.rows} records, checksum {self.topic.checksum:016x}"
        )


def compare(spark: SparkSession, table: Table, reader: Consumer, topic: str, say: Say) -> Iterator[Comparison]:
    """By partition. Raises LakeError, KafkaException and Spark's errors."""
    manifest = table.manifest()
    if manifest is None:
        raise LakeError(f"{table.uri} has no manifest of a load")
    if manifest.topic != topic:
        raise LakeError(f"the table was loaded from the topic {manifest.topic}, not {topic}")
    progress = Progress(spark, say)
    spans = {}
    for partition, span in manifest.loaded.spans.items():
        oldest, _ = reader.get_watermark_offsets(TopicPartition(topic, partition), ANSWERS_WITHIN_S)
        if max(span.first, oldest) < span.end:
            spans[partition] = Span(max(span.first, oldest), span.end)
    with progress.of("adding up the table"):
        rows = spark.read.format("delta").load(table.uri).where(columns.within(manifest.topic_id, spans))
        in_table, _ = columns.totals(rows)
    with progress.of("reading the topic"):
        in_topic = read(reader, topic, spans)
    for partition, span in sorted(spans.items()):
        yield Comparison(partition, span, in_table.get(partition, Total()), in_topic.get(partition, Total()))


def read(reader: Consumer, topic: str, spans: Spans) -> dict[int, Total]:
    """What the topic has, by partition. Raises KafkaException where it does not answer."""
    found: dict[int, Total] = {}
    unread = dict(spans)
    reader.assign([TopicPartition(topic, partition, span.first) for partition, span in spans.items()])
    while unread:
        message = reader.poll(ANSWERS_WITHIN_S)
        if message is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001  # as the library names its own codes
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001
            raise KafkaException(error)
        partition, offset = message.partition(), message.offset()
        assert partition is not None, "the library leaves it out of errors only"
        assert offset is not None
        if partition not in unread:
            continue
        if error is not None or offset >= unread[partition].end:
            del unread[partition]
            reader.pause([TopicPartition(topic, partition)])
            continue
        _, timestamp_ms = message.timestamp()
        record = record_total(partition, offset, timestamp_ms, message.key(), message.value(), _headers(message))
        found[partition] = found.get(partition, Total()) + record
    return found


def _headers(message: Message) -> list[tuple[str, bytes | None]]:
    """In the one form of those that the library's types allow which it hands out."""
    given = message.headers() or []
    assert isinstance(given, list)
    return [(name, content.encode() if isinstance(content, str) else content) for name, content in given]


def properties_of(text: str) -> dict[str, str]:
    """`name=value` lines; `#` begins a comment."""
    lines = [line.strip() for line in text.splitlines()]
    pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
    return {name.strip(): value.strip() for name, _, value in pairs}


def open_reader(brokers: str, properties: Mapping[str, str]) -> Consumer:
    """Of committed records. `properties`: librdkafka's."""
    return Consumer(
        {
            "group.id": "sluice-lake-verify",  # nothing is committed under it
            **properties,
            "bootstrap.servers": brokers,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "check.crcs": True,
        }
    )


def run(spark: SparkSession, words: Sequence[str], say: Say) -> tuple[int, list[str]]:
    """The exit status, and a line for each partition. Errors are said."""
    read_words = _parser().parse_args(words)
    try:
        properties = properties_of(read_words.client_config.read_text()) if read_words.client_config else {}
        reader = open_reader(read_words.brokers, properties)
        try:
            table = Table(spark, read_words.to)
            found = list(compare(spark, table, reader, read_words.topic, say))
        finally:
            reader.close()
    except LakeError as error:
        say(str(error))
        return error.exit_status, []
    except (PySparkException, Py4JError, KafkaException, OSError) as error:
        say(f"{type(error).__name__}: {first_line(error)}")
        return FAILED, []
    equal = all(each.table == each.topic for each in found)
    return 0 if equal else DIFFERENT, [each.line for each in found]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lake_verify", description="Compares a table that lake_load wrote with its topic."
    )
    parser.add_argument("--brokers", required=True, metavar="HOST:PORT")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--to", required=True, metavar="URI", help="the table")
    parser.add_argument(
        "--client-config",
        type=Path,
        metavar="FILE",
        help="librdkafka's: security.protocol=…, sasl.…, ssl.ca.location=…",
    )
    return parser


def main(words: Sequence[str]) -> int:
    """The exit status."""
    _parser().parse_args(words)
    return compared(lambda spark, say: run(spark, words, say))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
