"""From what Spark's Kafka source hands over to rows of the table: one idea per DataFrame -> DataFrame function.

    topic_id partition offset timestamp_ms timestamp_type key value headers     of every record, as it is in the topic
    data problem                                                                with a schema: what the JSON in `value` says,
                                                                                or why it says nothing

A record that does not fit the schema is a row like any other: with a `problem` and without `data`. One without a value
(a tombstone of a compacted topic) has neither. `timestamp_type` is Kafka's: 0 the producer's clock, 1 the broker's.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention
from pyspark.sql.types import StringType, StructType

from controlplane.lake.checksum import MODULUS, Total
from controlplane.lake.manifest import Schema
from controlplane.lake.planning import Spans
from controlplane.lake.schema_types import alike
from controlplane.lake.timestamps import kafka_ms

NOT_JSON = "the value is not a JSON object"
NOT_OF_SCHEMA = "the value does not fit the schema"


def raw(records: DataFrame, topic_id: str) -> DataFrame:
    """The columns that every row has."""
    return records.select(
        F.lit(topic_id).alias("topic_id"),
        "partition",
        "offset",
        kafka_ms(F.col("timestamp")).alias("timestamp_ms"),
        F.col("timestampType").alias("timestamp_type"),
        "key",
        "value",
        F.coalesce("headers", F.array().cast("array<struct<key:string,value:binary>>")).alias("headers"),
    )


def typed(rows: DataFrame, schema: Schema) -> DataFrame:
    """With `data` and `problem`, if the table has a schema."""
    if schema.type is None:
        return rows
    wanted = StructType.fromJson(dict(schema.type))
    malformed = malformed_column(wanted.names)
    text = F.col("value").cast("string")
    # `from_json` takes the first member of an array for the object: not here, the others would be missing in silence.
    is_object = F.try_parse_json(text).isNotNull() & text.rlike(r"^\s*\{")
    read = F.from_json(
        text,
        StructType([*wanted.fields]).add(malformed, StringType()),
        {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": malformed},
    )
    problem = (
        F.when(F.col("value").isNull(), None)
        .when(~is_object, NOT_JSON)
        .when(F.col("_read").isNull() | F.col(f"_read.{malformed}").isNotNull(), NOT_OF_SCHEMA)
    )
    fine = F.col("value").isNotNull() & F.col("problem").isNull()
    return (
        rows.withColumn("_read", read)
        .withColumn("problem", problem)
        .withColumn("data", F.when(fine, F.col("_read").dropFields(malformed)))
        .select(*rows.columns, "data", "problem")
    )


def malformed_column(names: Iterable[str]) -> str:
    """Where Spark's parser puts text that it cannot read: beside these members of the values, and named like none of them."""
    taken = set().union(*map(alike, names))
    name = "_malformed"
    while not taken.isdisjoint(alike(name)):
        name += "_"
    return name


def totals(rows: DataFrame) -> tuple[dict[int, Total], int]:
    """Rows, bytes and checksum by partition (see `checksum`), and how many rows have a problem."""
    problems = F.count("problem") if "problem" in rows.columns else F.lit(0)
    hashed = F.conv(F.substring(F.sha2(_record_bytes(), 256), 1, 16), 16, 10).cast("decimal(20,0)")
    found = (
        rows.groupBy("partition")
        .agg(
            F.count("*").alias("rows"),
            F.sum(_length("key") + _length("value")).alias("bytes"),
            F.sum(hashed).alias("checksum"),
            problems.alias("problems"),
        )
        .collect()
    )
    by_partition = {row["partition"]: Total(row["rows"], row["bytes"], int(row["checksum"]) % MODULUS) for row in found}
    return by_partition, sum(row["problems"] for row in found)


def within(topic_id: str, spans: Spans) -> str:
    """A predicate for the rows of these offsets, in SQL."""
    parts = [
        f"(partition = {partition} AND offset >= {span.first} AND offset < {span.end})"
        for partition, span in sorted(spans.items())
        if span.size
    ]
    # Kafka's ids are of letters, digits, '-' and '_'.
    return f"topic_id = '{topic_id}' AND ({' OR '.join(parts) or 'false'})"


def _length(name: str) -> Column:
    return F.coalesce(F.octet_length(name), F.lit(0)).cast("bigint")


def _record_bytes() -> Column:
    headers = F.aggregate(
        "headers",
        F.lit(b""),
        lambda before, header: F.concat(before, _sized(header["key"].cast("binary")), _sized(header["value"])),
    )
    parts = [
        _number(F.col("partition"), 4), _number(F.col("offset"), 8), _number(F.col("timestamp_ms"), 8),
        _sized(F.col("key")), _sized(F.col("value")), _number(F.size("headers"), 4), headers,
    ]  # fmt: skip
    return reduce(F.concat, parts)


def _number(number: Column, length: int) -> Column:
    """Big-endian; `hex` writes a negative number as two's complement of eight bytes."""
    return F.unhex(F.lpad(F.hex(number.cast("bigint")), 2 * length, "0"))


def _sized(content: Column) -> Column:
    return F.when(content.isNull(), F.lit(b"\xff\xff\xff\xff")).otherwise(
        F.concat(_number(F.octet_length(content), 4), content)
    )
