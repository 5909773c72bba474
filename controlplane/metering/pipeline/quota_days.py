"""What the quota report says of an instance's day, once the minutes are added up. Pure; a day is UTC's, "2026-11-21".

The report has a row for each instance, day and resource: what flowed in (`produce`), out (`consume`), and what is stored. Bytes
are on the wire for flows and of all replicas for storage, as in the history whose minutes it is made of.

========== =================================================================================================================
percentile of the day's minutes, each by its average: the smallest value that so many percent of them do not exceed
use        of the limit that was in force in each minute, at the 95th percentile, in tenths of a percent; no limit: none
guarantee  missed where clients waited below their limit for more than `WAITED_PERMILLE` of the time that was seen
forecast   the day on which a straight line through the 95th percentiles of `TREND_DAYS` reaches the limit
========== =================================================================================================================

A straight line through four weeks has every weekday as often as any other. It is computed in whole numbers: the same days say the
same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

RESOURCES = ("produce", "consume", "storage")
PERCENTILES = (50, 95, 99)
TREND_DAYS = 28
LEAST_DAYS = 7
"""Fewer days make no trend."""
FORESEEN_DAYS = 400
"""What is further away is not foretold."""
KEPT_DAYS = 400
AGAIN_DAYS = 14
"""So many days before today have all of their minutes (`history.resolutions.MINUTES` are kept for 15 days)."""
WAITED_PERMILLE = 1
DAY_S, MINUTE_MS = 86_400, 60_000
COLUMNS = (
    "instance", "day", "resource", "limit_in_force", "p50", "p95", "p99", "most", "used_permille", "minutes", "throttled_minutes",
    "throttled_ms", "under_limit_ms", "guarantee", "exhausted_on",
)  # fmt: skip
"""Of a row, in the order of `row_of`."""


class Guarantee(StrEnum):
    """Of the bandwidth that was bought, on one day."""

    KEPT = "kept"
    MISSED = "missed"
    UNKNOWN = ""
    """Nothing is bought: no limit, or storage. Or who waited is not known any more."""


@dataclass(frozen=True, slots=True)
class Added:
    """One resource of an instance, its minutes of a day added up."""

    instance: str
    resource: str
    limit: int | None  # in force at the day's end; None: unlimited
    p50: int
    p95: int
    p99: int
    most: int
    used_permille: int | None
    minutes: int
    throttled_minutes: int
    throttled_ms: int
    under_limit_ms: int | None  # None: not known
    earlier: Sequence[tuple[date, int]]  # the 95th percentiles of days before


def row_of(day: date, added: Added) -> tuple[str | int | None, ...]:
    """In the order of COLUMNS."""
    exhausted = exhausted_on([*added.earlier, (day, added.p95)], added.limit, day)
    return (
        added.instance, day.isoformat(), added.resource, added.limit, added.p50, added.p95, added.p99, added.most,
        added.used_permille, added.minutes, added.throttled_minutes, added.throttled_ms, added.under_limit_ms,
        str(guarantee_of(added)), exhausted.isoformat() if exhausted else None,
    )  # fmt: skip


def guarantee_of(added: Added) -> Guarantee:
    """Whether the bandwidth that was bought could be had."""
    if added.resource == "storage" or added.limit is None or added.under_limit_ms is None:
        return Guarantee.UNKNOWN
    seen_ms = added.minutes * MINUTE_MS
    return Guarantee.MISSED if added.under_limit_ms * 1000 > seen_ms * WAITED_PERMILLE else Guarantee.KEPT


def exhausted_on(points: Iterable[tuple[date, int]], limit: int | None, today: date) -> date | None:
    """The first day, from today on, on which the trend is at the limit; None: none in sight, or nothing to reach.

    Of the points those of the last TREND_DAYS count. Today's own use at the limit is today, whatever the trend.
    """
    if limit is None:
        return None
    known = {day.toordinal() - today.toordinal(): use for day, use in points}
    recent = {x: y for x, y in known.items() if -TREND_DAYS < x <= 0}
    if recent.get(0, -1) >= limit:
        return today
    count = len(recent)
    if count < LEAST_DAYS:
        return None
    sum_x, sum_y = sum(recent), sum(recent.values())
    spread = count * sum(x * x for x in recent) - sum_x * sum_x
    rise = count * sum(x * y for x, y in recent.items()) - sum_x * sum_y
    # y = (sum_y + slope * (count * x - sum_x)) / count, where slope = rise / spread; all times count * spread.
    missing = limit * count * spread - (sum_y * spread - rise * sum_x)
    if missing <= 0:
        return today
    if rise <= 0:
        return None
    days = -(-missing // (count * rise))
    return today + timedelta(days=days) if days <= FORESEEN_DAYS else None


def can_be_made_again(day: date, today: date) -> bool:
    """Whether the minutes of a day that is over are all there yet."""
    return (today - day).days <= AGAIN_DAYS


def days_due(
    *, first_at: int | None, made_to: int | None, reported: Container[date], has_minutes: Callable[[date], bool]
) -> list[date]:
    """Days without a report that can have one: all of their minutes are made. Moments are seconds since 1970.

    `first_at`: when the oldest minute begins; `made_to`: minutes that begin before then change no more; `reported`: days, from
    the first one's on, that have a report.
    """
    if first_at is None or made_to is None:
        return []
    day = day_of(first_at)
    found = []
    while ends_at(day) <= made_to:
        if day not in reported and has_minutes(day):
            found.append(day)
        day += timedelta(days=1)
    return found


def day_of(at: int) -> date:
    """The day of a moment."""
    return datetime.fromtimestamp(at, UTC).date()


def begins_at(day: date) -> int:
    """In seconds since 1970."""
    return (day.toordinal() - date(1970, 1, 1).toordinal()) * DAY_S


def ends_at(day: date) -> int:
    """The same."""
    return begins_at(day) + DAY_S
