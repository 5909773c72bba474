"""A Spark driver with Delta Lake that takes batches whenever it is told to: one JVM serves many, until a test has it killed.

`python -m tests.pipeline.raw_driver`: orders on standard input and answers on standard output, a line of JSON each; the
environment is that of the job.

{"take": [[value, partition, offset, "2026-05-01T10:05:00Z"], …], "batch": 7,
    "kill": one of KILLS | "another job is first" (this one lives, and answers "overtaken") | null}
{"held": topic id}
{"reconcile": ["2026-05-01T00:00:00Z", "2026-05-02T00:00:00Z"], "raises": false}
{"sql": statement}              `usage_raw` and others by their names in braces: {usage_raw}
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType, TimestampType

from controlplane.metering.pipeline import session, transforms
from controlplane.metering.pipeline.jobs import reconcile
from controlplane.metering.pipeline.jobs.usage import UsageJob
from controlplane.metering.pipeline.raw_table import OvertakenError, RawTable, uri_of
from controlplane.metering.pipeline.settings import Settings
from controlplane.spark import delta

SOURCE = StructType(
    [
        StructField("value", BinaryType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
    ]
)
"""The columns of Spark's Kafka source that the job reads."""
KILLS = ("before the lake", "while it writes", "after the lake", "after the database")
TOPIC_ID = "t1"
TABLES = ("usage_raw", *reconcile.ROLL_UPS)
APPEND = RawTable.append
TO_LAKE = UsageJob._to_lake


def die() -> None:
    """SIGKILL to this program and its JVM, which are a process group."""
    os.killpg(0, signal.SIGKILL)


def die_when_there_is_another_file(folder: Path) -> None:
    """Data of a commit is there some time before the commit is."""
    before = set(folder.rglob("*.parquet"))

    def watch() -> None:
        while set(folder.rglob("*.parquet")) <= before:
            time.sleep(0.001)
        die()

    threading.Thread(target=watch, daemon=True).start()


def plant(kill: str | None) -> None:
    """Where the next batch dies."""

    def append(table: RawTable, *values: Any) -> int:
        if kill == "before the lake":
            die()
        if kill == "while it writes":
            die_when_there_is_another_file(Path(table.uri))
        if kill == "another job is first":
            table._newest()  # what it knows before the other one writes
            APPEND(RawTable(table._spark, str(Path(table.uri).parent), table._environment), *values)
        count = APPEND(table, *values)
        if kill in ("after the lake", "while it writes"):
            die()
        return count

    def to_lake(job: UsageJob, *values: Any, **options: Any) -> None:
        if kill == "after the database":
            die()
        TO_LAKE(job, *values, **options)

    RawTable.append, UsageJob._to_lake = append, to_lake


class Driver:
    """One start of the job."""

    def __init__(self, spark: SparkSession, settings: Settings) -> None:
        self._spark, self._settings = spark, settings
        self._job = UsageJob(settings, spark, RawTable(spark, settings.lake, settings.environment))
        self._job.topic_id = TOPIC_ID
        self._job.sign_of_life(started=True)

    def take(self, order: dict[str, Any]) -> str:
        rows = [
            (bytearray(value.encode()), partition, offset, datetime.fromisoformat(at))
            for value, partition, offset, at in order["take"]
        ]
        plant(order["kill"])
        parsed = transforms.parsed(self._spark.createDataFrame(rows, SOURCE)).persist()
        try:
            self._job.take(parsed, query="0f3a77c2-query", number=order["batch"])
        except OvertakenError:
            return "overtaken"
        finally:
            parsed.unpersist()
        return "taken"

    def held(self, topic_id: str) -> dict[int, int]:
        return dict(RawTable(self._spark, self._settings.lake, self._settings.environment).held(topic_id))

    def reconcile(self, order: dict[str, Any]) -> dict[str, Any]:
        hours = reconcile.Range(*order["reconcile"])
        now = datetime.now(UTC)
        found = reconcile.reconcile(self._spark, self._settings, hours, now=now, raises=order["raises"])
        return {**found._asdict(), "found": [each._asdict() for each in found.found]}

    def sql(self, statement: str) -> list[list[Any]]:
        names = {name: delta.named(uri_of(self._settings.lake, name)) for name in TABLES}
        rows = self._spark.sql(statement.format(**names)).collect()
        return [
            [str(value) if value is not None and not isinstance(value, int) else value for value in row] for row in rows
        ]


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the JVM inherits standard output, and has things to say there as well
    settings = Settings.read(os.environ)
    spark = session.open_session(settings)
    driver = Driver(spark, settings)
    print(json.dumps({"version": spark.version}), file=answers, flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if "take" in order:
            answer: Any = driver.take(order)
        elif "held" in order:
            answer = driver.held(order["held"])
        elif "reconcile" in order:
            answer = driver.reconcile(order)
        else:
            answer = driver.sql(order["sql"])
        session.archive_write(spark, settings.home)  # what kills follow starts in half of the time
        print(json.dumps(answer), file=answers, flush=True)
    session.close_session(spark)


if __name__ == "__main__":
    main()
