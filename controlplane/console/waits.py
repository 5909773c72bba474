"""What a page says of throttled intervals: the waiting of a day hour by hour, and each interval in words. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from quota.contracts.report import DIRECTIONS
from quota.contracts.rows import Unit
from quota.core.explain import explain_interval, narrow_broker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from quota.contracts.throttled import BrokerInputs, ThrottledInterval

HOURS = 24
HOUR_MS = 3_600_000
MINUTE_MS = 60_000
HOUR_FORM = "%Y-%m-%dT%H"
APART_MS = 5 * MINUTE_MS
"""Of reasons that are alike: longer without waiting is a new one."""


@dataclass(frozen=True, slots=True)
class WaitedHour:
    """An hour of the day that is drawn."""

    text: str  # "09:00"
    minutes: float
    percent: float  # of the hour, and of the height
    left: int  # where its bar stands
    top: float


@dataclass(frozen=True, slots=True)
class WaitedDay:
    """One direction over the last 24 hours."""

    direction: str
    minutes: float
    hours: list[WaitedHour]

    @property
    def title(self) -> str:
        """Produce or Consume."""
        return self.direction.capitalize()

    @property
    def worst(self) -> WaitedHour:
        """The hour with most waiting."""
        return max(self.hours, key=lambda hour: hour.minutes)


class Remedy(StrEnum):
    """What would help."""

    BANDWIDTH = "bandwidth"  # the limit was used up
    STORAGE = "storage"
    RULE = "rule"  # a throttle rule of the tenant's own
    LEADERS = "leaders"  # one broker had too much of the traffic
    REQUESTS = "requests"  # fewer and larger ones
    NONE = ""  # nobody had to wait


@dataclass(frozen=True, slots=True)
class Why:
    """One reason as a list shows it: one interval, or several in a row that are alike."""

    started_at: datetime
    ended_at: datetime
    times: int  # intervals
    waited_s: int  # in all of them
    direction: str
    rule: str | None  # the row's name within the instance: what rates and amounts are in
    rule_id: str  # of a throttle rule; empty: the instance's own limit
    sentence: str  # of the worst of them, as the brokers are
    brokers: tuple[BrokerInputs, ...]
    remedy: Remedy

    @property
    def seconds(self) -> int:
        """From the beginning to the end."""
        return round((self.ended_at - self.started_at).total_seconds())


def day_began(now: datetime) -> datetime:
    """The beginning of the first of the hours that are drawn; the last one is not over."""
    return now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS - 1)


def waited_days(waited_ms: Mapping[tuple[str, str], int], now: datetime) -> list[WaitedDay]:
    """Both directions, from milliseconds by direction and hour."""
    first = day_began(now)
    hours = [first + timedelta(hours=number) for number in range(HOURS)]
    days = []
    for direction in DIRECTIONS:
        waits = [waited_ms.get((direction, f"{hour:{HOUR_FORM}}"), 0) for hour in hours]
        bars = [_hour(number, hour, wait) for number, (hour, wait) in enumerate(zip(hours, waits, strict=True))]
        days.append(WaitedDay(direction, round(sum(waits) / MINUTE_MS, 1), bars))
    return days


def whys(intervals: Sequence[ThrottledInterval]) -> list[Why]:
    """Why somebody waited, newest first, from intervals in that order. Those in a row that are alike are one reason.

    Alike: the same limit made wait, in the same way, and no more than `APART_MS` lies between one and the next.
    """
    runs: list[list[ThrottledInterval]] = []
    latest: dict[tuple[object, ...], list[ThrottledInterval]] = {}
    for interval in intervals:
        kind = _kind(interval)
        run = latest.get(kind)
        if run is not None and run[-1].started_at_ms - interval.ended_at_ms <= APART_MS:
            run.append(interval)
        else:
            latest[kind] = run = [interval]
            runs.append(run)
    return [_why(run) for run in runs]


def _kind(interval: ThrottledInterval) -> tuple[object, ...]:
    return (interval.direction, interval.rule, interval.limit, interval.blocked, narrow_broker(interval))


def _why(run: Sequence[ThrottledInterval]) -> Why:
    worst = max(run, key=lambda each: each.throttled_ms)
    return Why(
        started_at=_moment(min(each.started_at_ms for each in run)),
        ended_at=_moment(max(each.ended_at_ms for each in run)),
        times=len(run),
        waited_s=round(sum(each.throttled_ms for each in run) / 1000),
        direction=worst.direction,
        rule=worst.rule,
        rule_id=worst.row.rule.resource if worst.row.unit is Unit.BYTES and worst.rule else "",
        sentence=explain_interval(worst),
        brokers=worst.moment.brokers,
        remedy=_remedy(worst),
    )


def _remedy(interval: ThrottledInterval) -> Remedy:
    if interval.blocked is not None:
        return Remedy.STORAGE
    if not interval.throttled_ms:
        return Remedy.NONE
    if interval.row.unit is not Unit.BYTES:
        return Remedy.REQUESTS
    if narrow_broker(interval) is not None:
        return Remedy.LEADERS
    return Remedy.BANDWIDTH if interval.rule is None else Remedy.RULE


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def _hour(number: int, hour: datetime, waited_ms: int) -> WaitedHour:
    percent = min(100.0, round(100 * waited_ms / HOUR_MS, 1))
    height = max(percent, 2.0) if waited_ms else 0.0  # a second of waiting is to be seen
    return WaitedHour(f"{hour:%H}:00", round(waited_ms / MINUTE_MS, 1), height, number * 10, 100 - height)
