"""One idea per function, DataFrame in and DataFrame out; each ends in a `select` that is its schema."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from controlplane.metering.pipeline.checks import problem_of
from controlplane.metering.pipeline.maxima import INSTANCES, STAGED, TOPICS, USERS
from controlplane.metering.pipeline.schemas import FACTS, KEY, MAXIMA, PROVENANCE, VALUE
from quota.contracts.usage import COMPLETE, COUNTERS, INSTANCE, INSTANCE_COUNTERS, USER, USER_COUNTERS

WRITTEN_TOLERANCE_MIN = 10
"""Clocks of brokers differ by less, or it shows."""
NOW_TOLERANCE_MIN = 60
"""Coarser: were this machine behind, every hour's first records would go to the hour before."""
HOUR_FORMAT = "yyyy-MM-dd'T'HH:00:00'Z'"
BEFORE_ALL = datetime(2000, 1, 1, tzinfo=UTC)
"""Records that were written without a time are stamped -1."""


def parsed(records: DataFrame, cluster: str | None = None) -> DataFrame:
    """The Kafka source's rows as text, struct and, for bad ones, the problem. `cluster`: whose topic they are from."""
    return records.select(
        F.col("value").cast("string").alias("raw"),
        F.col("partition").alias("source_partition"),
        F.col("offset").alias("source_offset"),
        F.col("timestamp").alias("recorded_at"),
        F.from_json(F.col("value").cast("string"), VALUE).alias("record"),
    ).withColumn("problem", problem_of("raw", "record", cluster))


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
    return rows.where(F.col("problem").isNull() & (F.col("record.kind") == COMPLETE)).select(
        "record.broker",
        F.least("record.hour", _ended_before(now)).alias("hour"),
        "record.boot",
        F.concat_ws(",", "record.after").alias("after"),
        F.unix_millis(_stamped(now)).alias("said_at_ms"),
        *PROVENANCE,
    )


def largest(rows: DataFrame, now: datetime) -> DataFrame:
    """The largest counters of each topic, instance and user on a boot in an hour, in columns `STAGED`: a row of each key."""
    topics = _staged(maxima(booked(good(rows), now)), TOPICS.kind, F.col("topic"))
    instances = _staged(instance_maxima(rows, now), INSTANCES.kind, F.lit(""))
    return topics.union(instances).union(_staged(user_maxima(rows, now), USERS.kind, F.col(USER_NAME)))


def _staged(found: DataFrame, kind: str, name: Column) -> DataFrame:
    """Counters that the kind does not have are 0."""
    given = {"kind": F.lit(kind), "name": name, **{column: F.col(column) for column in found.columns}}
    return found.select(*(given.get(column, F.lit(0).cast("bigint")).alias(column) for column in STAGED))


def instance_maxima(rows: DataFrame, now: datetime) -> DataFrame:
    """The largest counters of whole instances, as `maxima` has those of topics; booked by the same rule."""
    return _largest(_of_kind(rows, INSTANCE, INSTANCE_COUNTERS, now), ("instance", "boot", "hour"), INSTANCE_COUNTERS)


def user_maxima(rows: DataFrame, now: datetime) -> DataFrame:
    """The largest counters of users, likewise."""
    facts = _of_kind(rows, USER, USER_COUNTERS, now, F.col("record.user").alias(USER_NAME))
    return _largest(facts, ("instance", "boot", USER_NAME, "hour"), USER_COUNTERS)


def _of_kind(rows: DataFrame, kind: str, counters: Sequence[str], now: datetime, *more: Column) -> DataFrame:
    said = rows.where(F.col("problem").isNull() & (F.col("record.kind") == kind))
    return said.select(
        *(F.col(f"record.{name}").alias(name) for name in ("instance", "boot", "broker", *counters)),
        *more,
        F.least("record.hour", _last_hour(now)).alias("hour"),
        *PROVENANCE,
    )


