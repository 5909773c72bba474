"""Kafka's side of the job: what Spark's source is told to read, and what Kafka itself says of the topic.

Spark's progress says how far a query has come, not what the topic is: whether it is still the same one, where it begins,
and, while a batch hangs, where it ends. So the job asks by the Kafka client that the source has brought into the JVM.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

from controlplane.metering.pipeline.positions import TopicState
from controlplane.metering.pipeline.settings import Settings
from quota.contracts.usage import USAGE_TOPIC

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_PER_BATCH = 200_000
ANSWERS_WITHIN_S = 10


class TopicAwayError(Exception):
    """The topic is not there, or Kafka does not say; the text is for operators."""


def records(spark: SparkSession, settings: Settings, offsets: Mapping[int, int] | None) -> DataFrame:
    """The topic as a stream; from the given offsets, else from its beginning, where there is no checkpoint."""
    starting = "earliest"
    if offsets is not None:
        starting = json.dumps({USAGE_TOPIC: {str(partition): offset for partition, offset in offsets.items()}})
    return (
        spark.readStream.format("kafka")
        .options(**settings.kafka_options())
        .option("subscribe", USAGE_TOPIC)
        .option("startingOffsets", starting)
        # Records that are gone end the query: at the next start `positions.starting` says which, and goes on behind them.
        # With "false" Spark would say nothing, and skip the first records of a topic that was made again.
        .option("failOnDataLoss", "true")
        .option("maxOffsetsPerTrigger", MOST_PER_BATCH)
        .load()
    )


class UsageTopic:
    """The Kafka client of the JVM. Used by one thread."""

    def __init__(self, spark: SparkSession, settings: Settings) -> None:
        self._jvm: Any = spark.sparkContext._jvm  # noqa: SLF001  # the JVM has no public door in PySpark
        properties = self._jvm.java.util.Properties()
        for name, value in settings.kafka_options().items():
            properties.setProperty(name.removeprefix("kafka."), value)
        self._clients = self._jvm.org.apache.kafka.clients.admin
        self._admin = self._clients.AdminClient.create(properties)

    def close(self) -> None:
        """Give up its connections."""
        self._admin.close(self._jvm.java.time.Duration.ZERO)

    def look(self) -> TopicState:
        """What the topic is now. Raises TopicAwayError."""
        try:
            description = self._got(self._admin.describeTopics([USAGE_TOPIC]).allTopicNames())[USAGE_TOPIC]
            partitions = [partition.partition() for partition in description.partitions()]
            specs = self._clients.OffsetSpec
            return TopicState(
                description.topicId().toString(),
                first=self._offsets(partitions, specs.earliest()),
                end=self._offsets(partitions, specs.latest()),
            )
        except Py4JJavaError as error:
            raise TopicAwayError(f"Kafka does not say what {USAGE_TOPIC} is: {_reason(error)}") from error

    def _offsets(self, partitions: list[int], spec: Any) -> dict[int, int]:
        wanted = self._jvm.java.util.HashMap()
        keys = {
            partition: self._jvm.org.apache.kafka.common.TopicPartition(USAGE_TOPIC, partition)
            for partition in partitions
        }
        for key in keys.values():
            wanted.put(key, spec)
        found = self._got(self._admin.listOffsets(wanted).all())
        return {partition: int(found.get(key).offset()) for partition, key in keys.items()}

    def _got(self, future: Any) -> Any:
        return future.get(ANSWERS_WITHIN_S, self._jvm.java.util.concurrent.TimeUnit.SECONDS)


def _reason(error: Py4JJavaError) -> str:
    """The innermost cause, without Java's stack."""
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.getMessage() or cause.getClass().getSimpleName())[:300]
