"""Reading usage: hours, the records behind an hour, and how the meter itself is.

The usage of an hour is the largest counter of its key minus the largest of the same (boot, instance, topic) in any
earlier hour. Whatever order maxima came in, the hours of a key add up to its last counter.

Earlier hours outside the range are read too, but only of boots that say something within it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import connection

from controlplane.metering.models import PipelineStatus
from quota.contracts.usage import COUNTERS

if TYPE_CHECKING:
    from controlplane.instances.models import Instance

SECONDS_PER_HOUR = 3600
SILENT_AFTER_S = 60
TABLE = "metering_usagemaximum"
_SCOPE = (
    "instance = %s AND hour < %s"  # noqa: S608  # the name is a constant
    f" AND boot IN (SELECT boot FROM {TABLE} WHERE instance = %s AND hour >= %s AND hour < %s)"
)
"""An instance's rows up to a range's end, of boots that say something within it."""


@dataclass(frozen=True, slots=True)
class UsageHour:
    """What an instance used in one UTC hour."""

    hour: str  # its beginning, "2026-11-21T09:00:00Z"
    produced_bytes: int
    consumed_bytes: int
    stored_byte_seconds: int
    so_far: bool  # the hour is not over

    @property
    def stored_byte_hours(self) -> int:
        """To the nearest one; bills are computed from the seconds."""
        return (2 * self.stored_byte_seconds + SECONDS_PER_HOUR) // (2 * SECONDS_PER_HOUR)


@dataclass(frozen=True, slots=True)
class UsageRecordRow:
    """One broker's share of an hour: the difference of two counters, and the record that carried the larger."""

    hour: str
    topic: str
    broker: int
    boot: str
    produced_bytes: int
    consumed_bytes: int
    stored_byte_seconds: int
    produced_bytes_since_boot: int
    consumed_bytes_since_boot: int
    stored_byte_seconds_since_boot: int
    partition: int  # of `__usage`
    offset: int


@dataclass(frozen=True, slots=True)
class MeteringStatus:
    """How the meter is: running, starting, failing (the reason says why), silent (no sign of life) or absent."""

    state: str
    reason: str
    last_record_at: datetime | None
    seen_at: datetime | None
    records: int = 0
    bad_records: int = 0


def usage_hours(*, instance: Instance, start: datetime, end: datetime, now: datetime | None = None) -> list[UsageHour]:
    """Hours that begin in [start's hour, end) and saw any usage record, in order."""
    open_hour = hour_text(now or datetime.now(UTC))
    rows = _differences(
        f"SELECT hour, {', '.join(f'SUM({_difference(name)})' for name in COUNTERS)} FROM numbered"  # noqa: S608
        " WHERE hour >= %s GROUP BY hour ORDER BY hour",
        instance,
        start,
        end,
    )
    return [UsageHour(hour, *(int(value) for value in values), hour >= open_hour) for hour, *values in rows]


def usage_total(*, instance: Instance, start: datetime, end: datetime) -> tuple[int, int, int]:
    """Produced bytes, consumed bytes and stored byte-seconds of all hours that begin in [start's hour, end).

    The sum of the hours, without making them: each key's largest counter minus the largest before the range.
    """
    first, last = hour_text(start), _first_hour_from(end)
    parts = ", ".join(
        f"COALESCE(MAX({name}) - COALESCE(MAX(CASE WHEN hour < %s THEN {name} END), 0), 0)" for name in COUNTERS
    )
    statement = f"SELECT {parts} FROM {TABLE} WHERE {_SCOPE} GROUP BY boot, topic"  # noqa: S608  # values are bound
    with connection.cursor() as cursor:
        cursor.execute(statement, [first, first, first, instance.pk, last, instance.pk, first, last])
        # Summed here: byte-seconds of a large instance's month are more than SQLite's integers hold.
        produced, consumed, stored = (sum(map(int, column)) for column in _columns(cursor.fetchall()))
    return produced, consumed, stored


def usage_records(*, instance: Instance, start: datetime, end: datetime) -> list[UsageRecordRow]:
    """What the hours of a range are made of, by hour, topic, broker and boot."""
    counters = ", ".join(_difference(name) for name in COUNTERS)
    rows = _differences(
        f"SELECT hour, topic, broker, boot, {counters}, {', '.join(COUNTERS)}, source_partition, source_offset"  # noqa: S608
        " FROM numbered WHERE hour >= %s ORDER BY hour, topic, broker, boot",
        instance,
        start,
        end,
    )
    return [UsageRecordRow(*row) for row in rows]


def status() -> MeteringStatus:
    """How the meter is now."""
    row = PipelineStatus.objects.filter(pk=1).first()
    counts: dict[str, Any] = {"records": row.records, "bad_records": row.bad_records} if row else {}
    last = _moment(row.last_record_at_ms) if row else None
    seen = _moment(row.seen_at_ms) if row else None
    absent = settings.ENVIRONMENT.metering_absent
    if absent:
        return MeteringStatus("absent", absent, last, seen, **counts)
    if row is None:
        return MeteringStatus("starting", "the meter has not come up yet", last, seen, **counts)
    if time.time() * 1000 - row.seen_at_ms > SILENT_AFTER_S * 1000:
        return MeteringStatus("silent", "the meter gives no sign of life", last, seen, **counts)
    return MeteringStatus("failing" if row.problem else "running", row.problem, last, seen, **counts)


def hour_text(moment: datetime) -> str:
    """The beginning of a moment's UTC hour, as usage records write it."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="hours") + ":00:00Z"


def hour_moment(text: str) -> datetime:
    """The other way."""
    return datetime.fromisoformat(text)


def _differences(select: str, instance: Instance, start: datetime, end: datetime) -> list[tuple[Any, ...]]:
    """Rows of `select` from `numbered`: the instance's maxima before `end`, each beside the largest earlier ones."""
    before = ", ".join(f"COALESCE(MAX({name}) OVER earlier, 0) AS {name}_before" for name in COUNTERS)
    first, last = hour_text(start), _first_hour_from(end)
    statement = (
        f"WITH numbered AS (SELECT *, {before} FROM {TABLE} WHERE {_SCOPE}"  # noqa: S608  # names are constants, values bound
        " WINDOW earlier AS"
        " (PARTITION BY boot, topic ORDER BY hour ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) "
    )
    with connection.cursor() as cursor:
        cursor.execute(statement + select, [instance.pk, last, instance.pk, first, last, first])
        return list(cursor.fetchall())


def _columns(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return list(zip(*rows, strict=True)) or [()] * len(COUNTERS)


def _difference(name: str) -> str:
    return f"CASE WHEN {name} > {name}_before THEN {name} - {name}_before ELSE 0 END"


def _first_hour_from(end: datetime) -> str:
    """The first hour that does not begin before `end`."""
    floor = hour_text(end)
    moment = end.astimezone(UTC)
    if (moment.minute, moment.second, moment.microsecond) == (0, 0, 0):
        return floor
    try:
        return hour_text(moment + timedelta(hours=1))
    except OverflowError:  # the end of the calendar
        return floor


def _moment(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC)
