"""Reading what the flight recorder kept: throttled intervals, and what of the guarantee was kept on each day.

The caller has the instance from a selector within its organisation, or is an operator.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db.models import Max, Q, Sum
from django.db.models.functions import Substr

from controlplane.quotas.models import RecordedInterval
from controlplane.quotas.moments import text_of, text_of_ms
from quota.contracts.throttled import ThrottledInterval

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from django.db.models import QuerySet

    from controlplane.instances.models import Instance

DAY_MS = 24 * 3600 * 1000
DAYS = 7
LONGEST_MS = 2 * 60 * 1000
"""No interval lasts longer; a minute is what recorders promise."""
_DAY_LETTERS, _HOUR_LETTERS = len("2026-11-21"), len("2026-11-21T09")
_ORDERED_BY = ("started_at", "direction", "rule", "epoch")
After = tuple[str, str, str, int]
"""Start, direction, rule and epoch of the last interval that was shown."""


@dataclass(frozen=True, slots=True)
class GuaranteeDay:
    """How well one direction of an instance was served on one day, UTC."""

    day: str
    direction: str
    throttled_ms: int
    throttled_under_limit_ms: int
    throttled_under_limit_percent: float  # of the day, or of what has passed of it
    over_admission_percent: tuple[float, float, float]  # the most in windows of 1, 10 and 60 s


class Wait(NamedTuple):
    """An interval, as far as it is added up."""

    instance: str
    direction: str
    started_at_ms: int
    ended_at_ms: int
    throttled_ms: int


def intervals(
    *,
    instance: Instance,
    start: datetime,
    end: datetime,
    after: After | None = None,
    limit: int,
    newest_first: bool = False,
) -> list[RecordedInterval]:
    """Those that began in [start, end), oldest first or in the very opposite order, behind `after`."""
    rows = _of(instance, start, end)
    sign, behind = ("-", "lt") if newest_first else ("", "gt")
    if after is not None:
        here: dict[str, Any] = {}
        further = Q()
        for name, value in zip(_ORDERED_BY, after, strict=True):
            further |= Q(**here, **{f"{name}__{behind}": value})
            here[name] = value
        rows = rows.filter(further)
    return list(rows.order_by(*(f"{sign}{name}" for name in _ORDERED_BY))[:limit])


def latest(*, instance: Instance, start: datetime, end: datetime, limit: int) -> list[ThrottledInterval]:
    """The last of them in which somebody waited, newest first."""
    rows = _of(instance, start, end).filter(throttled_ms__gt=0).order_by("-started_at", "-pk")[:limit]
    return [ThrottledInterval.from_document(row.document) for row in rows]


def throttled_by_hour(*, instance: Instance, start: datetime, end: datetime) -> dict[tuple[str, str], int]:
    """Milliseconds that the instance's own limit made somebody wait, by direction and hour ("2026-11-21T09")."""
    rows = _of(instance, start, end).filter(rule="").annotate(hour=Substr("started_at", 1, _HOUR_LETTERS))
    sums = rows.order_by().values("direction", "hour").annotate(waited=Sum("throttled_ms"))
    return {(row["direction"], row["hour"]): row["waited"] for row in sums}


class Throttled(NamedTuple):
    """Milliseconds that an instance waited for its own limit: below it, and because it was used."""

    under_limit_ms: int = 0
    at_limit_ms: int = 0


def throttled_lately(*, instances: Sequence[str], start: datetime, end: datetime) -> dict[str, Throttled]:
    """Of intervals that began in [start, end), by instance, those that waited; not what full storage refused.

    An instance that always wants more than its limit is below it for moments, while the limit is divided anew. So of each
    direction that counts which was most of it: below the limit (added up over directions), or at it (of the worse direction).
    """
    rows = RecordedInterval.objects.filter(
        instance__in=instances,
        started_at__gte=text_of(start),
        started_at__lt=text_of(end),
        rule="",
        throttled_ms__gt=0,
        document__blocked__isnull=True,
    )
    sums = (
        rows.order_by()
        .values("instance", "direction")
        .annotate(waited=Sum("throttled_ms"), under=Sum("under_limit_ms"))
    )
    found: dict[str, Throttled] = {}
    for row in sums:
        under_ms, at_ms = found.get(row["instance"], Throttled())
        if row["under"] * 2 >= row["waited"]:
            under_ms += row["under"]
        else:
            at_ms = max(at_ms, row["waited"])
        found[row["instance"]] = Throttled(under_ms, at_ms)
    return found


def waits(*, start_ms: int, end_ms: int, instances: Sequence[str] | None = None) -> Iterator[Wait]:
    """Where an instance's own limit made somebody wait in [start, end): of these instances, or for the machinery of all."""
    rows = RecordedInterval.objects.filter(
        started_at__gte=text_of_ms(start_ms - LONGEST_MS),
        started_at__lt=text_of_ms(end_ms),
        rule="",
        throttled_ms__gt=0,
    )
    if instances is not None:
        rows = rows.filter(instance__in=instances)
    for row in rows.values_list(
        "instance", "direction", "document__started_at_ms", "document__ended_at_ms", "throttled_ms"
    ).iterator():
        wait = Wait(*row)
        try:  # masters' documents are kept as they came
            if 0 <= wait.ended_at_ms - wait.started_at_ms <= LONGEST_MS:
                yield wait._replace(started_at_ms=int(wait.started_at_ms), ended_at_ms=int(wait.ended_at_ms))
        except (TypeError, ValueError):
            continue


def guarantee_days(*, instance: Instance, now: datetime) -> list[GuaranteeDay]:
    """The days that are kept on which anything was recorded, newest first."""
    rows = _of(instance, now - timedelta(days=DAYS), now).filter(rule="")
    days = rows.annotate(day=Substr("started_at", 1, _DAY_LETTERS)).order_by().values("day", "direction")
    sums = days.annotate(
        waited=Sum("throttled_ms"),
        under=Sum("under_limit_ms"),
        over_1_s=Max("over_1_s_percent"),
        over_10_s=Max("over_10_s_percent"),
        over_60_s=Max("over_60_s_percent"),
    )
    return [
        GuaranteeDay(
            row["day"],
            row["direction"],
            row["waited"],
            row["under"],
            round(100 * row["under"] / _passed_ms(row["day"], now), 3),
            (row["over_1_s"], row["over_10_s"], row["over_60_s"]),
        )
        for row in sorted(sums, key=lambda row: (row["day"], row["direction"]), reverse=True)
    ]


def _of(instance: Instance, start: datetime, end: datetime) -> QuerySet[RecordedInterval]:
    return RecordedInterval.objects.filter(
        instance=instance.pk, started_at__gte=text_of(start), started_at__lt=text_of(end)
    )


def _passed_ms(day: str, now: datetime) -> int:
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return DAY_MS if day < text_of(now)[:_DAY_LETTERS] else max(1, round((now - midnight).total_seconds() * 1000))
