"""A Spark driver that loads whenever it is told to: one JVM serves many loads, until a test has it killed.

`python -m tests.lake.driver`: orders on standard input and answers on standard output, a line of JSON each.

{"load": [words of the command line], "kill": "before the commit" | "while it writes" | "after the commit" |
    "another load is first" (this one lives) | "nothing may be replaced" (so does this one) | null}
{"verify": [words of the command line]}
{"audit": [words of the command line of `mirror_audit`]}
{"moments": [milliseconds]}               what the column `timestamp_ms` has of records with these timestamps; or why not
{"sql": statement}                      rows as lists, binary as hexadecimal text
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from controlplane.lake import load, mirror_audit, table, verify
from controlplane.lake.manifest import Manifest
from controlplane.lake.request import Request
from controlplane.lake.table import Table
from controlplane.lake.timestamps import kafka_ms, why
from controlplane.spark.archive import archive_write
from controlplane.spark.session import close_session, jvm_of, open_session

COMMIT, MOST_REPLACED = Table.commit, table.MOST_REPLACED


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


def planted(kill: str | None) -> Any:
    """A commit at which the driver dies, or is overtaken."""

    def commit(table: Table, rows: DataFrame, manifest: Manifest, replaced: str | None, *, widens: bool) -> None:
        if kill == "another load is first":
            COMMIT(table, rows, replace(manifest, load="another"), replaced, widens=widens)
        if kill == "before the commit":
            die()
        if kill == "while it writes":
            die_when_there_is_another_file(Path(table.uri.removeprefix("file:")))
        COMMIT(table, rows, manifest, replaced, widens=widens)
        if kill is not None:
            die()

    return commit


def plain(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if hasattr(value, "asDict"):
        return {name: plain(member) for name, member in value.asDict().items()}
    return [plain(member) for member in value] if isinstance(value, list) else value


def as_loaded(spark: SparkSession, moments: list[int]) -> list[int] | str:
    """As the source converts timestamps, and `columns.raw` what comes of it. The offset is the place in the list."""
    jvm = jvm_of(spark)
    micros = map(
        jvm.org.apache.spark.sql.catalyst.util.DateTimeUtils.fromJavaTimestamp, map(jvm.java.sql.Timestamp, moments)
    )
    rows = spark.createDataFrame(list(enumerate(micros)), "offset bigint, micros bigint")
    rows = rows.select("offset", F.lit(0).alias("partition"), F.timestamp_micros("micros").alias("timestamp"))
    try:
        found = rows.select("offset", kafka_ms(F.col("timestamp")).alias("ms")).sort("offset").collect()
    except PySparkException as error:
        return why(error)
    return [row["ms"] for row in found]


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the JVM inherits standard output, and has things to say there as well
    wanted = load.setup(os.environ)
    spark = open_session(wanted)
    print(json.dumps({"version": spark.version}), file=answers, flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if "sql" in order:
            answer: Any = [[plain(member) for member in row] for row in spark.sql(order["sql"]).collect()]
        elif "moments" in order:
            answer = as_loaded(spark, order["moments"])
        elif "verify" in order:
            status, lines = verify.run(spark, order["verify"], lambda _: None)
            answer = {"status": status, "lines": lines}
        elif "audit" in order:
            said_of: list[str] = []
            status, lines = mirror_audit.run(spark, mirror_audit.Request.read(order["audit"]), said_of.append)
            answer = {"status": status, "lines": lines, "said": said_of}
        else:
            said: list[str] = []
            Table.commit = planted(order["kill"])
            table.MOST_REPLACED = -(2**60) if order["kill"] == "nothing may be replaced" else MOST_REPLACED
            status, summary = load.run(spark, Request.read(order["load"]), said.append)
            if status == 0:
                archive_write(spark, wanted.home, wanted.jars)  # what kills follow starts in half of the time
            answer = {"status": status, "said": said, "summary": list(summary.lines()) if summary else []}
        print(json.dumps(answer), file=answers, flush=True)
    close_session(spark)


if __name__ == "__main__":
    main()
