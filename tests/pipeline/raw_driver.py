"""A Spark driver with Delta Lake that takes batches whenever it is told to: one JVM serves many, until a test has it killed.

`python -m tests.pipeline.raw_driver`: orders on standard input and answers on standard output, a line of JSON each; the
environment is that of the job.

{"take": [[value, partition, offset, "2026-05-01T10:05:00Z"], …], "batch": 7,
    "kill": one of KILLS | "another job is first" (this one lives, and answers "overtaken") | null,
    "cluster": "second" | null, the default one, "before_users": true (as a release writes that does not count users) | null,
    "now": "2026-04-29T22:30:00+00:00" | null, the job's clock}
{"held": topic id}
{"reconcile": ["2026-05-01T00:00:00Z", "2026-05-02T00:00:00Z"], "raises": false}
{"run": ["2026-05-01T00:00:00Z", "2026-05-02T00:00:00Z"] | null, "at": "2026-05-02T00:40:00+00:00"}
    the job; null: what is due. Tables that are there have all hours, although they were made today
{"verify": [first hour, the one behind the last]}   as `make killed` reads lake and database
{"sql": statement}              `usage_raw` and others by their names in braces: {usage_raw}
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType, TimestampType

from controlplane.metering.pipeline import runs, session, transforms
from controlplane.metering.pipeline.comparable import Part, Range
from controlplane.metering.pipeline.jobs import reconcile, usage
from controlplane.metering.pipeline.jobs.usage import UsageJob
from controlplane.metering.pipeline.raw_table import OvertakenError, RawTable, uri_of
from controlplane.metering.pipeline.reconcile_tables import Compared
from controlplane.metering.pipeline.settings import DEFAULT_CLUSTER, Settings
from controlplane.spark import delta
from tests.killed.verifier import verified

SOURCE = StructType(
    [
        StructField("value", BinaryType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
    ]
)
"""The columns of Spark's Kafka source that the job reads."""
KILLS = ("before the lake", "while it writes", "after the lake", "before the merge", "after the database")
TOPIC_ID = "t1"
FIRST = "2026-01-01T00:00:00Z"
TABLES = ("usage_raw", *reconcile.ROLL_UPS)
APPEND, WRITE, STAGE = RawTable.append, RawTable._write, UsageJob._stage
NOW_MS = usage._now_ms


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

    def stage(job: UsageJob, *values: Any) -> int:
        staged = STAGE(job, *values)
        if kill == "before the merge":
            die()
        return staged

    RawTable.append, UsageJob._stage = append, stage


def write_as_before(table: RawTable, raw: DataFrame, options: Any) -> None:
    """As a release does that does not count users."""
    WRITE(table, raw.drop(transforms.USER_NAME), options)


def standing(moment: str) -> Callable[[], int]:
    """A clock that stands still."""
    at_ms = int(datetime.fromisoformat(moment).timestamp() * 1000)
    return lambda: at_ms


class Driver:
    """One start of the job."""

    def __init__(self, spark: SparkSession, settings: Settings) -> None:
        self._spark, self._settings = spark, settings
        self._jobs = {DEFAULT_CLUSTER: self._started(DEFAULT_CLUSTER)}

    def _started(self, cluster: str) -> UsageJob:
        settings = replace(self._settings, cluster=cluster)
        job = UsageJob(settings, self._spark, RawTable(self._spark, settings.lake, settings.environment, cluster))
        job.topic_id = TOPIC_ID if cluster == DEFAULT_CLUSTER else f"{TOPIC_ID}-{cluster}"
        job.sign_of_life(started=True)
        return job

    def take(self, order: dict[str, Any]) -> str:
        rows = [
            (bytearray(value.encode()), partition, offset, datetime.fromisoformat(at))
            for value, partition, offset, at in order["take"]
        ]
        plant(order["kill"])
        RawTable._write = write_as_before if order.get("before_users") else WRITE
        usage._now_ms = NOW_MS if order.get("now") is None else standing(order["now"])
        cluster = order.get("cluster") or DEFAULT_CLUSTER
        if cluster not in self._jobs:
            self._jobs[cluster] = self._started(cluster)
        parsed = transforms.parsed(self._spark.createDataFrame(rows, SOURCE)).persist()
        try:
            self._jobs[cluster].take(parsed, query="0f3a77c2-query", number=order["batch"])
            if order["kill"] == "after the database":
                die()
        except OvertakenError:
            return "overtaken"
        finally:
            parsed.unpersist()
        return "taken"

    def held(self, topic_id: str) -> dict[int, int]:
        return dict(RawTable(self._spark, self._settings.lake, self._settings.environment).held(topic_id))

    def reconcile(self, order: dict[str, Any]) -> dict[str, Any]:
        part = Part(Range(*order["reconcile"]), (DEFAULT_CLUSTER,))
        now = datetime.now(UTC)
        return shown(reconcile.reconcile(self._spark, self._settings, part, now=now, raises=order["raises"]))

    def verify(self, order: dict[str, Any]) -> dict[str, Any]:
        start, end = order["verify"]
        return verified(self._spark, self._settings, Range(start, end))

    def run(self, order: dict[str, Any]) -> dict[str, Any]:
        """As the job does it, on the Spark that is there."""
        asked = [] if order["run"] is None else [Range(*order["run"])]
        run, now = runs.Current(0), datetime.fromisoformat(order["at"])
        with (
            patch.object(session, "open_batch_session", lambda *_, **__: self._spark),
            patch.object(session, "close_session", lambda _: None),
            patch.object(RawTable, "begins", lambda table: FIRST if delta.is_table(self._spark, table.uri) else None),
        ):
            done = reconcile.work(self._settings, asked, run, raises=False, now=now)
        return {"done": list(map(shown, done)), "done_to_ms": run.done_to_ms}

    def sql(self, statement: str) -> list[list[Any]]:
        names = {name: delta.named(uri_of(self._settings.lake, name)) for name in TABLES}
        rows = self._spark.sql(statement.format(**names)).collect()
        return [
            [str(value) if value is not None and not isinstance(value, int) else value for value in row] for row in rows
        ]


def shown(compared: Compared) -> dict[str, Any]:
    return {**compared._asdict(), "found": [each._asdict() for each in compared.found]}


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
        elif "verify" in order:
            answer = driver.verify(order)
        elif "run" in order:
            answer = driver.run(order)
        else:
            answer = driver.sql(order["sql"])
        session.archive_write(spark, settings.home)  # what kills follow starts in half of the time
        print(json.dumps(answer), file=answers, flush=True)
    session.close_session(spark)


if __name__ == "__main__":
    main()
