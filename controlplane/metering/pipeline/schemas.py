"""What a usage record looks like to Spark, and the columns of each stage. The contract is quota/contracts/usage.py."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType, StructField, StructType

from quota.contracts.usage import COUNTERS, INSTANCE_COUNTERS

VALUE = StructType(
    [
        StructField("version", IntegerType()),
        StructField("kind", StringType()),
        StructField("cluster", StringType()),
        StructField("broker", IntegerType()),
        StructField("boot", StringType()),
        StructField("hour", StringType()),
        StructField("instance", StringType()),
        StructField("topic", StringType()),
        StructField("topic_id", StringType()),
        StructField("user", StringType()),
        StructField("after", ArrayType(StringType())),
        *(StructField(counter, LongType()) for counter in (*COUNTERS, *INSTANCE_COUNTERS)),
    ]
)
"""The value's JSON, of any kind and version."""

KEY = ("instance", "boot", "topic", "hour")
"""The identity of a row, in the order of the database's unique index."""

FACTS = (*KEY, "broker", *COUNTERS)
"""What a good record says."""

PROVENANCE = ("source_partition", "source_offset")
"""Where in `__usage` it said so."""

MAXIMA = (*FACTS, *PROVENANCE)
"""One row per key: what goes to the database."""
