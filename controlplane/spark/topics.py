"""What Kafka says of a topic: its id, its partitions, where they begin and end.

Asked by the Kafka client that the source has brought into the JVM, with the options that the source itself has: so
whoever can read the topic can ask, by whatever security Java's client knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

from controlplane.spark.session import jvm_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ANSWERS_WITHIN_S = 10


class TopicAwayError(Exception):
    """The topic is not there, or Kafka does not say; the text is for operators."""


class Topic:
    """One topic. Used by one thread.

    `options` are those of Spark's Kafka source: the client's own have `kafka.` before their names.
    """

    def __init__(self, spark: SparkSession, options: Mapping[str, str], name: str) -> None:
        self._jvm = jvm_of(spark)
        self._name = name
        properties = self._jvm.java.util.Properties()
        for option, value in options.items():
            if option.startswith("kafka."):
                properties.setProperty(option.removeprefix("kafka."), value)
        self._clients = self._jvm.org.apache.kafka.clients.admin
        try:
            self._admin = self._clients.AdminClient.create(properties)
        except Py4JJavaError as error:
            raise TopicAwayError(f"the Kafka client does not take its options: {_reason(error)}") from error

    def close(self) -> None:
        """Give up its connections."""
        self._admin.close(self._jvm.java.time.Duration.ZERO)

    def describe(self) -> tuple[str, list[int]]:
        """The topic's id, as Kafka writes it, and its partitions. Raises TopicAwayError."""
        try:
            description = self._got(self._admin.describeTopics([self._name]).allTopicNames())[self._name]
        except Py4JJavaError as error:
            raise self._away(error) from error
        return description.topicId().toString(), sorted(each.partition() for each in description.partitions())

    def first_offsets(self, partitions: Iterable[int]) -> dict[int, int]:
        """The oldest record that is kept, by partition. Raises TopicAwayError."""
        return self._offsets(partitions, self._clients.OffsetSpec.earliest())

    def end_offsets(self, partitions: Iterable[int], *, committed: bool = False) -> dict[int, int]:
        """Where the next record will be read; `committed`: the last stable offset. Raises TopicAwayError."""
        return self._offsets(partitions, self._clients.OffsetSpec.latest(), committed=committed)

    def offsets_at(self, partitions: Iterable[int], timestamp_ms: int) -> dict[int, int]:
        """The first record that is as new as that or newer; partitions without one are left out. Raises TopicAwayError."""
        found = self._offsets(partitions, self._clients.OffsetSpec.forTimestamp(timestamp_ms))
        return {partition: offset for partition, offset in found.items() if offset >= 0}

    def _offsets(self, partitions: Iterable[int], spec: Any, *, committed: bool = False) -> dict[int, int]:
        wanted = self._jvm.java.util.HashMap()
        keys = {
            partition: self._jvm.org.apache.kafka.common.TopicPartition(self._name, partition)
            for partition in partitions
        }
        for key in keys.values():
            wanted.put(key, spec)
        levels = self._jvm.org.apache.kafka.common.IsolationLevel
        level = levels.READ_COMMITTED if committed else levels.READ_UNCOMMITTED
        try:
            found = self._got(self._admin.listOffsets(wanted, self._clients.ListOffsetsOptions(level)).all())
        except Py4JJavaError as error:
            raise self._away(error) from error
        return {partition: int(found.get(key).offset()) for partition, key in keys.items()}

    def _got(self, future: Any) -> Any:
        return future.get(ANSWERS_WITHIN_S, self._jvm.java.util.concurrent.TimeUnit.SECONDS)

    def _away(self, error: Py4JJavaError) -> TopicAwayError:
        return TopicAwayError(f"Kafka does not say what {self._name} is: {_reason(error)}")


def _reason(error: Py4JJavaError) -> str:
    """The innermost cause, without Java's stack."""
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.getMessage() or cause.getClass().getSimpleName())[:300]
