"""What Hadoop's file systems are told of a destination: keys of a bucket, for example. They go from a file into the JVM's memory.

Spark's own options go over the JVM's command line, where every user of the machine can read them; these do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BUCKET = "s3a://"


def is_bucket(uri: str) -> bool:
    """Whether it needs the jars for buckets."""
    return uri.startswith(_BUCKET)


def use(spark: SparkSession, text: str) -> None:
    """Have this session use options of Hadoop, and whatever its executors do for it."""
    configuration = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001  # it has no public one
    for name, value in properties_of(text).items():
        configuration.set(name, value)


def properties_of(text: str) -> dict[str, str]:
    """`name=value` lines; `#` begins a comment."""
    lines = [line.strip() for line in text.splitlines()]
    pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
    return {name.strip(): value.strip() for name, _, value in pairs}
