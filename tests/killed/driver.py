"""The stream job, whose driver kills itself at exact points of a batch.

`python -m tests.killed.driver`, with the environment of the job. `SLUICE_TESTS_ORDERS` is a folder. A file `order` in it,
`{"kind": one of POINTS, "batch": 2}`, is taken when the next batch with records begins: in the second batch from then on the
driver and its JVM die there, by SIGKILL to their process group. Before that a line in `deaths` says where it was.

`SLUICE_TESTS_BUG` plants one of BUGS.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from controlplane.metering.pipeline import progress_table, raw_table, tables
from controlplane.metering.pipeline.jobs import usage
from controlplane.metering.pipeline.maxima import STAGED_TABLE, TOPICS
from controlplane.metering.pipeline.raw_table import RawTable
from tests.killed.plan import A_BYTE_MORE, APPENDS_AGAIN, COUNTS_AGAIN, LOSES_RECORDS, POINTS

(BEFORE_LAKE, WRITING, AFTER_LAKE, STAGED, IN_TRANSACTION, BEFORE_COMMIT, AFTER_COMMIT, BEFORE_CHECKPOINT) = POINTS
ORDER, DEATHS = "order", "deaths"
TOO_LATE = f"{AFTER_LAKE}, too late for {WRITING!r}"


class Orders:
    """Which batch dies, and where."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kind, self._left = "", 0

    def batch_begins(self) -> None:
        order = self._folder / ORDER
        if order.exists():
            said = json.loads(order.read_text())
            order.unlink()
            self._kind, self._left = said["kind"], said["batch"]
        self._left -= 1

    def is_for(self, kind: str) -> bool:
        return self._left <= 0 and self._kind == kind

    def at(self, kind: str) -> None:
        """The batch is there now."""
        if self.is_for(kind):
            self.die(kind)

    def die(self, where: str) -> None:
        with (self._folder / DEATHS).open("a") as deaths:
            deaths.write(f"{where}\n")
        os.killpg(0, signal.SIGKILL)
        time.sleep(60)  # the signal ends this thread before the next line of the job

    def die_when_there_is_another_file(self, table: Path) -> None:
        """Data of a commit is there some time before the commit is."""
        before = set(table.glob("day=*/*.parquet"))

        def watch() -> None:
            while set(table.glob("day=*/*.parquet")) <= before:
                time.sleep(0.001)
            self.die(WRITING)

        threading.Thread(target=watch, daemon=True).start()


def plant(orders: Orders) -> None:
    """The job's functions, each with the point before or behind it."""
    append, stage = RawTable.append, usage.UsageJob._stage
    take, batch = usage.UsageJob.take, usage.UsageJob._batch
    merging, advance = tables.merging, progress_table.advance

    def appending(table: RawTable, *values: Any) -> int:
        orders.batch_begins()
        orders.at(BEFORE_LAKE)
        if orders.is_for(WRITING):
            orders.die_when_there_is_another_file(Path(table.uri))
        count = append(table, *values)
        if orders.is_for(WRITING) and count:
            orders.die(TOO_LATE)
        orders.at(AFTER_LAKE)
        return count

    def staging(job: usage.UsageJob, *values: Any) -> int:
        staged = stage(job, *values)
        orders.at(STAGED)
        return staged

    def merging_in_part(*values: Any) -> Iterator[Any]:
        caps, topics, *others = merging(*values)
        yield from (caps, topics)
        orders.at(IN_TRANSACTION)  # rows are there, and what they mean for later hours is not
        yield from others

    def advancing(*values: Any) -> None:
        advance(*values)
        orders.at(BEFORE_COMMIT)

    def taking(job: usage.UsageJob, rows: Any, **options: Any) -> None:
        take(job, rows, **options)
        orders.at(AFTER_COMMIT)

    def of_batch(job: usage.UsageJob, *values: Any) -> None:
        batch(job, *values)
        orders.at(BEFORE_CHECKPOINT)

    RawTable.append, usage.UsageJob._stage = appending, staging
    usage.UsageJob.take, usage.UsageJob._batch = taking, of_batch
    tables.merging, progress_table.advance = merging_in_part, advancing


def plant_bug(bug: str) -> None:
    """One of BUGS, in the job's functions."""
    take, note, merge = usage.UsageJob.take, tables.Database.batch_note, tables.Database.maxima_merge
    batches = itertools.count(1)

    def taking(job: usage.UsageJob, rows: Any, **options: Any) -> None:
        take(job, rows.where("source_partition <> 0") if next(batches) == 3 else rows, **options)

    def noting(database: tables.Database, cursor: Any, *, query: str, batch: int, **options: Any) -> None:
        note(database, cursor, query=f"{query[:8]}-{os.getpid()}", batch=batch, **options)

    def merging_more(database: tables.Database, cursor: Any, run: str, staged: int) -> None:
        first = f"SELECT MIN(id) FROM {STAGED_TABLE} WHERE run = ? AND kind = ?"
        more = f"UPDATE {STAGED_TABLE} SET produced_bytes = produced_bytes + 1 WHERE id = ({first})"
        database.run(cursor, more, (run, TOPICS.kind))
        merge(database, cursor, run, staged)

    if bug == APPENDS_AGAIN:
        raw_table.fresh = lambda known, topic_id, spans: spans
    elif bug == COUNTS_AGAIN:
        tables.Database.batch_note = noting
    elif bug == LOSES_RECORDS:
        usage.UsageJob.take = taking
    elif bug == A_BYTE_MORE:
        tables.Database.maxima_merge = merging_more


if __name__ == "__main__":
    plant_bug(os.environ.get("SLUICE_TESTS_BUG", ""))
    plant(Orders(Path(os.environ["SLUICE_TESTS_ORDERS"])))
    sys.exit(usage.main())
