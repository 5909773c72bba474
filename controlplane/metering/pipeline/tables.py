"""The database's side of the job, by DB-API: SQLite or PostgreSQL, as DATABASE_URL says. The tables are Django's.

Largest counters are staged, by whoever has them, and merged by one transaction: the statements are `maxima`'s.

`batch_note` is guarded by (query, batch), so that a batch that runs again is not counted twice. Both share one
transaction.

A job reads the topic of one cluster, and what it says of itself has the cluster's name: broker ids and partitions of `__usage`
are others in each. Maxima need none: an instance is on one cluster, and a boot is one broker's.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Any

from controlplane.env import Environment
from controlplane.metering.pipeline.maxima import CAP_TABLE, STAGED_TABLE, TOPICS, Maxima, merging, staging
from controlplane.metering.pipeline.positions import Moved
from controlplane.metering.pipeline.settings import DEFAULT_CLUSTER
from controlplane.metering.pipeline.statements import Boot, Statement, superseded
from controlplane.spark.errors import PlainError

STATUS_TABLE = "metering_pipelinestatus"
STATEMENT_TABLE = "metering_statement"
BOOT_TABLE = "metering_boot"
WAIVER_TABLE = "metering_brokerwaiver"
LOCK_PATIENCE_S = 30
ROWS_AT_ONCE = 1000


class StagingError(PlainError):
    """What was staged is not there any more, or nothing was: the tables stay as they were."""


class Database:
    """One connection, made when it is needed and again after it broke. Each thread that writes has one of its own.

    On a shared one, SQLite's second BEGIN fails and takes the connection from under the first transaction, and
    PostgreSQL lets either commit what the other has half done. `patience_s`: how long a statement waits for a lock.
    """

    def __init__(
        self, environment: Environment, *, cluster: str = DEFAULT_CLUSTER, patience_s: float = LOCK_PATIENCE_S
    ) -> None:
        self.cluster = cluster  # whose rows of the job are read and written
        self._settings = environment.database()
        self._is_sqlite: bool = self._settings["ENGINE"].endswith("sqlite3")
        self._patience_s = patience_s
        self._connection: Any = None
        self._in_use = threading.Lock()

    @property
    def is_sqlite(self) -> bool:
        """Whether it is; otherwise PostgreSQL."""
        return self._is_sqlite

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Any]:
        """A cursor; committed at the end, rolled back and closed on any error. RuntimeError where one is under way."""
        if not self._in_use.acquire(blocking=False):
            raise RuntimeError("a transaction is under way: another writer needs a connection of its own")
        try:
            connection = self._connect()
            cursor = connection.cursor()
            if self._is_sqlite:
                cursor.execute("BEGIN IMMEDIATE")  # the writer's lock now: a read first would make it fail later
            yield cursor
            connection.commit()
        except BaseException:
            self.close()
            raise
        finally:
            self._in_use.release()

    def close(self) -> None:
        """Forget the connection; what it had not committed is gone."""
        if self._connection is not None:
            with contextlib.suppress(Exception):
                self._connection.close()
            self._connection = None

    def run(self, cursor: Any, statement: str, values: Sequence[Any] = ()) -> int:
        """One statement with ``?`` for values; how many rows it changed."""
        cursor.execute(self._dialect(statement), values)
        return int(cursor.rowcount)

    def run_many(self, cursor: Any, statement: str, values: Iterable[Sequence[Any]]) -> None:
        """One statement with each of the values."""
        cursor.executemany(self._dialect(statement), values)

    def writers_wait(self, cursor: Any, table: str) -> None:
        """Nobody else writes to the table before the transaction is over: what it reads there stays so.

        To be called before the transaction writes to it: two that had would wait for each other.
        """
        if not self._is_sqlite:  # SQLite has one writer anyhow
            cursor.execute(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE")

    def rows_are_looked_up(self, cursor: Any) -> None:
        """Until the end of the transaction: few rows of a large table, whatever the planner believes of how many there are."""
        if not self._is_sqlite:  # which joins in no other way
            cursor.execute("SET LOCAL enable_hashjoin = off")
            cursor.execute("SET LOCAL enable_mergejoin = off")

    def read(self, statement: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Rows, one after the other, in no transaction of ours: no writer waits for them."""
        connection = self._connect()
        # PostgreSQL's client would take all of them into memory, if it had no cursor at the server.
        cursor = connection.cursor() if self._is_sqlite else connection.cursor("rows")
        try:
            cursor.execute(self._dialect(statement), values)
            yield from cursor
        finally:
            cursor.close()
            if not self._is_sqlite:
                connection.rollback()

    def staged_remove(self, cursor: Any) -> None:
        """What runs of this cluster have staged that died before they merged it."""
        self.run(cursor, f"DELETE FROM {STAGED_TABLE} WHERE cluster = ?", (self.cluster,))  # noqa: S608

    def maxima_stage(self, cursor: Any, run: str, rows: Iterable[Sequence[Any]], now_ms: int) -> None:
        """Rows in the order of `maxima.STAGED`, for the run to merge. Again, if need be, to no effect.

        In the order of keys: two attempts at one task have its rows in orders of their own, and would wait for each other.
        """
        self.run_many(cursor, staging(), ((run, self.cluster, *row, now_ms) for row in sorted(map(tuple, rows))))

    def maxima_merge(self, cursor: Any, run: str, staged: int) -> None:
        """All that the run has staged, up to what operators have capped; it is staged no more then. Raises StagingError.

        Another job of this cluster waits, since it may raise rows of the same owners: neither would see what the other has not
        committed, and both would count it. Other clusters have other instances.
        """
        if not self._is_sqlite:  # SQLite has one writer anyhow
            # Whoever sets a cap now waits until this is committed, and lowers what it brought.
            cursor.execute(f"LOCK TABLE {CAP_TABLE} IN SHARE MODE")
            self.run(cursor, "SELECT pg_advisory_xact_lock(hashtext(?))", (f"{STAGED_TABLE} {self.cluster}",))
        self.rows_are_looked_up(cursor)
        found = 0
        for statement, values in merging(run):
            found = self.run(cursor, statement, values)
        if found != staged:  # by the last one, which removes them: so none can have gone while the others ran
            raise StagingError(f"{found} of {staged} rows are staged: another job of this cluster removed them")

    def maxima_raise(self, cursor: Any, rows: Sequence[Sequence[Any]], kind: Maxima = TOPICS) -> None:
        """Rows in the order of `kind.columns`, one of each key, of any clusters: staged and merged at once.

        The streams of all clusters wait meanwhile, as in `maxima_merge`.
        """
        self.writers_wait(cursor, CAP_TABLE)  # every merge locks it
        run = uuid.uuid4().hex
        for now_ms, some in groupby(rows, key=lambda row: row[-1]):
            self.maxima_stage(cursor, run, map(kind.staged, some), now_ms)
        self.maxima_merge(cursor, run, len(rows))

    def batch_note(
        self, cursor: Any, *, query: str, batch: int, seen: int, refused: int, newest_ms: int | None, early: int = 0
    ) -> None:
        """Count a batch, once."""
        self.run(
            cursor,
            f"UPDATE {STATUS_TABLE} SET records = records + ?, bad_records = bad_records + ?,"  # noqa: S608
            " early_records = early_records + ?, query = ?, batch = ?,"
            " last_record_at_ms = CASE WHEN ? > COALESCE(last_record_at_ms, 0) THEN ? ELSE last_record_at_ms END"
            " WHERE cluster = ? AND (query <> ? OR batch < ?)",
            (seen, refused, early, query, batch, newest_ms or 0, newest_ms or 0, self.cluster, query, batch),
        )

    def statements_note(self, cursor: Any, topic_id: str, rows: Iterable[Sequence[Any]]) -> None:
        """(broker, hour, boot, after, said at in ms, partition, offset): what brokers say of whole hours, in their order."""
        statement = (
            f"INSERT INTO {STATEMENT_TABLE}"  # noqa: S608
            " (broker, hour, boot, after, said_at_ms, source_partition, source_offset, topic_id, cluster)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (topic_id, source_partition, source_offset) DO NOTHING"
        )
        for row in sorted((tuple(row) for row in rows), key=lambda row: row[-2:]):
            self.run(cursor, statement, (*row, topic_id, self.cluster))

    def boots_note(self, cursor: Any, rows: Iterable[Sequence[Any]]) -> None:
        """(broker, boot, first hour, last hour, first written at in ms): boots that have told usage, in any order and again."""
        extremes = (("first_hour", "<"), ("last_hour", ">"), ("first_at_ms", "<"))
        taken = (
            f"{name} = CASE WHEN excluded.{name} {sign} {BOOT_TABLE}.{name} THEN excluded.{name} ELSE {BOOT_TABLE}.{name} END"
            for name, sign in extremes
        )
        statement = (
            f"INSERT INTO {BOOT_TABLE} (cluster, broker, boot, first_hour, last_hour, first_at_ms, is_told)"  # noqa: S608
            f" VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (cluster, broker, boot) DO UPDATE SET {', '.join(taken)}"
        )
        for row in sorted(tuple(row) for row in rows):
            self.run(cursor, statement, (self.cluster, *row, False))

    def _boots(self, cursor: Any) -> dict[int, list[Boot]]:
        """Those that no statement accounts for that was dropped, by broker."""
        self.run(
            cursor,
            f"SELECT broker, boot, first_hour, last_hour, first_at_ms FROM {BOOT_TABLE}"  # noqa: S608
            " WHERE cluster = ? AND is_told = ? ORDER BY broker, first_at_ms, boot",
            (self.cluster, False),
        )
        boots = [Boot(*row) for row in cursor.fetchall()]
        return {broker: list(some) for broker, some in groupby(boots, key=lambda boot: boot.broker)}

    def statements_settle(self, cursor: Any, read_to_ms: int) -> None:
        """Drop what says no more than what is certain, all having been read that was written up to a moment.

        Which boots it accounted for is kept.
        """
        statement = f"SELECT id, broker, hour, boot, after, said_at_ms FROM {STATEMENT_TABLE} WHERE cluster = ?"  # noqa: S608
        self.run(cursor, f"{statement} ORDER BY broker, id", (self.cluster,))
        rows = [
            Statement(number, broker, hour, boot, tuple(filter(None, after.split(","))), said_at_ms)
            for number, broker, hour, boot, after, said_at_ms in cursor.fetchall()
        ]
        self.run(cursor, f"SELECT boot FROM {WAIVER_TABLE} WHERE boot <> ''")  # noqa: S608
        judged = {boot for (boot,) in cursor.fetchall()}
        boots = self._boots(cursor)
        for broker, of_broker in groupby(rows, key=lambda row: row.broker):
            certain, ids = superseded(list(of_broker), read_to_ms, judged, boots.get(broker, ()))
            for boot in boots.get(broker, ()):
                if boot.boot in certain.accounted:
                    told = f"UPDATE {BOOT_TABLE} SET is_told = ? WHERE cluster = ? AND broker = ? AND boot = ?"  # noqa: S608
                    self.run(cursor, told, (True, self.cluster, broker, boot.boot))
            if ids:
                assert certain.last is not None
                self.run(cursor, f"UPDATE {STATEMENT_TABLE} SET hour = ? WHERE id = ?", (certain.hour, certain.last.id))  # noqa: S608
                for each in ids:
                    self.run(cursor, f"DELETE FROM {STATEMENT_TABLE} WHERE id = ?", (each,))  # noqa: S608

    def movement_note(self, cursor: Any, moved: Moved) -> None:
        """What Spark said of the query."""
        values = (moved.at_ms, moved.batch_ms, moved.batch_records, self.cluster)
        what = "moved_at_ms = ?, batch_ms = ?, batch_records = ?"
        self.run(cursor, f"UPDATE {STATUS_TABLE} SET {what} WHERE cluster = ?", values)  # noqa: S608

    def sign_of_life(self, cursor: Any, *, now_ms: int, problem: str = "", started: bool = False) -> None:
        """Say that the job is there, or what keeps it from working."""
        self.run(
            cursor,
            f"INSERT INTO {STATUS_TABLE} (cluster, query, batch, records, bad_records, started_at_ms, seen_at_ms, problem)"  # noqa: S608
            " VALUES (?, '', -1, 0, 0, ?, ?, ?)"
            " ON CONFLICT (cluster) DO UPDATE SET seen_at_ms = excluded.seen_at_ms, problem = excluded.problem,"
            f" started_at_ms = CASE WHEN ? THEN excluded.started_at_ms ELSE {STATUS_TABLE}.started_at_ms END",
            (self.cluster, now_ms, now_ms, problem, started),
        )

    def still_there(self, cursor: Any, *, now_ms: int) -> None:
        """Say that the job's process is there, and nothing else. Before its first sign of life there is nothing to add to."""
        self.run(cursor, f"UPDATE {STATUS_TABLE} SET seen_at_ms = ? WHERE cluster = ?", (now_ms, self.cluster))  # noqa: S608

    def _dialect(self, statement: str) -> str:
        return statement if self._is_sqlite else statement.replace("?", "%s")

    def _connect(self) -> Any:
        if self._connection is None:
            self._connection = self._sqlite() if self._is_sqlite else self._postgresql()
        return self._connection

    def _sqlite(self) -> Any:
        # The job's batches come one at a time, on whichever thread py4j has.
        connection = sqlite3.connect(
            self._settings["NAME"], timeout=self._patience_s, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA synchronous=NORMAL")
        return connection

    def _postgresql(self) -> Any:
        import psycopg  # noqa: PLC0415  # only where it is used: the job starts sooner without

        names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
        given = {theirs: self._settings[ours] for ours, theirs in names.items() if self._settings[ours]}
        connection = psycopg.connect(**given, **self._settings["OPTIONS"])
        connection.execute(f"SET lock_timeout = {round(self._patience_s * 1000)}")
        connection.commit()
        return connection


def put_in_portions(
    environment: Environment, rows: Iterable[Any], put: Callable[[Database, Any, list[Any]], None],
    cluster: str = DEFAULT_CLUSTER,
) -> Iterator[int]:  # fmt: skip
    """Rows of an executor's task into the database, by a connection of its own; how many.

    `put` has a cursor and ROWS_AT_ONCE rows, in a transaction.
    """
    database, count = Database(environment, cluster=cluster), 0
    try:
        left = iter(rows)
        while portion := list(islice(left, ROWS_AT_ONCE)):
            with database.transaction() as cursor:
                put(database, cursor, portion)
            count += len(portion)
    finally:
        database.close()
    yield count
