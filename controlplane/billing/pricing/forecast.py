"""What a month will have cost at its end. Pure.

Rule. What has been counted is taken as it is. What is reserved goes on at the size that the instance has now, under the
plans as they are chosen. What is used goes on as in the last RECENT: each hour that has not been counted yet, up to the
month's end, uses as much as the average of the counted hours of that time. An hour of which some usage is known already
uses no less than that. An instance that is younger is judged by the hours that it has; one without a counted hour, or that
is gone, is expected to use nothing more.

What was paid in advance, what was carried above the bought bandwidth, and what is given back where it could not be had, is
taken as it is: a renewal that is still to come, a peak, and a bad day are in no forecast.

A forecast is an inputs document like that of a bill (documents.py), rated by the same `rate`: it can be computed again from
its inputs, is never below the bill so far, and is the bill once every hour of the month has been counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from controlplane.billing.pricing.documents import (
    besides_usage_in,
    hours_in,
    inputs_document,
    late_in,
    month_of,
    periods_in,
    terms_in,
)
from controlplane.billing.pricing.rating import HOUR, Hours, Month, Period, Used, floored

RECENT = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Recent:
    """What was used between two full hours, all of it counted. `end` is where what is expected begins."""

    start: datetime
    end: datetime
    used: Used = field(default_factory=Used)

    @property
    def hours(self) -> int:
        """How many there are; 0: nothing is known of how the instance is used."""
        return max(0, (self.end - self.start) // HOUR)


def recent_window(periods: tuple[Period, ...], counted_until: datetime) -> tuple[datetime, datetime]:
    """From when to when usage is looked at: RECENT before, or since the first full hour of a younger instance."""
    end = floored(counted_until)
    start = end - RECENT
    if periods:
        opened = min(period.start for period in periods)
        start = max(start, opened if opened == floored(opened) else floored(opened) + HOUR)
    return min(start, end), end


def forecast_document(inputs: Mapping[str, Any], recent: Recent) -> dict[str, Any]:
    """The inputs of the month's bill at its end, from those of the bill so far."""
    month, periods = month_of(inputs["month"]), periods_in(inputs)
    hours = expected(month, hours_in(inputs), recent, until=_open_until(periods, month))
    return inputs_document(
        terms_in(inputs),
        periods,
        month,
        month.end,
        hours,
        late=late_in(inputs),
        **besides_usage_in(inputs),
    )


def expected(month: Month, known: Hours, recent: Recent, *, until: datetime) -> dict[datetime, Used]:
    """Usage by the hour: what is known, and from `recent.end` up to `until` what is to be expected.

    Shares of an hour are whole bytes that add up: after n hours exactly n averages, rounded down, have been given out.
    """
    found = dict(known)
    hour, count = max(recent.end, month.start), recent.hours
    if not count:
        return found
    totals = astuple(recent.used)
    for place in range(max(0, (until - hour + HOUR - timedelta.resolution) // HOUR)):
        share = Used(*(total * (place + 1) // count - total * place // count for total in totals))
        if share != Used():
            found[hour] = found.get(hour, Used()).or_larger(share)
        hour += HOUR
    return found


def _open_until(periods: tuple[Period, ...], month: Month) -> datetime:
    """Until when in the month the instance is there, as far as is known."""
    if not periods:
        return month.start
    until = periods[-1].until
    return month.end if until is None else min(until, month.end)
