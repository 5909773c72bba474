"""Kafka's side of the job: what Spark's source is told to read, and what Kafka itself says of the topic.

Spark's progress says how far a query has come, not what the topic is: whether it is still the same one, where it begins,
and, while a batch hangs, where it ends. So the job asks by the Kafka client that the source has brought into the JVM.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from controlplane.metering.pipeline.positions import TopicState
from controlplane.metering.pipeline.settings import Settings
from controlplane.spark.topics import Topic, TopicAwayError
from quota.contracts.usage import USAGE_TOPIC

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["TopicAwayError", "UsageTopic", "records"]

MOST_PER_BATCH = 200_000


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
        self._topic = Topic(spark, settings.kafka_options(), USAGE_TOPIC)

    def close(self) -> None:
        """Give up its connections."""
        self._topic.close()

    def look(self) -> TopicState:
        """What the topic is now. Raises TopicAwayError."""
        topic_id, partitions = self._topic.describe()
        return TopicState(
            topic_id, first=self._topic.first_offsets(partitions), end=self._topic.end_offsets(partitions)
        )
