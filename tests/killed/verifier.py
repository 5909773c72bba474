"""Reads `usage_raw` and compares it with a database as the job `reconcile` does: one JVM for a whole campaign.

`python -m tests.killed.verifier`: orders on standard input and answers on standard output, a line of JSON each.

{"lake": …, "database": URL, "from": "2026-05-01T10:00:00Z", "to": …}
{"held": {partition: next offset, as commits say it}, "places": {partition: [rows, different offsets, the last of them, the sum of
    offsets, that of all counters of topics]}, "keys": compared with the database, "differences": how many, "found": [some]}

The program `reconcile --from --to` refuses hours of a day that is not over; so its function is called.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from controlplane.metering.pipeline import raw_table, session
from controlplane.metering.pipeline.comparable import Part, Range
from controlplane.metering.pipeline.jobs import reconcile
from controlplane.metering.pipeline.settings import DEFAULT_CLUSTER, Settings
from controlplane.spark import delta

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def verified(spark: SparkSession, settings: Settings, hours: Range) -> dict[str, Any]:
    """One lake and one database."""
    table = delta.named(raw_table.uri_of(settings.lake, raw_table.NAME))
    told = "COALESCE(produced_bytes, 0) + COALESCE(consumed_bytes, 0) + COALESCE(stored_byte_seconds, 0)"
    rows = spark.sql(
        "SELECT topic_id, partition, COUNT(*), COUNT(DISTINCT offset), MAX(offset), CAST(SUM(offset) AS STRING),"
        f" CAST(SUM(CAST({told} AS DECIMAL(38, 0))) AS STRING)"
        f" FROM {table} WHERE kind <> 'known' GROUP BY topic_id, partition"
    ).collect()
    topics = {row[0] for row in rows}
    assert len(topics) == 1, f"records of {len(topics)} topics"
    held = raw_table.RawTable(spark, settings.lake, settings.environment).held(topics.pop())
    part = Part(hours, (DEFAULT_CLUSTER,))
    compared = reconcile.reconcile(spark, settings, part, now=datetime.now(UTC), rolls_up=False)
    return {
        "held": dict(held),
        "places": {row[1]: [*row[2:5], *map(int, row[5:])] for row in rows},
        "keys": compared.keys,
        "differences": compared.differences,
        "found": [each._asdict() for each in compared.found[:5]],
    }


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the JVM inherits standard output, and has things to say there as well
    settings = Settings.read(os.environ)
    spark = session.open_batch_session(settings, "killed", with_delta=True)
    print(json.dumps({"version": spark.version}), file=answers, flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        settings = Settings.read({**os.environ, "SLUICE_LAKE": order["lake"], "DATABASE_URL": order["database"]})
        answer = verified(spark, settings, Range(order["from"], order["to"]))
        print(json.dumps(answer), file=answers, flush=True)
    session.close_session(spark)


if __name__ == "__main__":
    main()
