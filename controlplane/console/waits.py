"""How a page draws the waiting of a day, hour by hour. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from quota.contracts.report import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

HOURS = 24
HOUR_MS = 3_600_000
MINUTE_MS = 60_000
HOUR_FORM = "%Y-%m-%dT%H"


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


def _hour(number: int, hour: datetime, waited_ms: int) -> WaitedHour:
    percent = min(100.0, round(100 * waited_ms / HOUR_MS, 1))
    height = max(percent, 2.0) if waited_ms else 0.0  # a second of waiting is to be seen
    return WaitedHour(f"{hour:%H}:00", round(waited_ms / MINUTE_MS, 1), height, number * 10, 100 - height)
