"""``python -m tests.benchmarks.folding``: days of usage folded, and their key rows deleted, at a million of these.

`--instances` with `--topics` on `--brokers` for `--days`, a key row each hour, written as the stream leaves them. Then each day
is folded and the key rows of all are deleted, as beat's task does both. Says how long a day and a slice of the deletion take, how
many rows and bytes there are before and after, and how long an answer takes; SQLite, or PostgreSQL with `--postgresql`, where one
is installed. Before and after, the sums are the same. Figures in `var/reports/folding.json`.

Bytes are of the tables with their indexes. A database gives deleted rows' room to rows that come, and the disk nothing back by
itself: `after_bytes` is what there is once that was asked for (VACUUM; of PostgreSQL VACUUM FULL).
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from tests.benchmarks.pipeline import _database
from tests.benchmarks.report import keep, progress

REPORT = Path("var/reports/folding.json")
FIRST = datetime(2026, 11, 1, tzinfo=UTC)
ROWS_AT_ONCE = 20_000


def hour(number: int) -> str:
    """From the first on."""
    return f"{FIRST + timedelta(hours=number):%Y-%m-%dT%H}:00:00Z"


def key_rows(options: argparse.Namespace) -> Iterator[tuple[Any, ...]]:
    """All of them, hour after hour, with what the rows before them know."""
    keys = [
        (f"ins-{instance:08}", f"b{broker}", f"topic-{topic}", broker, 1000 * (1 + topic))
        for instance in range(options.instances)
        for topic in range(options.topics)
        for broker in range(options.brokers)
    ]
    for number in range(24 * options.days):
        for instance, boot, topic, broker, each in keys:
            now, before = each * (number + 1), each * number
            yield (
                instance, boot, topic, hour(number), broker, now, 3 * now, 3600 * now, before, 3 * before, 3600 * before,
                0, number, 0,
            )  # fmt: skip


def written(database: Any, options: argparse.Namespace) -> int:
    """Into the table, past the stream's upsert: the rows are what it leaves."""
    columns = (
        "instance, boot, topic, hour, broker, produced_bytes, consumed_bytes, stored_byte_seconds, produced_bytes_before,"
        " consumed_bytes_before, stored_byte_seconds_before, source_partition, source_offset, updated_at_ms"
    )
    statement = f"INSERT INTO metering_usagemaximum ({columns}) VALUES ({', '.join('?' * 14)})"
    rows, count = key_rows(options), 0
    while portion := list(islice(rows, ROWS_AT_ONCE)):
        with database.transaction() as cursor:
            database.run_many(cursor, statement, portion)
        count += len(portion)
    return count


def measured(url: str, options: argparse.Namespace) -> dict[str, Any]:
    """All of it, on an empty database."""
    from controlplane.env import Environment
    from controlplane.metering.pipeline import folded
    from controlplane.metering.pipeline.tables import Database

    say = progress()
    database = Database(Environment.read({"DATABASE_URL": url}))
    count = written(database, options)
    say(f"{count:,} key rows")
    before_bytes, before = size(database, url), answer(database)
    say(f"{before_bytes:,} bytes; an instance's hours in {before[1] * 1000:.1f} ms")
    folded.begin(database)
    days, slices, since = [], [], ""
    for day in range(options.days):
        began, until = time.monotonic(), hour(24 * (day + 1))
        assert folded.fold(database, since=since, until=until)
        days.append(time.monotonic() - began)
        since = until
    say(f"a day folded in {max(days):.2f} s")
    is_left = True
    while is_left:
        began = time.monotonic()
        is_left = folded.sweep(database, folded.NOBODY)
        slices.append(time.monotonic() - began)
    after = answer(database)
    assert after[0] == before[0], "the answer is another one"
    kept = folded.rows_kept(database)
    sums = {each.table: next(database.read(f"SELECT COUNT(*) FROM {each.table}"))[0] for each in folded.FOLDED}
    say(f"{len(slices)} slices in {sum(slices):.1f} s, the longest {max(slices) * 1000:.0f} ms; {kept} kept, {sums}")
    vacuum(database, url)
    after_bytes = size(database, url)
    say(f"{after_bytes:,} bytes; an instance's hours in {after[1] * 1000:.1f} ms")
    database.close()
    return {
        "database": url.partition(":")[0], "key_rows": count, "before_bytes": before_bytes, "after_bytes": after_bytes,
        "rows_of_a_day": count // options.days, "day_s": [round(each, 3) for each in days], "slices": len(slices),
        "deletion_s": round(sum(slices), 2), "longest_slice_s": round(max(slices), 3), "kept": kept, "sums": sums,
        "answer_before_ms": round(before[1] * 1000, 1), "answer_after_ms": round(after[1] * 1000, 1),
    }  # fmt: skip


def answer(database: Any) -> tuple[list[tuple[Any, ...]], float]:
    """An instance's hours as readers get them, and how long that took."""
    from controlplane.metering.pipeline.folded import TOPIC_HOURS

    scope = ("ins-00000000", hour(0), hour(24 * 40))
    began = time.monotonic()
    rows = [(row[0], *TOPIC_HOURS.counters_of(row[1:])) for row in database.read(TOPIC_HOURS.hours_sql(), scope * 2)]
    return rows, time.monotonic() - began


def size(database: Any, url: str) -> int:
    """Of all tables of metering with their indexes."""
    if url.startswith("sqlite"):
        ((pages,), (each,)) = (next(database.read(f"PRAGMA {name}")) for name in ("page_count", "page_size"))
        return int(pages * each)
    statement = "SELECT SUM(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relname LIKE ?"
    return int(next(database.read(statement, ["metering_%"]))[0])


def vacuum(database: Any, url: str) -> None:
    """Give back to the disk what is not used any more."""
    database.close()
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        connection.execute("VACUUM")
        connection.close()
        return
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM FULL")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name, default in (("instances", 20), ("topics", 100), ("brokers", 3), ("days", 7)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--postgresql", action="store_true")
    options = parser.parse_args(arguments)
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    django.setup()
    from tests.pipeline.conftest import tables_make

    with (
        tempfile.TemporaryDirectory() as name,
        _database(Path(name), postgresql=options.postgresql) as url,
    ):
        tables_make(url)
        keep(REPORT, measured(url, options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
