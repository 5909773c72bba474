"""Days that are over become instance-hours and topic-days: when a day may, and why the next one may not. How: pipeline/folded.py.

A day is folded when it is longer ago than METERING_KEEP_DAYS, when its hours are final in every cluster, and, where this
installation recomputes usage from the raw records, when that was done for it and the database had nothing else. What comes for it
later is put right by the reconciliation.

`days_fold` is called by beat, works for a while and goes on the next time. Killed at any moment it has lost nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models.functions import Greatest

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.instances.models import Instance
from controlplane.metering.models import Difference, Fold, FoldedHour, JobRun, Reconciliation, UsageMaximum
from controlplane.metering.pipeline import folded
from controlplane.metering.pipeline.comparable import DAY_LENGTH, Range, day_range, hour_of
from controlplane.metering.pipeline.quota_days import AGAIN_DAYS
from controlplane.metering.pipeline.reconcile_tables import MOST_DIFFERENCES
from controlplane.metering.pipeline.schedule import SILENT_MS, State
from controlplane.metering.selectors import completeness_by_cluster

if TYPE_CHECKING:
    from controlplane.metering.selectors import Completeness

LOG = logging.getLogger(__name__)
ROUND_S = 20.0
"""After so long a round begins nothing more: the next one goes on."""
GONE_AFTER = timedelta(days=45)
"""Anchors of boots that have ended stay for so long: `__usage` keeps records for 35 days, from which they may be read again."""
COUNTED_EVERY = timedelta(hours=1)
RECONCILE = "reconcile"
_REASON = "the service folds everybody's usage"


class Django:
    """`folded.Runs` on Django's connection."""

    @property
    def is_sqlite(self) -> bool:
        """Otherwise PostgreSQL."""
        return connection.vendor == "sqlite"

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """A cursor; committed at the end."""
        with transaction.atomic(), connection.cursor() as cursor:
            yield cursor

    def run(self, cursor: Any, statement: str, values: Sequence[Any] = ()) -> int:
        """One statement with ``?`` for values; how many rows it changed."""
        cursor.execute(statement.replace("?", "%s"), values)
        return int(cursor.rowcount)

    def read(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows, in no transaction: no writer waits for them."""
        with connection.cursor() as cursor:
            cursor.execute(statement.replace("?", "%s"), values)
            return list(cursor.fetchall())


@dataclass(frozen=True, slots=True)
class FoldShown:
    """How it is, for operators."""

    folded_to: datetime | None  # None: nothing is folded
    reason: str  # why the next day is not; empty: no day is due
    looked_at: datetime | None
    kept: int | None  # key rows; None: they were not counted yet
    counted_at: datetime | None
    is_sweeping: bool  # key rows of folded days are still to be deleted


def days_fold(*, clock: Clock = SYSTEM_CLOCK, until_s: float = ROUND_S, although_different: date | None = None) -> int:
    """Fold days that are due, and delete key rows that nobody needs any more; how many days. Several at once do no harm.

    `although_different`: an operator's word that days up to this one may be folded as the database has them.
    """
    runs = Django()
    end = time.monotonic() + until_s
    folded.begin(runs)
    count, reason = 0, ""
    while time.monotonic() < end:
        with runs.transaction() as cursor:
            since = folded.horizon(runs, cursor).folded_to
            first = folded.first_hour(runs, cursor, since)
        try:
            day, reason = _next(first, clock.now(), although_different)
            if day is None:
                break
            count += folded.fold(runs, since=since, until=hour_of(day + timedelta(days=1)))
        except (DatabaseError, ValueError) as error:  # what is the matter with one day is said, and the rest goes on
            LOG.exception("a day cannot be folded")
            reason = _why_failed(first, error)
            break
    if not _why_reconciling(clock.now()):
        _sweep(runs, clock, end)
    Fold.objects.filter(pk=1).update(reason=reason, looked_at_ms=_ms(clock.now()))
    return count


def _why_failed(first: str | None, error: Exception) -> str:
    """Sums may be larger than a column can be, where counters are damaged. The largest of that day is named."""
    day = (first or "")[:DAY_LENGTH]
    of_day = UsageMaximum.objects.filter(hour__startswith=day)
    largest = of_day.order_by(Greatest("produced_bytes", "consumed_bytes").desc()).first()
    named = "" if largest is None else f"; the largest counter is one of {largest}"
    return (
        f"{day} cannot be added up: {type(error).__name__}: {error}{named}. A damaged counter is corrected by usage_cap:"
        " docs/runbooks/usage-differs.md"
    )


def _next(first: str | None, now: datetime, although_different: date | None) -> tuple[date | None, str]:
    """The next day to be folded; or None, and why not. Days without usage are passed over."""
    if first is None:
        return None, ""
    day = date.fromisoformat(first[:DAY_LENGTH])
    if _end_of(day) + timedelta(days=settings.ENVIRONMENT.metering_keep_days) > now:
        return None, ""
    reason = why_not(day, now, although_different)
    return (None, reason) if reason else (day, "")


def why_not(day: date, now: datetime, although_different: date | None = None) -> str:
    """Why a day that is long enough ago may not be folded, in a sentence for operators; empty: it may."""
    return (
        _why_open(completeness_by_cluster(), _end_of(day))
        or _why_reconciling(now)
        or _why_not_compared(day, now, although_different)
    )


def _why_open(clusters: dict[str, Completeness], until: datetime) -> str:
    for name, known in clusters.items():
        if reason := known.why_open(until=until):
            return reason if len(clusters) == 1 else f"cluster {name}: {reason}"
    return ""


def _why_reconciling(now: datetime) -> str:
    """One that is under way reads key rows from the horizon on that it found when it began."""
    running = JobRun.objects.filter(
        job=RECONCILE, state=State.RUNNING.value, seen_at_ms__gte=_ms(now) - SILENT_MS
    ).exists()
    return "a reconciliation is under way" if running else ""


def _why_not_compared(day: date, now: datetime, although_different: date | None) -> str:
    hours = day_range(day)
    looks = Reconciliation.objects.order_by("-at_ms", "-pk")
    begun = looks.order_by("start_hour").values_list("start_hour", flat=True).first()
    if begun is None:
        if not JobRun.objects.filter(job=RECONCILE).exists():
            return ""  # this installation recomputes nothing
        return f"{day} was not compared with its raw records: no reconciliation has succeeded yet"
    if hours.end <= begun:
        return ""  # of before there were raw records
    covering = looks.filter(start_hour__lte=hours.start, end_hour__gte=hours.end)
    last = next((look for look in covering if not _lacks(look, day, now)), None)
    if last is None:
        return f"{day} was not compared with its raw records yet: the job {RECONCILE} does so, or with --day {day}"
    if although_different is not None and day <= although_different:
        return ""
    return _why_different(last, hours, day)


def _lacks(look: Reconciliation, day: date, now: datetime) -> bool:
    """Whether it had no raw records of a cluster that has usage on the day, and may still get them."""
    if day < now.astimezone(UTC).date() - timedelta(days=AGAIN_DAYS + 1):
        return False
    hours = day_range(day)
    instances = Instance.objects.unscoped(_REASON).filter(cluster__name__in=look.gone).values("pk")
    within = {"instance__in": instances, "hour__gte": hours.start, "hour__lt": hours.end}
    return bool(look.gone) and any(model.objects.filter(**within).exists() for model in (UsageMaximum, FoldedHour))


def _why_different(look: Reconciliation, hours: Range, day: date) -> str:
    """Of a run so many differences are kept, those from the database first, by hour."""
    kept = Difference.objects.filter(reconciliation=look)
    different = kept.filter(against="database", hour__gte=hours.start, hour__lt=hours.end).count()
    last = kept.order_by("pk").last() if look.different > MOST_DIFFERENCES else None
    is_cut = last is not None and last.against == "database" and last.hour < hours.end
    if not different and not is_cut:
        return ""
    return (
        f"{day} differs from its raw records in {different or 'too many'} counters; what to do about it says"
        " docs/runbooks/usage-differs.md"
    )


def _sweep(runs: folded.Runs, clock: Clock, end: float) -> None:
    row = Fold.objects.get(pk=1)
    now = clock.now()
    if row.swept_to < row.folded_to:
        before = now - GONE_AFTER
        gone = folded.boots_gone(runs, before=f"{before.astimezone(UTC):%Y-%m-%dT%H}:00:00Z", before_ms=_ms(before))
        if gone.before > row.folded_to:
            gone = folded.NOBODY
        while time.monotonic() < end and folded.sweep(runs, gone):
            pass
    if row.counted_at_ms is None or row.counted_at_ms <= _ms(now - COUNTED_EVERY):
        Fold.objects.filter(pk=1).update(kept=folded.rows_kept(runs), counted_at_ms=_ms(now))


def fold_get() -> FoldShown:
    """As the last round left it."""
    row = Fold.objects.filter(pk=1).first() or Fold()
    return FoldShown(
        datetime.fromisoformat(row.folded_to) if row.folded_to else None,
        row.reason,
        _moment(row.looked_at_ms),
        sum(row.kept.values()) if row.counted_at_ms is not None else None,
        _moment(row.counted_at_ms),
        row.swept_to < row.folded_to,
    )


def _end_of(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _moment(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC)
