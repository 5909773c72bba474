"""Hours recomputed from `usage_raw`, their roll-ups, and what differs from what is known, as DataFrames: one idea per function.

What is recomputed is SQL alone (`recompute`). Sums are decimals of 38 digits: byte-seconds of a large instance's day are more
than 63 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention
from pyspark.sql.types import DecimalType, LongType, StringType, StructField, StructType

from controlplane.metering.pipeline import recompute, transforms
from controlplane.metering.pipeline.checks import LONGEST_TOPIC
from controlplane.metering.pipeline.comparable import DAY_LENGTH, MIDNIGHT
from controlplane.metering.pipeline.folded import Folded
from controlplane.metering.pipeline.schemas import KEY, MAXIMA
from quota.contracts.usage import COUNTERS, INSTANCE, INSTANCE_COUNTERS, USER

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import SparkSession

WHOLE = "decimal(38,0)"
_COUNTED = [StructField(name, LongType()) for name in COUNTERS]
CAPS = StructType([*(StructField(name, StringType()) for name in ("instance", "boot", "topic")), *_COUNTED])
USED = StructType([*(StructField(name, StringType()) for name in KEY), *_COUNTED])
"""`reconcile_tables.used_read`."""
BILLED = StructType([*(StructField(name, StringType()) for name in ("instance", "month", "hour")), *_COUNTED])
"""`reconcile_tables.billed_read`."""
_VIEW, _CAPS_VIEW = "usage_records", "usage_caps"


def records(raw: DataFrame, now: datetime, cluster: str | None = None) -> DataFrame:
    """All rows that count, those among them that an earlier release refused and this one knows. `cluster`: whose table it is."""
    counted = F.col("kind").isin(transforms.USAGE, transforms.KNOWN, INSTANCE, USER)
    return raw.where(counted).unionByName(transforms.read_again(raw, now, cluster).where(counted))


def instances(spark: SparkSession, names: Sequence[str]) -> DataFrame:
    """Some instances by their ids, to be joined with."""
    return F.broadcast(spark.createDataFrame([(name,) for name in names], "instance string"))


def without(rows: DataFrame, others: DataFrame) -> DataFrame:
    """Rows of all instances but those."""
    return rows.join(others, ["instance"], "left_anti").select(*rows.columns)


def of_instances(rows: DataFrame, wanted: DataFrame) -> DataFrame:
    """Rows of those instances alone."""
    return rows.join(wanted, ["instance"], "left_semi").select(*rows.columns)


def of_hours(records_: DataFrame, start: str, end: str) -> DataFrame:
    """Those that matter to the hours in [start, end): of the boots that told anything of them, from their beginning on.

    In two steps, of which the first reads four columns: then whole folders can be left out.
    """
    spark = records_.sparkSession
    until = records_.where((F.col("day") <= end[:DAY_LENGTH]) & (F.col("booked_hour") < end))
    until.createOrReplaceTempView(_VIEW)
    first = spark.sql(recompute.since_sql(_VIEW), args={"start": start, "end": end}).first()
    since = (first[0] if first is not None else None) or end
    return until.where((F.col("day") >= since[:DAY_LENGTH]) & (F.col("booked_hour") >= since))


def hours(records_: DataFrame, caps: Sequence[tuple[object, ...]], start: str, end: str) -> DataFrame:
    """Usage of topics in [start, end) by key, and the largest counters. `records_`: `of_hours`."""
    spark = records_.sparkSession
    records_.createOrReplaceTempView(_VIEW)
    spark.createDataFrame(list(caps), CAPS).createOrReplaceTempView(_CAPS_VIEW)
    return spark.sql(recompute.hours_sql(_VIEW, _CAPS_VIEW), args={"start": start, "end": end, "since": ""})


def instance_hours(records_: DataFrame, start: str, end: str) -> DataFrame:
    """What was counted of whole instances in [start, end). `records_`: `of_hours`."""
    return _of_view(records_, recompute.instance_hours_sql(_VIEW), start, end)


def user_hours(records_: DataFrame, start: str, end: str) -> DataFrame:
    """What was counted of users in [start, end). `records_`: `of_hours`."""
    return _of_view(records_, recompute.user_hours_sql(_VIEW), start, end)


def _of_view(records_: DataFrame, statement: str, start: str, end: str) -> DataFrame:
    records_.createOrReplaceTempView(_VIEW)
    return records_.sparkSession.sql(statement, args={"start": start, "end": end, "since": ""})


def maxima(records_: DataFrame, start: str) -> DataFrame:
    """The largest counters of each key, as the stream puts them into the database. `records_`: `of_hours`.

    Of each boot that told anything from `start` on it is all that it has told: an hour is a difference, and one that the
    database has without those before it would have their usage, too.
    """
    usage = records_.where(F.col("kind") == transforms.USAGE)
    concerned = usage.where(F.col("booked_hour") >= start).select("boot").distinct()
    facts = usage.join(concerned, ["boot"], "left_semi").select(
        "instance", "boot", "topic", F.col("booked_hour").alias("hour"), "broker", *COUNTERS,
        F.col("partition").alias("source_partition"), F.col("offset").alias("source_offset"),
    )  # fmt: skip
    return transforms.maxima(facts).select(*MAXIMA)


# --- roll-ups -----------------------------------------------------------------------------------------------------------


def hourly(hours_: DataFrame) -> DataFrame:
    """`usage_hourly`: a row for each topic and hour, all brokers and boots together."""
    return _summed(hours_, COUNTERS, "hour", "instance", "topic", "topic_uuid").withColumn("day", _day())


def daily(hourly_: DataFrame) -> DataFrame:
    """`usage_daily`: a row for each topic and day."""
    return _summed(hourly_, COUNTERS, "day", "instance", "topic", "topic_uuid")


def instances_hourly(instance_hours_: DataFrame, records_: DataFrame) -> DataFrame:
    """`usage_instances_hourly`: a row for each instance and hour. `records_`: `of_hours`.

    Not what a boot says in the hour in which the table begins within it: that is all that it has counted since its start.
    """
    key = ["instance", "boot"]
    within = records_.where(F.col("kind") == transforms.KNOWN).select(*key).distinct()
    told = records_.where(F.col("kind") == INSTANCE).join(within, key, "left_semi")
    first = told.groupBy(*key).agg(F.min("booked_hour").alias("hour"))
    whole = instance_hours_.join(first, [*key, "hour"], "left_anti")
    return _summed(whole, INSTANCE_COUNTERS, "hour", "instance").withColumn("day", _day())


def _summed(rows: DataFrame, counters: Sequence[str], *key: str) -> DataFrame:
    sums = (F.sum(F.col(name).cast(WHOLE)).cast(WHOLE).alias(name) for name in counters)
    return rows.groupBy(*key).agg(*sums).select(*key, *counters)


def _day() -> Column:
    return F.substring("hour", 1, DAY_LENGTH)


# --- what differs -------------------------------------------------------------------------------------------------------


def against_database(hours_: DataFrame, used: DataFrame) -> DataFrame:
    """Recomputed hours beside those of the database, by key: each counter twice."""
    return _beside(hours_.select(*KEY, *COUNTERS), used, KEY)


def against_invoices(hours_: DataFrame, billed: DataFrame) -> DataFrame:
    """Recomputed hours of instances beside those that invoices have, of months that were invoiced."""
    invoiced = billed.where(F.col("hour").isNull()).select("instance", "month").distinct()
    sums = _summed(hours_, COUNTERS, "instance", "hour")
    of_months = sums.withColumn("month", F.substring("hour", 1, len("2026-05"))).join(invoiced, ["instance", "month"])
    known = billed.where(F.col("hour").isNotNull()).select("instance", "hour", *COUNTERS)
    beside = _beside(of_months.select("instance", "hour", *COUNTERS), known, ("instance", "hour"))
    return beside.select("instance", F.lit("").alias("boot"), F.lit("").alias("topic"), "hour", *_both())


# --- days that are folded -------------------------------------------------------------------------------------------------


def folded_schema(table: Folded) -> StructType:
    """`reconcile_tables.folded_read`."""
    counters = (StructField(name, DecimalType(38, 0)) for name in table.source.counters)
    return StructType([*(StructField(name, StringType()) for name in (*table.key, table.unit)), *counters])


def folded(hours_: DataFrame, table: Folded) -> DataFrame:
    """Recomputed hours, or instance-hours, as a table of folded days has them."""
    rows = hours_.withColumn("day", _day()) if table.unit == "day" else hours_
    return _summed(rows, table.source.counters, *table.key, table.unit)


def without_beginning(hours_: DataFrame, records_: DataFrame) -> DataFrame:
    """Instances of which a boot told before the table begins: what instances and users had counted until then is not in it.

    So their first hour there would have all of it. Of topics the table begins with what was known (`transforms.KNOWN`).
    """

    def boots(rows: DataFrame) -> DataFrame:
        return rows.withColumn("boot", F.substring_index("boot", ".", 1))  # generations are of one process

    before = boots(records_.where(F.col("kind") == transforms.KNOWN)).select("boot").distinct()
    return boots(hours_).join(before, ["boot"], "left_semi").select("instance").distinct()


def wrong(recomputed: DataFrame, known: DataFrame, table: Folded) -> DataFrame:
    """Rows as they should be, of those that are not, or not there. What records say nothing of is 0."""
    counters, key = table.source.counters, [*table.key, table.unit]
    ours = recomputed.select(*key, *(F.col(name).alias(f"{name}_recomputed") for name in counters))
    theirs = known.select(*key, F.lit(1).alias("there"), *(F.col(name).alias(f"{name}_known") for name in counters))
    zero = F.lit(0).cast(WHOLE)
    differs = [F.coalesce(F.col(f"{name}_recomputed"), zero) != F.col(f"{name}_known") for name in counters]
    rows = ours.join(theirs, key, "full_outer").where(reduce(Column.__or__, differs, F.col("there").isNull()))
    return rows.select(*key, *(F.coalesce(F.col(f"{name}_recomputed"), zero).alias(name) for name in counters))


def changed_by_caps(
    rows: DataFrame, recomputed: DataFrame, without_cap: DataFrame, table: Folded, capped: Sequence[str]
) -> DataFrame:
    """`wrong` rows; of instances that are capped those alone in which the recomputed sums differ from those without the cap."""
    key = [*table.key, table.unit]
    changed = wrong(recomputed, without_cap, table).select(*key)
    is_capped = F.col("instance").isin(*capped)
    return rows.where(~is_capped).unionByName(
        rows.where(is_capped).join(changed, key, "left_semi").select(*rows.columns)
    )


def fallen(recomputed: DataFrame, known: DataFrame, table: Folded) -> list[str]:
    """Instances of which the records say less than is known, up to any hour or day: the table must lack some.

    Late records only add, and move usage to earlier hours.
    """
    counters, key = table.source.counters, ("instance", table.unit)
    beside = _beside(_summed(recomputed, counters, *key), _summed(known, counters, *key), key, counters)
    so_far = Window.partitionBy("instance").orderBy(table.unit)
    less = [F.sum(F.col(f"{name}_recomputed") - F.col(f"{name}_known")).over(so_far) < 0 for name in counters]
    rows = beside.withColumn("less", reduce(Column.__or__, less)).where("less").select("instance").distinct()
    return [row[0] for row in rows.collect()]


def against_folded(recomputed: DataFrame, known: DataFrame, table: Folded) -> DataFrame:
    """Recomputed sums beside those of a table of folded days, as `against_database` has hours of keys."""
    counters, key = table.source.counters, (*table.key, table.unit)
    beside = _beside(recomputed, known, key, counters)
    hour = F.col("hour") if table.unit == "hour" else F.concat("day", F.lit(MIDNIGHT))
    # A user's name stands where a topic's does, as far as there is room.
    named = F.substring(table.key[1], 1, LONGEST_TOPIC) if len(table.key) > 1 else F.lit("")
    return beside.select(
        "instance", F.lit("").alias("boot"), named.alias("topic"), hour.alias("hour"), *_both(counters)
    )


def differing(beside: DataFrame, against: str, counters: Sequence[str] = COUNTERS) -> DataFrame:
    """A row for each counter that is not the same, in the order of `reconcile_tables.Found`."""
    pairs = F.array(
        *(
            F.struct(
                F.lit(name).alias("counter"),
                F.col(f"{name}_recomputed").alias("recomputed"),
                F.col(f"{name}_known").alias("known"),
            )
            for name in counters
        )
    )
    each = beside.select(*KEY, F.inline(pairs)).where(F.col("recomputed") != F.col("known"))
    return each.select(
        F.lit(against).alias("against"), "instance", "hour", "boot", "topic", "counter",
        F.col("recomputed").cast("string"), F.col("known").cast("string"),
    )  # fmt: skip


def _both(counters: Sequence[str] = COUNTERS) -> list[str]:
    return [f"{name}_{side}" for name in counters for side in ("recomputed", "known")]


def _beside(
    recomputed: DataFrame, known: DataFrame, key: Sequence[str], counters: Sequence[str] = COUNTERS
) -> DataFrame:
    """Where either has no row it says 0."""

    def of(rows: DataFrame, side: str) -> DataFrame:
        return rows.select(*key, *(F.col(name).cast(WHOLE).alias(f"{name}_{side}") for name in counters))

    joined = of(recomputed, "recomputed").join(of(known, "known"), list(key), "full_outer")
    zero = F.lit(0).cast(WHOLE)
    return joined.select(*key, *(F.coalesce(F.col(name), zero).alias(name) for name in _both(counters)))
