"""Kafka's side: options of a client, what the topic is now, its records as a DataFrame."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError

from controlplane.lake.errors import LakeError
from controlplane.lake.planning import Spans, TopicState
from controlplane.spark.session import jvm_of
from controlplane.spark.topics import Topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int,"
    " headers array<struct<key:string,value:binary>>"
)
"""Of Spark's Kafka source."""


def options(spark: SparkSession, brokers: str, properties: str) -> dict[str, str]:
    """For Spark's Kafka source. `properties`: the text of a client's properties file, read as Java's clients read it."""
    jvm = jvm_of(spark)
    read = jvm.java.util.Properties()
    try:
        read.load(jvm.java.io.StringReader(properties))
    except Py4JJavaError as error:
        raise LakeError(f"the properties file cannot be read: {error.java_exception.getMessage()}") from error
    found = {f"kafka.{name}": str(read.getProperty(name)) for name in read.stringPropertyNames()}
    return found | {"kafka.bootstrap.servers": brokers, "kafka.isolation.level": "read_committed"}


def look(topic: Topic) -> TopicState:
    """Where it begins and ends now, up to the last stable offset. Raises TopicAwayError."""
    topic_id, partitions = topic.describe()
    # Ends first: a partition whose records expire in between shall not begin behind its end.
    end = topic.end_offsets(partitions, committed=True)
    first = topic.first_offsets(partitions)
    return TopicState(topic_id, first, {partition: max(end[partition], first[partition]) for partition in partitions})


def records(spark: SparkSession, options: Mapping[str, str], name: str, spans: Spans, *, tasks: int) -> DataFrame:
    """The records of these spans, in tasks of about equal numbers of offsets."""
    spans = {partition: span for partition, span in spans.items() if span.size}
    if not spans:
        return spark.createDataFrame([], COLUMNS)
    return (
        spark.read.format("kafka")
        .options(**options)
        .option("assign", json.dumps({name: sorted(spans)}))
        .option("startingOffsets", json.dumps({name: {str(at): span.first for at, span in spans.items()}}))
        .option("endingOffsets", json.dumps({name: {str(at): span.end for at, span in spans.items()}}))
        .option("includeHeaders", "true")
        .option("failOnDataLoss", "true")
        .option("minPartitions", str(max(tasks, len(spans))))
        .load()
    )
