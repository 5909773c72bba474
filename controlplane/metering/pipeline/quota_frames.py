"""From minutes to days, as DataFrames: one idea per function. What a day is then called is `quota_days.row_of`'s.

A minute has of each resource what was used, what was in force and how long somebody waited; a day has of each instance and
resource one row. The only shuffle is by instance and resource, 1440 minutes each.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from controlplane.metering.pipeline.quota_days import PERCENTILES, RESOURCES

MINUTE_OF = ("use", "limit", "throttled_ms")
MINUTES = StructType(
    [
        StructField("instance", StringType()),
        StructField("at", LongType()),
        *(StructField(f"{resource}_{name}", LongType()) for resource in RESOURCES for name in MINUTE_OF),
    ]
)
"""In seconds since 1970, bytes a second or bytes, and milliseconds. A limit of null is none."""
EARLIER = StructType(
    [
        StructField("instance", StringType()),
        StructField("resource", StringType()),
        StructField("days_before", IntegerType()),
        StructField("p95", LongType()),
    ]
)
WAITS = StructType(
    [
        StructField("instance", StringType()),
        StructField("resource", StringType()),
        StructField("under_limit_ms", LongType()),
    ]
)
_KEY = ["instance", "resource"]


def uses(minutes: DataFrame) -> DataFrame:
    """A row for each minute and resource."""
    of_resource = F.array(
        *(
            F.struct(
                F.lit(resource).alias("resource"), *(F.col(f"{resource}_{name}").alias(name) for name in MINUTE_OF)
            )
            for resource in RESOURCES
        )
    )
    return minutes.select("instance", "at", F.inline(of_resource))


def days(uses_: DataFrame) -> DataFrame:
    """The minutes of one day added up, by instance and resource."""

    def at(percent: int, value: str) -> str:
        return f"CAST(percentile_disc({percent / 100}) WITHIN GROUP (ORDER BY {value}) AS BIGINT)"

    permille = "CASE WHEN `limit` > 0 THEN use * 1000 div `limit` END"
    return uses_.groupBy(*_KEY).agg(
        F.max_by("limit", "at").alias("limit"),
        *(F.expr(at(percent, "use")).alias(f"p{percent}") for percent in PERCENTILES),
        F.max("use").alias("most"),
        F.expr(at(95, permille)).alias("used_permille"),
        F.count("*").alias("minutes"),
        F.count(F.when(F.col("throttled_ms") > 0, 1)).alias("throttled_minutes"),
        F.sum("throttled_ms").alias("throttled_ms"),
    )


def with_earlier(days_: DataFrame, earlier: DataFrame) -> DataFrame:
    """Beside each row the 95th percentiles of days before, four weeks of them at most."""
    points = earlier.groupBy(*_KEY).agg(F.collect_list(F.struct("days_before", "p95")).alias("earlier"))
    return days_.join(points, _KEY, "left")


def with_waits(days_: DataFrame, waits: DataFrame) -> DataFrame:
    """Beside each row how long clients waited below their limit."""
    sums = waits.groupBy(*_KEY).agg(F.sum("under_limit_ms").alias("under_limit_ms"))
    return days_.join(sums, _KEY, "left")
