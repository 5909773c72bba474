"""Months, days and hours as addresses carry them (``2026-11``, ``2026-11-21``, ``2026-11-21T09``), all in UTC. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from controlplane.core.errors import NotFound

MONTH, DAY, HOUR = "%Y-%m", "%Y-%m-%d", "%Y-%m-%dT%H"
EARLIEST, LATEST = 2000, 2999


@dataclass(frozen=True, slots=True)
class Span:
    """A month, a day or an hour, and its neighbours."""

    start: datetime
    end: datetime
    form: str

    @property
    def text(self) -> str:
        return self.start.strftime(self.form)

    @property
    def month(self) -> str:
        """The month it lies in."""
        return self.start.strftime(MONTH)

    @property
    def before(self) -> Span:
        return span_at(self.start - timedelta(hours=1), self.form)

    @property
    def after(self) -> Span:
        return span_at(self.end, self.form)

    def begun(self, now: datetime) -> bool:
        """Whether it lies in the future no longer."""
        return self.start <= now


def span_of(text: str | None, form: str, now: datetime) -> Span:
    """What an address asks for; the present one if it asks for none. Raises NotFound for what is no such time."""
    if text is None:
        return span_at(now, form)
    try:
        moment = datetime.strptime(text, form).replace(tzinfo=UTC)
    except ValueError as error:
        raise NotFound("there is no such month, day or hour") from error
    if not EARLIEST <= moment.year <= LATEST or moment.strftime(form) != text:
        raise NotFound("there is no such month, day or hour")
    return span_at(moment, form)


def span_at(moment: datetime, form: str) -> Span:
    """The span of this form that a moment lies in."""
    if form == HOUR:
        start = moment.replace(minute=0, second=0, microsecond=0)
        return Span(start, start + timedelta(hours=1), form)
    start = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if form == DAY:
        return Span(start, start + timedelta(days=1), form)
    start = start.replace(day=1)
    return Span(start, (start + timedelta(days=31)).replace(day=1), form)