def _largest(facts: DataFrame, key: Sequence[str], counters: Sequence[str]) -> DataFrame:
    newest = F.max_by(F.struct("broker", *PROVENANCE), F.struct(*counters, "source_offset"))
    return (
        facts.groupBy(*key)
        .agg(newest.alias("newest"), *(F.max(name).alias(name) for name in counters))
        .select(*key, "newest.broker", *counters, *(f"newest.{name}" for name in PROVENANCE))
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


USER_NAME = "user_name"
"""Since users are counted: tables of before may lack it."""
RAW = (
    "topic_id", "partition", "offset", "recorded_at", "day", "kind", "version", "cluster", "broker", "boot", "hour",
    "booked_hour", "instance", "topic", "topic_uuid", *COUNTERS, *INSTANCE_COUNTERS, "after", "problem", "raw",
    USER_NAME,
)  # fmt: skip
"""Of `usage_raw`. `kind`: usage, instance, user, complete, bad, known; `topic_id` is that of `__usage`, `topic_uuid` the
tenant's."""
USAGE, BAD, KNOWN = "usage", "bad", "known"
_KNOWN_OF_KEY = StructType(
    [
        *(StructField(name, StringType()) for name in ("instance", "boot", "topic", "booked_hour")),
        StructField("broker", IntegerType()),
        *(StructField(name, LongType()) for name in COUNTERS),
    ]
)


def known_rows(spark: SparkSession, rows: Sequence[tuple[object, ...]], now: datetime) -> DataFrame:
    """What the database knew of keys when `usage_raw` was made, in columns RAW: largest counters, and no records.

    `rows`: instance, boot, topic, hour, broker and counters.
    """
    known = spark.createDataFrame(list(rows), _KNOWN_OF_KEY, verifySchema=False)
    day = F.substring("booked_hour", 1, len("2026-11-21"))
    given = {
        "topic_id": F.lit(""), "recorded_at": F.lit(now), "day": day, "kind": F.lit(KNOWN), "hour": F.col("booked_hour"),
        **{name: F.col(name) for name in known.columns},
    }  # fmt: skip
    types = {"partition": "int", "offset": "bigint", "version": "int", "after": "array<string>"}
    types |= dict.fromkeys(INSTANCE_COUNTERS, "bigint")
    return known.select(*(given.get(name, F.lit(None).cast(types.get(name, "string"))).alias(name) for name in RAW))


def raw_rows(rows: DataFrame, topic_id: str, now: datetime) -> DataFrame:
    """Every row of a batch for `usage_raw`: what it says, where and when it says so, and under which hour that is booked.

    Of a record that was refused its text is kept, of others not: the columns say as much.
    """
    is_good, record = F.col("problem").isNull(), F.col("record")
    kind = F.when(is_good, F.coalesce(record["kind"], F.lit(USAGE))).otherwise(F.lit(BAD))
    latest = F.when(record["kind"] == COMPLETE, _ended_before(now)).otherwise(_last_hour(now))
    booked = F.when(is_good, F.least(record["hour"], latest))
    members = (
        "version", "cluster", "broker", "boot", "hour", "instance", "topic", *COUNTERS, *INSTANCE_COUNTERS, "after",
    )  # fmt: skip
    return rows.select(
        F.lit(topic_id).alias("topic_id"),
        F.col("source_partition").alias("partition"),
        F.col("source_offset").alias("offset"),
        "recorded_at",
        F.substring(F.coalesce(booked, F.date_format(_stamped(now), HOUR_FORMAT)), 1, len("2026-11-21")).alias("day"),
        kind.alias("kind"),
        *(F.when(is_good, record[name]).alias(name) for name in members),
        F.when(is_good, record["topic_id"]).alias("topic_uuid"),
        F.when(is_good, record["user"]).alias(USER_NAME),
        booked.alias("booked_hour"),
        "problem",
        F.when(~is_good, F.col("raw")).alias("raw"),
    ).select(*RAW)


def read_again(raw: DataFrame, now: datetime, cluster: str | None = None) -> DataFrame:
    """Rows of `usage_raw` that were refused, as this release reads them: those that it knows by now, good, in columns RAW.

    `cluster`: whose table it is. What names another cluster stays refused.

    They are few, and kept once they are parsed: into a plan that parses, Spark pushes every later filter, with as many copies of
    all the checks as it mentions them, and planning takes longer than the work.
    """
    refused = raw.where(F.col("kind") == BAD).select(
        F.col("raw").cast("binary").alias("value"),
        "partition",
        "offset",
        F.col("recorded_at").alias("timestamp"),
    )
    return raw_rows(parsed(refused, cluster).persist(), "", now).where(F.col("kind") != BAD)


def _ended_before(now: datetime) -> Column:
    """The last hour that had ended when a record was written."""
    return F.date_format(F.to_timestamp(_last_hour(now)) - F.expr("INTERVAL 1 HOUR"), HOUR_FORMAT)


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
    return F.date_format(latest, HOUR_FORMAT)


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
