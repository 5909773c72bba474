"""The quota report's side of the database, by DB-API: what executors read and stage, and the one transaction that publishes.

Executors read the minutes of a day in slices of time, each by a connection of its own, so the driver knows no instance. What they
make is staged under the run's id; the driver then puts it in the place of what the report had of that day, in one transaction. A
run that dies leaves staged rows and nothing else: the next run removes them.

Tables are Django's: `history` has the minutes, `quotas` throttled intervals and the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from controlplane.env import Environment
from controlplane.metering.pipeline.quota_days import (
    COLUMNS,
    KEPT_DAYS,
    TREND_DAYS,
    Added,
    begins_at,
    day_of,
    days_due,
    ends_at,
    row_of,
)
from controlplane.metering.pipeline.tables import Database, StagingError, put_in_portions

REPORT, STAGED = "quotas_quotaday", "quotas_quotadaystaged"
MINUTE_TABLE, MADE_TABLE, INTERVAL_TABLE = "history_minute", "history_rolledup", "quotas_recordedinterval"
MINUTE_S, SLICE_S = 60, 4 * 3600
AGAIN_S = 300
"""So many of the last minutes may be made again (`history.services.ROLLED`)."""
INTERVALS_KEPT = timedelta(days=7)
"""See `quotas.services.KEPT`: of days before nobody knows who waited below the limit."""
_MINUTES = (
    "SELECT instance, at, produce_bytes_per_s_sum / samples, produce_limit_bytes_per_s, produce_throttled_ms,"  # noqa: S608
    " consume_bytes_per_s_sum / samples, consume_limit_bytes_per_s, consume_throttled_ms,"
    f" storage_used_bytes_sum / samples, storage_limit_bytes, 0 FROM {MINUTE_TABLE} WHERE at >= ? AND at < ?"
)
_WAITS = (
    f"SELECT instance, direction, under_limit_ms FROM {INTERVAL_TABLE}"  # noqa: S608
    " WHERE started_at >= ? AND started_at < ? AND rule = '' AND under_limit_ms > 0"
)

_SAME = f"r.instance = {STAGED}.instance AND r.day = {STAGED}.day AND r.resource = {STAGED}.resource"
_WAITED = f"SELECT r.under_limit_ms FROM {REPORT} r WHERE {_SAME}"  # noqa: S608
_GUARANTEE = f"SELECT r.guarantee FROM {REPORT} r WHERE {_SAME}"  # noqa: S608
_CARRY_OVER = (
    f"UPDATE {STAGED} SET guarantee = ({_GUARANTEE}), under_limit_ms = ({_WAITED})"  # noqa: S608
    f" WHERE run = ? AND day = ? AND under_limit_ms IS NULL AND EXISTS ({_WAITED} AND r.under_limit_ms IS NOT NULL)"
)


def slices(day: date) -> list[tuple[int, int]]:
    """Spans of time that are read by themselves."""
    return [(at, at + SLICE_S) for at in range(begins_at(day), ends_at(day), SLICE_S)]


def minutes_read(environment: Environment, span: tuple[int, int]) -> Iterator[tuple[Any, ...]]:
    """What instances used in each minute of [start, end), in the order of `quota_frames.MINUTES`."""
    yield from _read(environment, _MINUTES, span)


def waits_read(environment: Environment, span: tuple[int, int]) -> Iterator[tuple[Any, ...]]:
    """Intervals of [start, end) in which somebody waited below the limit, in the order of `quota_frames.WAITS`."""
    yield from _read(environment, _WAITS, [_text_of(at) for at in span])


def earlier_read(environment: Environment, day: date, before: int) -> Iterator[tuple[Any, ...]]:
    """The report of the day so many days before, in the order of `quota_frames.EARLIER`."""
    statement = f"SELECT instance, resource, p95 FROM {REPORT} WHERE day = ?"  # noqa: S608
    for instance, resource, p95 in _read(environment, statement, [_iso(day - timedelta(days=before))]):
        yield instance, resource, before, p95


def stage(environment: Environment, run: str, day: date, *, waits_known: bool, rows: Iterable[Any]) -> Iterator[int]:
    """Rows of `quota_frames.days` into the staging table; how many. Again, if need be: the same ends in the same."""
    columns = ("run", *COLUMNS)
    statement = (
        f"INSERT INTO {STAGED} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608
        " ON CONFLICT (run, instance, day, resource) DO NOTHING"
    )
    made = ((run, *row_of(day, _added(row, day, waits_known=waits_known))) for row in rows)

    def put(database: Database, cursor: Any, portion: list[Any]) -> None:
        database.run_many(cursor, statement, sorted(portion))  # two attempts at one task would wait for each other

    return put_in_portions(environment, made, put)


def _added(row: Any, day: date, *, waits_known: bool) -> Added:
    is_flow = row.resource != "storage"
    return Added(
        row.instance, row.resource, row.limit, row.p50, row.p95, row.p99, row.most, row.used_permille, row.minutes,
        row.throttled_minutes, row.throttled_ms, (row.under_limit_ms or 0) if waits_known and is_flow else None,
        [(day - timedelta(days=each.days_before), each.p95) for each in row.earlier or ()],
    )  # fmt: skip


class Report:
    """What the driver asks and writes. `now_s`: since 1970."""

    def __init__(self, environment: Environment, *, now_s: int) -> None:
        self._database = Database(environment)
        self._now_s = now_s

    def close(self) -> None:
        """Give up the connection."""
        self._database.close()

    def due(self) -> list[date]:
        """Days without a report whose minutes are all made, oldest first."""
        (first_at,) = next(self._database.read(f"SELECT MIN(at) FROM {MINUTE_TABLE}"))  # noqa: S608
        if first_at is None:
            return []
        statement = f"SELECT DISTINCT day FROM {REPORT} WHERE day >= ?"  # noqa: S608
        reported = {date.fromisoformat(day) for (day,) in self._database.read(statement, [_iso(day_of(first_at))])}
        return days_due(first_at=first_at, made_to=self.made_to(), reported=reported, has_minutes=self.has_minutes)

    def done_to_ms(self) -> int | None:
        """Up to when every day that can have a report has one; None: no minute has been made yet."""
        made_to, due = self.made_to(), self.due()
        if made_to is None:
            return None
        return begins_at(due[0] if due else day_of(made_to)) * 1000

    def made_to(self) -> int | None:
        """Minutes that begin before this moment change no more; None: none has been made yet.

        A clock that was ahead has left an `until` that is still to come: minutes before it will be made.
        """
        (until,) = next(self._database.read(f"SELECT MAX(until) FROM {MADE_TABLE} WHERE step_s = ?", [MINUTE_S]))  # noqa: S608
        return None if until is None else min(int(until), self._now_s // MINUTE_S * MINUTE_S) - AGAIN_S

    def has_minutes(self, day: date) -> bool:
        """Whether anything is known of it."""
        span = (begins_at(day), ends_at(day))
        statement = f"SELECT 1 FROM {MINUTE_TABLE} WHERE at >= ? AND at < ? LIMIT 1"  # noqa: S608
        return next(self._database.read(statement, span), None) is not None

    def begin(self) -> None:
        """Remove what runs have left that died."""
        with self._database.transaction() as cursor:
            self._database.run(cursor, f"DELETE FROM {STAGED}")  # noqa: S608

    def publish(self, run: str, day: date, rows: int) -> None:
        """What was staged, in place of what the report had of the day. Raises StagingError.

        Who waited below the limit, where it is not known any more, stays as the report has it.
        """
        if not rows:
            raise StagingError(f"no minute of {day} is there")
        columns = ", ".join(COLUMNS)
        with self._database.transaction() as cursor:
            self._database.run(cursor, _CARRY_OVER, [run, _iso(day)])
            self._database.run(cursor, f"DELETE FROM {REPORT} WHERE day = ?", [_iso(day)])  # noqa: S608
            merged = self._database.run(
                cursor,
                f"INSERT INTO {REPORT} ({columns}) SELECT {columns} FROM {STAGED} WHERE run = ? AND day = ?",  # noqa: S608
                [run, _iso(day)],
            )
            if merged != rows:
                raise StagingError(f"{merged} of {rows} rows are staged: another run of the report removed them")
            self._database.run(cursor, f"DELETE FROM {STAGED} WHERE run = ?", [run])  # noqa: S608
            self._database.run(cursor, f"DELETE FROM {REPORT} WHERE day < ?", [_iso(day - timedelta(days=KEPT_DAYS))])  # noqa: S608


def waits_known(day: date, now: datetime) -> bool:
    """Whether all intervals of a day are still there."""
    return datetime.fromtimestamp(begins_at(day), UTC) >= now - INTERVALS_KEPT


def days_before() -> range:
    """How far back a trend goes, today not counted."""
    return range(1, TREND_DAYS)


def _read(environment: Environment, statement: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    database = Database(environment)
    try:
        yield from database.read(statement, values)
    finally:
        database.close()


def _text_of(at: int) -> str:
    """As intervals write their start."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _iso(day: date) -> str:
    return day.isoformat()
