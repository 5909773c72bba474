"""One idea per function, DataFrame in and DataFrame out; each ends in a `select` that is its schema."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from controlplane.metering.pipeline.checks import problem_of
from controlplane.metering.pipeline.schemas import FACTS, KEY, MAXIMA, PROVENANCE, VALUE
from quota.contracts.usage import COMPLETE, COUNTERS

WRITTEN_TOLERANCE_MIN = 10
"""Clocks of brokers differ by less, or it shows."""
NOW_TOLERANCE_MIN = 60
"""Coarser: were this machine behind, every hour's first records would go to the hour before."""
_HOUR_FORMAT = "yyyy-MM-dd'T'HH:00:00'Z'"
BEFORE_ALL = datetime(2000, 1, 1, tzinfo=UTC)
"""Records that were written without a time are stamped -1."""


def parsed(records: DataFrame) -> DataFrame:
    """The Kafka source's rows as text, struct and, for bad ones, the problem."""
    return records.select(
        F.col("value").cast("string").alias("raw"),
        F.col("partition").alias("source_partition"),
        F.col("offset").alias("source_offset"),
        F.col("timestamp").alias("recorded_at"),
        F.from_json(F.col("value").cast("string"), VALUE).alias("record"),
    ).withColumn("problem", problem_of("raw", "record"))


def good(rows: DataFrame) -> DataFrame:
    """What good records of usage say, and where they say it."""
    return rows.where(F.col("problem").isNull() & F.col("record.kind").isNull()).select(
        *(F.col(f"record.{name}").alias(name) for name in FACTS), *PROVENANCE, "recorded_at"
    )


def booked(facts: DataFrame, now: datetime) -> DataFrame:
    """Good records under the hour that they are booked under: the one they tell, unless that had not come yet.

    Brokers tell an hour by their own clock, and one may be ahead. So no record belongs to an hour later than the one in
    which it was written to the topic, nor to one later than now. Who reads it again after that hour has come changes
    nothing: an earlier hour has its counters already.
    """
    return facts.withColumn("hour", F.least("hour", _last_hour(now))).select(*facts.columns)


def statements(rows: DataFrame, now: datetime) -> DataFrame:
    """What brokers say of whole hours, and when that was written to the topic; few.

    A clock that is ahead closes no hour that had not ended when the record was written.
    """
    ended = F.date_format(F.to_timestamp(_last_hour(now)) - F.expr("INTERVAL 1 HOUR"), _HOUR_FORMAT)
    return rows.where(F.col("problem").isNull() & (F.col("record.kind") == COMPLETE)).select(
        "record.broker",
        F.least("record.hour", ended).alias("hour"),
        "record.boot",
        F.concat_ws(",", "record.after").alias("after"),
        F.unix_millis(_stamped(now)).alias("said_at_ms"),
        *PROVENANCE,
    )


def boots(rows: DataFrame, now: datetime) -> DataFrame:
    """Boots of brokers that tell usage of topics: the first and the last hour of it, and when it was first written; few.

    Boots of version 1 are left out: what tells of them does not name all of them again.
    """
    told = rows.where(F.col("problem").isNull() & F.col("record.kind").isNull() & (F.col("record.version") > 1)).select(
        "record.broker",
        F.substring_index("record.boot", ".", 1).alias("boot"),
        F.least("record.hour", _last_hour(now)).alias("hour"),
        F.unix_millis(_stamped(now)).alias("at_ms"),
    )
    return (
        told.groupBy("broker", "boot")
        .agg(F.min("hour").alias("first_hour"), F.max("hour").alias("last_hour"), F.min("at_ms").alias("first_at_ms"))
        .select("broker", "boot", "first_hour", "last_hour", "first_at_ms")
    )


def early_count(facts: DataFrame, now: datetime) -> int:
    """How many tell an hour that had not come."""
    return facts.where(F.col("hour") > _last_hour(now)).count()


def _stamped(now: datetime) -> Column:
    """When a record was written; now, where nobody has said so."""
    return F.when(F.col("recorded_at") > F.lit(BEFORE_ALL), F.col("recorded_at")).otherwise(F.lit(now))


def _last_hour(now: datetime) -> Column:
    """The last hour that a record can belong to."""
    is_stamped = F.col("recorded_at") > F.lit(BEFORE_ALL)
    latest = F.least(
        F.when(is_stamped, F.col("recorded_at") + F.expr(f"INTERVAL {WRITTEN_TOLERANCE_MIN} MINUTES")),
        F.lit(now + timedelta(minutes=NOW_TOLERANCE_MIN)),
    )
    return F.date_format(latest, _HOUR_FORMAT)


def bad(rows: DataFrame) -> DataFrame:
    """The records that were refused, whole."""
    return rows.where(F.col("problem").isNotNull()).select("problem", "raw", *PROVENANCE, "recorded_at")


def maxima(facts: DataFrame) -> DataFrame:
    """The largest counters of each key, with the place of the record that carried them.

    A boot's counters only grow, so one record has all the maxima of its key. Of several that say the same the newest is
    named: it stays longest in the topic.
    """
    largest = F.max(F.struct(*COUNTERS, "source_offset", "source_partition", "broker"))
    return (
        facts.groupBy(*KEY)
        .agg(largest.alias("largest"), *(F.max(name).alias(name) for name in COUNTERS))
        .select(*KEY, "largest.broker", *COUNTERS, "largest.source_partition", "largest.source_offset")
        .select(*MAXIMA)
    )


def lake_rows(facts: DataFrame, batch: str) -> DataFrame:
    """Good records for the lake, in folders by hour and batch. `:` would be escaped in a folder's name: `2026-11-21T09`."""
    return facts.select(
        *(name for name in FACTS if name != "hour"),
        *PROVENANCE,
        "recorded_at",
        F.substring("hour", 1, len("2026-11-21T09")).alias("hour"),
        F.lit(batch).alias("batch"),
    )
