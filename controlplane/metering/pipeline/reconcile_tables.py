"""The reconciliation's side of the database, by DB-API: what executors read, what the driver asks, and what it writes.

Executors read usage and invoices an instance at a time, each by a connection of its own; the driver knows the instances' ids and
nothing else of them. What differs is written in one transaction with the row that says what was compared. Tables are Django's:
`metering` has the usage, `billing` the invoices.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple

from controlplane.env import Environment
from controlplane.metering.pipeline import comparable, folded
from controlplane.metering.pipeline.billed import billed_hours
from controlplane.metering.pipeline.comparable import TOLD_WITHIN_MS, Looked, Range
from controlplane.metering.pipeline.folded import FOLDED, TOPIC_HOURS, grown
from controlplane.metering.pipeline.maxima import CAP_TABLE, MAXIMUM_TABLE
from controlplane.metering.pipeline.progress_table import PROGRESS_TABLE
from controlplane.metering.pipeline.schedule import DAY_MS
from controlplane.metering.pipeline.settings import DEFAULT_CLUSTER
from controlplane.metering.pipeline.tables import Database, put_in_portions
from quota.contracts.usage import COUNTERS

RECONCILIATION_TABLE, DIFFERENCE_TABLE = "metering_reconciliation", "metering_difference"
INVOICE_TABLE = "billing_invoice"
CLUSTER_TABLE, INSTANCE_TABLE = "clusters_physicalcluster", "instances_instance"
KEPT_MS = 400 * DAY_MS
MOST_DIFFERENCES = 1000
"""Of one run, that are kept; all are counted."""


class Found(NamedTuple):
    """A counter that is not what the records say."""

    against: str  # what it was compared with: "database" or "invoices"
    instance: str
    hour: str
    boot: str  # "": of all
    topic: str  # "": of all
    counter: str
    recomputed: str  # whole numbers; sums may be longer than 63 bits
    known: str


class Compared(NamedTuple):
    """What one run has compared."""

    start: str  # hours from here on
    end: str  # not included
    keys: int  # hours of a topic on a boot, and hours of invoices
    differences: int
    raised: int  # keys that were put into the database again
    found: Sequence[Found] = ()
    gone: Sequence[str] = ()  # clusters that were left out: see `comparable`
    begins_later: Sequence[str] = ()
    with_late: bool = True  # no hours were named: what had come late was looked for


def used_read(environment: Environment, start: str, end: str, instance: str) -> Iterator[tuple[Any, ...]]:
    """(instance, boot, topic, hour, counters) as the database has them, of the hours in [start, end), none of which is folded."""
    used = ", ".join(grown(name) for name in COUNTERS)
    yield from _read(
        environment,
        f"SELECT instance, boot, topic, hour, {used} FROM {MAXIMUM_TABLE} WHERE instance = ? AND hour >= ? AND hour < ?",  # noqa: S608
        [instance, start, end],
    )


def folded_read(
    environment: Environment, number: int, start: str, end: str, instance: str
) -> Iterator[tuple[Any, ...]]:
    """(key, hour or day, counters) of the table FOLDED[number], of hours [start, end): whole days, all of them folded.

    Counters are decimals: they may be longer than 63 bits.
    """
    table = FOLDED[number]
    cut = len(start if table.unit == "hour" else start[: comparable.DAY_LENGTH])
    keys = len(table.key) + 1
    rows = _read(
        environment,
        f"SELECT {', '.join(table.columns)} FROM {table.table} WHERE instance = ? AND {table.unit} >= ? AND {table.unit} < ?",  # noqa: S608
        [instance, start[:cut], end[:cut]],
    )
    for row in rows:
        yield (*row[:keys], *map(Decimal, table.counters_of(row[keys:])))


def folded_put(environment: Environment, number: int, rows: Iterable[Sequence[Any]]) -> Iterator[int]:
    """Rows of the table FOLDED[number], (key, hour or day, counters), in place of what it has of them; how many.

    Of days that are not folded there must be none: `Reconciled.folded_to`.
    """
    table = FOLDED[number]
    keys = len(table.key) + 1

    def put(database: Database, cursor: Any, portion: list[Any]) -> None:
        values = [table.values(row[:keys], [int(each) for each in row[keys:]]) for row in portion]
        database.run_many(cursor, table.put_sql(), sorted(values))

    return put_in_portions(environment, rows, put)


def billed_read(environment: Environment, start: str, end: str, instance: str) -> Iterator[tuple[Any, ...]]:
    """(instance, month, hour, counters) as invoices have them, of the hours in [start, end); an invoiced month has one row more.

    That row has no hour: it says that the month was billed, whatever it came to.
    """
    rows = _read(
        environment,
        f"SELECT month, inputs FROM {INVOICE_TABLE} WHERE instance_id = ? AND month >= ?",  # noqa: S608
        [instance, start[: len("2026-05")]],
    )
    for month, hours in sorted(billed_hours(rows).items()):
        if month <= end[: len("2026-05")]:
            yield instance, month, None, 0, 0, 0
            for hour, counters in sorted(hours.items()):
                if start <= hour < end:
                    yield instance, month, hour, *counters


def maxima_raise(environment: Environment, now_ms: int, rows: Iterable[Sequence[Any]]) -> Iterator[int]:
    """Rows in the order of `TOPICS.columns` but for the last, put into the database as the stream does; how many."""

    def put(database: Database, cursor: Any, portion: list[Any]) -> None:
        database.maxima_raise(cursor, [(*row, now_ms) for row in portion])

    return put_in_portions(environment, rows, put)


class Reconciled:
    """What the driver asks and writes."""

    def __init__(self, environment: Environment) -> None:
        self._database = Database(environment)

    def close(self) -> None:
        """Give up the connection."""
        self._database.close()

    def instances(self, start: str, end: str) -> list[str]:
        """Those that have usage in these hours, or an invoice of their months."""
        months = (start[: len("2026-05")], end[: len("2026-05")])
        used = f"SELECT DISTINCT instance FROM {MAXIMUM_TABLE} WHERE hour >= ? AND hour < ?"  # noqa: S608
        billed = f"SELECT DISTINCT instance_id FROM {INVOICE_TABLE} WHERE month >= ? AND month <= ?"  # noqa: S608
        rows = [*self._database.read(used, [start, end]), *self._database.read(billed, months)]
        for table in FOLDED:
            first, last = (hour[: comparable.DAY_LENGTH] if table.unit == "day" else hour for hour in (start, end))
            within = f"SELECT DISTINCT instance FROM {table.table} WHERE {table.unit} >= ? AND {table.unit} < ?"  # noqa: S608
            rows += self._database.read(within, [first, last])
        return sorted({instance for (instance,) in rows})

    def folded_to(self) -> str:
        """The first hour that is not folded; "": none is. While a reconciliation runs it does not move (metering/folding.py)."""
        with self._database.transaction() as cursor:
            return folded.horizon(self._database, cursor).folded_to

    def clusters(self) -> list[str]:
        """Those whose stream has read anything, and has a table of raw records; the default one where none has."""
        rows = self._database.read(f"SELECT DISTINCT cluster FROM {PROGRESS_TABLE} WHERE next_offset > 0")  # noqa: S608
        return sorted(name for (name,) in rows) or [DEFAULT_CLUSTER]

    def retired(self) -> list[str]:
        """Clusters that nobody reads any more."""
        rows = self._database.read(f"SELECT name FROM {CLUSTER_TABLE} WHERE state = 'retired' ORDER BY name")  # noqa: S608
        return [name for (name,) in rows]

    def used(self, cluster: str, hours: Range) -> bool:
        """Whether the database has usage of a cluster's instances in some hours."""
        statement = (
            f"SELECT 1 FROM {INSTANCE_TABLE} i JOIN {CLUSTER_TABLE} c ON c.id = i.cluster_id"  # noqa: S608
            " JOIN {} m ON m.instance = i.id WHERE c.name = ? AND m.hour >= ? AND m.hour < ? LIMIT 1"
        )
        values = [cluster, hours.start, hours.end]
        tables = (MAXIMUM_TABLE, TOPIC_HOURS.table)
        return any(list(self._database.read(statement.format(table), values)) for table in tables)

    def instances_on(self, clusters: Sequence[str]) -> list[str]:
        """All instances of some clusters, also those that are deleted."""
        if not clusters:
            return []
        names = ", ".join("?" * len(clusters))
        rows = self._database.read(
            f"SELECT i.id FROM {INSTANCE_TABLE} i JOIN {CLUSTER_TABLE} c ON c.id = i.cluster_id WHERE c.name IN ({names})",  # noqa: S608
            clusters,
        )
        return sorted(instance for (instance,) in rows)

    def caps(self) -> list[tuple[Any, ...]]:
        """(instance, boot, topic, counters): up to where counters are believed."""
        return list(self._database.read(f"SELECT instance, boot, topic, {', '.join(COUNTERS)} FROM {CAP_TABLE}"))  # noqa: S608

    def capped_since(self, at_ms: int) -> list[tuple[str, str, str]]:
        """(instance, boot, topic) of the caps that were set after a moment."""
        rows = self._database.read(f"SELECT instance, boot, topic, set_at FROM {CAP_TABLE}")  # noqa: S608
        return sorted(tuple(key) for *key, set_at in rows if _moment_ms(set_at) >= at_ms)

    def days_due(self) -> list[date]:
        """Whole days that the stream has read for certain and that no run has compared, oldest first: see `comparable`."""
        return comparable.days_due(self.last_day(), self._looks(), cache(self.used))

    def done_to_ms(self) -> int | None:
        """Up to when every day that can be compared has been; None: none can be."""
        last, due = self.last_day(), self.days_due()
        if last is None:
            return None
        return _midnight_ms(due[0] if due else last + timedelta(days=1))

    def compared_to_ms(self, cluster: str) -> int | None:
        """See `comparable.since_ms`."""
        return comparable.since_ms(self._looks(), cluster)

    def note(self, compared: Compared, at_ms: int) -> None:
        """What was compared, and what differed."""
        with self._database.transaction() as cursor:
            self._database.run(
                cursor,
                f"INSERT INTO {RECONCILIATION_TABLE} (start_hour, end_hour, at_ms, compared, different, raised, gone,"  # noqa: S608
                " begins_later, with_late) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
                [
                    compared.start, compared.end, at_ms, compared.keys, compared.differences, compared.raised,
                    json.dumps(list(compared.gone)), json.dumps(list(compared.begins_later)), compared.with_late,
                ],
            )  # fmt: skip
            number = cursor.fetchone()[0]
            columns = ", ".join(Found._fields)
            self._database.run_many(
                cursor,
                f"INSERT INTO {DIFFERENCE_TABLE} (reconciliation_id, {columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                [(number, *found) for found in compared.found[:MOST_DIFFERENCES]],
            )
            forgotten = f"reconciliation_id IN (SELECT id FROM {RECONCILIATION_TABLE} WHERE at_ms < ?)"  # noqa: S608
            for statement in (
                f"DELETE FROM {DIFFERENCE_TABLE} WHERE {forgotten}",  # noqa: S608
                f"DELETE FROM {RECONCILIATION_TABLE} WHERE at_ms < ?",  # noqa: S608
            ):
                self._database.run(cursor, statement, [at_ms - KEPT_MS])

    def last_day(self) -> date | None:
        """The last whole day that the stream has read for certain; None: none yet."""
        read_to = self._read_to_ms()
        if read_to is None:
            return None
        return _day_of((read_to - TOLD_WITHIN_MS) // DAY_MS * DAY_MS) - timedelta(days=1)

    def _looks(self) -> list[Looked]:
        rows = self._database.read(f"SELECT start_hour, end_hour, at_ms, gone, with_late FROM {RECONCILIATION_TABLE}")  # noqa: S608
        return [Looked(start, end, int(at_ms), _names(gone), bool(late)) for start, end, at_ms, gone, late in rows]

    def _read_to_ms(self) -> int | None:
        """Of all clusters that are not retired: nobody reads of those any more."""
        statement = (
            f"SELECT COUNT(*), COUNT(complete_to_ms), MIN(complete_to_ms) FROM {PROGRESS_TABLE}"  # noqa: S608
            f" WHERE cluster NOT IN (SELECT name FROM {CLUSTER_TABLE} WHERE state = 'retired')"
        )
        rows, known, least = next(self._database.read(statement))
        return int(least) if rows and rows == known else None


def _names(document: Any) -> tuple[str, ...]:
    """Of a JSON column: text in SQLite, and in PostgreSQL what its client has made of it."""
    return tuple(json.loads(document) if isinstance(document, str | bytes) else document)


def _moment_ms(moment: Any) -> int:
    """Of a column with a moment: in SQLite a text without a zone, which is UTC."""
    read = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return int((read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp() * 1000)


def _day_of(at_ms: int) -> date:
    return datetime.fromtimestamp(at_ms / 1000, UTC).date()


def _midnight_ms(day: date) -> int:
    return (day.toordinal() - date(1970, 1, 1).toordinal()) * DAY_MS


def _read(environment: Environment, statement: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    database = Database(environment)
    try:
        yield from database.read(statement, values)
    finally:
        database.close()
