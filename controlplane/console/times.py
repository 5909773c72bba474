"""The time that all charts of a page show: one of the ranges up to now, or from a moment to another. It stands in the address.

``?range=24h``, or ``?since=2026-11-30T14:00Z&until=2026-11-30T15:00Z``: a link sent to a colleague shows the same. How fine the
steps are is not chosen: the shortest of which a chart needs at most 1,000 (`history/resolutions.py`), so ten seconds for an hour.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from controlplane.console.forms.times import FORM, TimesForm
from controlplane.core.errors import NotFound

if TYPE_CHECKING:
    from django.http import HttpRequest

HOUR, DAY = 3600, 86_400
MINUTES_READ_S, HOURS_READ_S = 2 * DAY, 40 * DAY
"""Longer times are read from longer rows, where Python adds them up."""


@dataclass(frozen=True, slots=True)
class Range:
    """A choice of the page."""

    name: str  # in the address
    words: str
    length_s: int
    first: str  # when a new instance is seen in it


RANGES = (
    Range("1h", "1 hour", HOUR, "20 seconds"),
    Range("6h", "6 hours", 6 * HOUR, "2 minutes"),
    Range("24h", "24 hours", DAY, "2 minutes"),
    Range("7d", "7 days", 7 * DAY, "2 minutes"),
    Range("15d", "15 days", 15 * DAY, "2 minutes"),
    Range("400d", "400 days", 400 * DAY, "an hour"),
)


@dataclass(frozen=True, slots=True)
class Times:
    """[start, end). `range`: the last so much; None: from a moment to another, as `form` has them."""

    start: datetime
    end: datetime
    range: Range | None
    form: TimesForm

    @property
    def length_s(self) -> float:
        """Of all of it."""
        return (self.end - self.start).total_seconds()

    @property
    def counted_step_s(self) -> int | None:
        """Of what Python adds up, row by row: hours where the time is long, days where it is very long.

        None: the shortest steps that fit. Of 15 days these would be made of 21,600 rows, in seconds.
        """
        if self.length_s <= MINUTES_READ_S:
            return None
        return HOUR if self.length_s <= HOURS_READ_S else DAY

    @property
    def is_wrong(self) -> bool:
        """Whether what was asked for cannot be shown: the form says why."""
        return bool(self.form.errors)

    @property
    def span(self) -> str:
        """Of what is no range: the two moments, in UTC."""
        return f"{self.start:%Y-%m-%d %H:%M} \N{EN DASH} {self.end:%Y-%m-%d %H:%M}"


def range_times(chosen: Range, now: datetime) -> Times:
    """The last so much."""
    start = now - timedelta(seconds=chosen.length_s)
    return Times(start, now, chosen, TimesForm(now=now, initial={"since": start, "until": now}))


def times_chosen(request: HttpRequest, now: datetime) -> Times:
    """What the address says; the first range where it says nothing, and where it makes no sense. Raises NotFound."""
    wanted = request.GET.get("range", RANGES[0].name)
    chosen = next((each for each in RANGES if each.name == wanted), None)
    if chosen is None:
        raise NotFound("there is nothing at this address")
    if not {"since", "until"} & request.GET.keys():
        return range_times(chosen, now)
    form = TimesForm({name: _typed(request.GET.get(name, "")) for name in ("since", "until")}, now=now)
    if not form.is_valid():
        return Times(now - timedelta(seconds=chosen.length_s), now, None, form)
    start, end = form.wanted()
    return Times(start, end, None, form)


def _typed(text: str) -> str:
    """A moment of the address, which may name a time zone, as an input of a page has it: in UTC."""
    try:
        moment = datetime.fromisoformat(text)
        return f"{(moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC):{FORM}}"
    except (ValueError, OverflowError):
        return text
