"""What our programs want of Delta Lake, wherever the table is: `file:`, `s3a:`, `hdfs:`, or a path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.spark.session import jvm_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPTIONS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""All that Delta wants of a session."""
_CONFLICTS = ("ConcurrentTransactionException", "ConcurrentAppendException", "ConcurrentDelete", "ConcurrentWriteException",
              "MetadataChangedException", "ProtocolChangedException", "DELTA_CONCURRENT")  # fmt: skip


def is_table(spark: SparkSession, uri: str) -> bool:
    """Whether a table is there."""
    tables = jvm_of(spark).io.delta.tables
    return bool(tables.DeltaTable.isDeltaTable(spark._jsparkSession, uri))  # noqa: SLF001  # see jvm_of


def named(uri: str) -> str:
    """The table in a statement of SQL."""
    name = uri.replace("`", "``")
    return f"delta.`{name}`"


def commits(spark: SparkSession, uri: str, *, newest: int | None = None) -> list[str | None]:
    """The `userMetadata` of the table's commits, the newest first: all that the log has, or so many."""
    limit = "" if newest is None else f" LIMIT {newest}"
    history = spark.sql(f"DESCRIBE HISTORY {named(uri)}{limit}")
    rows = history.select("version", "userMetadata").collect()
    return [row["userMetadata"] for row in sorted(rows, key=lambda row: row["version"], reverse=True)]


def bytes_in_use(spark: SparkSession, uri: str) -> tuple[int, int]:
    """Of the files that the table is made of now, and of all that lie in its folder, without its log."""
    live = spark.sql(f"DESCRIBE DETAIL {named(uri)}").select("sizeInBytes").first()
    path = jvm_of(spark).org.apache.hadoop.fs.Path(uri)
    files = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())  # noqa: SLF001  # see jvm_of
    log = jvm_of(spark).org.apache.hadoop.fs.Path(path, "_delta_log")
    whole = files.getContentSummary(path).getLength() - files.getContentSummary(log).getLength()
    return int(live[0] if live is not None else 0), int(whole)


def vacuum(spark: SparkSession, uri: str, *, hours: int) -> None:
    """Delete files that no version of the last hours needs; programs that read an older one find them no more."""
    checked = "spark.databricks.delta.retentionDurationCheck.enabled"
    spark.conf.set(checked, "false")  # it wants a week
    try:
        spark.sql(f"VACUUM {named(uri)} RETAIN {hours} HOURS")
    finally:
        spark.conf.unset(checked)


def is_conflict(error: BaseException) -> bool:
    """Whether a commit failed because another program has changed the table meanwhile."""
    return any(word in str(error) for word in _CONFLICTS)
