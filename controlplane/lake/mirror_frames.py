"""Two topics beside each other, record by record: one idea per DataFrame -> DataFrame function.

Offsets of a topic and its copy differ, so records go by their number within the partition. Of a record as much is kept as can be
compared, whatever its size: a hash of its key, of its value and of its headers, and its time. The hashes are xxHash64: they tell
faults, not forgeries.

    partition number offset key value headers time
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from controlplane.lake.checksum import MODULUS

PARTS = ("key", "value", "headers", "time")
MARK = "sluice-mirror"
"""The header that a mirror gives to what it copies; its value is the source's name."""


@dataclass(frozen=True, slots=True)
class First:
    """The first record of a partition that is not the same on both sides."""

    number: int
    source_offset: int
    target_offset: int
    parts: tuple[str, ...]  # of PARTS


@dataclass(frozen=True, slots=True)
class Side:
    """What a topic has of a partition."""

    records: int = 0
    checksum: int = 0


@dataclass(frozen=True, slots=True)
class Audited:
    """Of one partition. Records behind the last one of the target are its lag, not a difference."""

    partition: int
    source: Side
    target: Side
    differing: int = 0  # of the records that both have by number
    first: First | None = None
    missing: int = 0  # of the source, whatever their order; looked for where there is a difference
    foreign: int = 0  # of the target, likewise

    @property
    def is_equal(self) -> bool:
        return not self.differing and self.target.records <= self.source.records

    @property
    def lag(self) -> int:
        """Records of the source that the target has not yet, where what it has is equal."""
        return self.source.records - self.target.records if self.is_equal else 0

    @property
    def line(self) -> str:
        """For people."""
        name = f"partition {self.partition}"
        if self.is_equal:
            behind = f", {self.lag} behind" if self.lag else ""
            return f"{name}: equal, {self.target.records} records{behind}, checksum {self.target.checksum:016x}"
        where = "the target has more records than the source"
        if self.first is not None:
            what = " and ".join(self.first.parts)
            where = (
                f"from record {self.first.number} on, at offset {self.first.source_offset} of the source and"
                f" {self.first.target_offset} of the target: another {what}"
            )
        return (
            f"{name}: DIFFERENT {where}; {self.source.records} records, {self.target.records} in the target, which lacks"
            f" {self.missing} of them and has {self.foreign} others"
        )


def within(records: DataFrame, from_ms: int | None, to_ms: int | None) -> DataFrame:
    """Those of a time: from the one moment to before the other."""
    time = F.unix_millis("timestamp")
    records = records if from_ms is None else records.where(time >= from_ms)
    return records if to_ms is None else records.where(time < to_ms)


def of_source(records: DataFrame, name: str | None) -> DataFrame:
    """Of a target that several sources are copied into, what a mirror has marked as one's."""
    if name is None:
        return records
    is_it = F.exists("headers", lambda each: (each["key"] == MARK) & (each["value"] == F.lit(name.encode())))
    return records.where(F.coalesce(is_it, F.lit(False)))  # a column


def numbered(records: DataFrame) -> DataFrame:
    """What is compared of each record. A mirror's mark is no difference."""
    headers = F.coalesce("headers", F.array().cast("array<struct<key:string,value:binary>>"))
    slim = records.select(
        "partition",
        "offset",
        F.xxhash64("key").alias("key"),
        F.xxhash64("value").alias("value"),
        F.xxhash64(F.filter(headers, lambda each: each["key"] != MARK)).alias("headers"),
        F.unix_millis("timestamp").alias("time"),
        F.col("timestampType").alias("time_type"),
    )
    in_order = Window.partitionBy("partition").orderBy("offset")
    return slim.withColumn("number", F.row_number().over(in_order) - 1)


def stamps_itself(rows: DataFrame) -> bool:
    """Whether the topic has times of its brokers' clocks."""
    [(kind,)] = rows.agg(F.max("time_type")).collect()
    return bool(kind == 1)


def without_times(rows: DataFrame) -> DataFrame:
    """With the same time everywhere."""
    return rows.withColumn("time", F.lit(0).cast("bigint"))


def audited(source: DataFrame, target: DataFrame) -> dict[int, Audited]:
    """By partition; one that has no record on either side is left out."""
    joined = source.alias("s").join(target.alias("t"), ["partition", "number"], "full_outer")
    both = F.col("s.offset").isNotNull() & F.col("t.offset").isNotNull()
    differ = {part: F.col(f"s.{part}") != F.col(f"t.{part}") for part in PARTS}
    is_other = both & reduce(or_, differ.values())
    what = F.struct(
        "number",
        F.col("s.offset").alias("source_offset"),
        F.col("t.offset").alias("target_offset"),
        *(F.coalesce(other, F.lit(False)).alias(part) for part, other in differ.items()),
    )
    found = (
        joined.groupBy("partition")
        .agg(
            F.count("s.offset").alias("source"), F.count("t.offset").alias("target"),
            _checksum("s").alias("source_sum"), _checksum("t").alias("target_sum"),
            F.count(F.when(is_other, 1)).alias("differing"),
            F.min(F.when(is_other, what)).alias("first"),
        )
        .collect()
    )  # fmt: skip
    made = {}
    for row in found:
        first = row["first"]
        made[row["partition"]] = Audited(
            row["partition"],
            Side(row["source"], int(row["source_sum"] or 0) % MODULUS),
            Side(row["target"], int(row["target_sum"] or 0) % MODULUS),
            row["differing"],
            None if first is None else _first(first),
        )
    return made


def _first(row: Row) -> First:
    parts = tuple(part for part in PARTS if row[part])
    return First(row["number"], row["source_offset"], row["target_offset"], parts)


def unmatched(source: DataFrame, target: DataFrame, partitions: list[int]) -> dict[int, tuple[int, int]]:
    """Of these partitions, records of the source that the target lacks, and others that it has, whatever their order."""
    content = F.xxhash64(*PARTS).alias("content")
    each = [
        rows.where(F.col("partition").isin(partitions)).select("partition", content, F.lit(sign).alias("sign"))
        for rows, sign in ((source, 1), (target, -1))
    ]
    surplus = each[0].unionAll(each[1]).groupBy("partition", "content").agg(F.sum("sign").alias("of_source"))
    found = (
        surplus.groupBy("partition")
        .agg(F.sum(F.greatest("of_source", F.lit(0))), F.sum(F.greatest(-F.col("of_source"), F.lit(0))))
        .collect()
    )
    return {partition: (missing, foreign) for partition, missing, foreign in found}


def _checksum(side: str) -> Column:
    hashed = F.xxhash64("number", *(F.col(f"{side}.{part}") for part in PARTS))
    return F.sum(F.when(F.col(f"{side}.offset").isNotNull(), hashed.cast("decimal(38,0)")))
