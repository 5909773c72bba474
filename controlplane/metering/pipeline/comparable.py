"""Which hours can be compared, and of which clusters. Pure; hours are texts as usage records write them.

Each cluster has a table of raw records of its own. One that lacks some of the hours is left out of these, and named; the others
are compared all the same. So a comparison says what it did not look at:

============== =========================================================================================================
gone           the table is not there (a lake that was lost, a cluster that was retired). Days of which the database has
               usage of that cluster stay due until it is back
begins_later   the table is there, and begins after these hours: they are never compared
============== =========================================================================================================

A cluster that has no usage in the hours before its table begins lacks none of them: it is new. One that is retired and has no
usage in hours is not missed in them. Where no table has anything of hours, all clusters are named.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TypeAlias

from controlplane.metering.pipeline.quota_days import AGAIN_DAYS

MIDNIGHT = "T00:00:00Z"
DAY_LENGTH = len("2026-05-01")
TOLD_WITHIN_MS = 10 * 60_000
"""As `metering.selectors.TOLD_WITHIN`: so long after a day's end its records still come."""


@dataclass(frozen=True, slots=True)
class Range:
    """Hours [start, end)."""

    start: str
    end: str

    @property
    def days(self) -> list[str]:
        """The days of which it has all hours; empty where it begins or ends within one."""
        if not (self.start.endswith(MIDNIGHT) and self.end.endswith(MIDNIGHT)):
            return []
        first, last = date.fromisoformat(self.start[:DAY_LENGTH]), date.fromisoformat(self.end[:DAY_LENGTH])
        return [(first + timedelta(days=number)).isoformat() for number in range((last - first).days)]

    def cut_at(self, hour: str) -> tuple[Range, Range]:
        """What is before an hour, and what is from it on; either may be empty."""
        cut = min(max(self.start, hour), self.end)
        return Range(self.start, cut), Range(cut, self.end)

    def whole_days(self) -> Range:
        """Without what it has of days at its edges of which it has not all; empty where there is no whole day."""
        start, end = _midnight_from(self.start), f"{self.end[:DAY_LENGTH]}{MIDNIGHT}"
        return Range(start, max(start, end))


@dataclass(frozen=True, slots=True)
class Part:
    """Hours in which the same clusters can be compared. `read`: those; none: nothing can be. The others are named."""

    hours: Range
    read: tuple[str, ...]
    gone: tuple[str, ...] = ()
    begins_later: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Looked:
    """A comparison of before, as far as it decides what is due."""

    start: str
    end: str
    at_ms: int
    gone: tuple[str, ...] = ()
    with_late: bool = True  # whether days before were looked at, of which records had come late


Used: TypeAlias = Callable[[str, Range], bool]
"""Whether the database has usage of a cluster in some hours."""


def parts(hours: Range, tables: Mapping[str, str | None], used: Used, retired: Container[str]) -> list[Part]:
    """The hours in order, cut where a table begins; whole days are cut between days.

    `tables`: from which hour on each cluster's has all that was told; None: there is none.
    """
    first = min((begins for begins in tables.values() if begins is not None), default=hours.end)
    reads = {name: _read_from(hours, name, begins, first, used) for name, begins in tables.items()}
    cuts = sorted({hours.start, *(each for each in reads.values() if hours.start < each < hours.end)})
    return [
        _part(Range(start, end), tables, reads, used, retired)
        for start, end in zip(cuts, [*cuts[1:], hours.end], strict=True)
    ]


def _read_from(hours: Range, cluster: str, begins: str | None, first: str, used: Used) -> str:
    """From where on the cluster can be compared, within the hours; their end: nowhere. `first`: where any table begins."""
    if begins is None:
        return hours.end
    if begins > hours.start and not used(cluster, Range(hours.start, min(begins, hours.end))):
        begins = first
    if hours.days:
        begins = _midnight_from(begins)
    return min(max(begins, hours.start), hours.end)


def _part(
    hours: Range, tables: Mapping[str, str | None], reads: Mapping[str, str], used: Used, retired: Container[str]
) -> Part:
    read = tuple(name for name, start in reads.items() if start <= hours.start)
    others = [name for name in tables if name not in read]
    gone = (name for name in others if tables[name] is None and (not read or name not in retired or used(name, hours)))
    later = (name for name in others if tables[name] is not None and (not read or used(name, hours)))
    return Part(hours, read, tuple(gone), tuple(later))


def days_due(last: date | None, looks: Sequence[Looked], used: Used) -> list[date]:
    """Whole days of the last two weeks, up to the last that can be compared, that no look has settled; oldest first.

    Before the first look it is the last such day alone: what was there before can be asked for by name.
    """
    if last is None:
        return []
    if not looks:
        return [last]
    first = last - timedelta(days=AGAIN_DAYS - 1)
    if min(look.end for look in looks) > hour_of(first):
        first = max(first, min(_next_of(look, used) for look in looks))
    days = (first + timedelta(days=number) for number in range((last - first).days + 1))
    return [day for day in days if not any(_settles(look, day, used) for look in looks)]


def since_ms(looks: Sequence[Looked], cluster: str) -> int | None:
    """Records of the cluster that were written to `__usage` before this moment have been compared; None: of none is that known.

    A look is at hours of which all had been read that was written until TOLD_WITHIN behind them. What was written later, be it
    before the look, may have come into the table after it.
    """
    counting = (look for look in looks if look.with_late and cluster not in look.gone)
    return max((min(look.at_ms, _read_to_ms(look)) for look in counting), default=None)


def _read_to_ms(look: Looked) -> int:
    return round(datetime.fromisoformat(look.end).timestamp() * 1000) + TOLD_WITHIN_MS


def _next_of(look: Looked, used: Used) -> date:
    """The day that was to be compared next after a look: its own first where it lacked a cluster."""
    missed = any(used(cluster, Range(look.start, look.end)) for cluster in look.gone)
    return date.fromisoformat((look.start if missed else look.end)[:DAY_LENGTH])


def _settles(look: Looked, day: date, used: Used) -> bool:
    hours = day_range(day)
    covers = look.start <= hours.start and hours.end <= look.end
    return covers and not any(used(cluster, hours) for cluster in look.gone)


def day_range(day: date) -> Range:
    """Its hours."""
    return Range(hour_of(day), hour_of(day + timedelta(days=1)))


def hour_of(day: date) -> str:
    """The first hour of a day."""
    return f"{day.isoformat()}{MIDNIGHT}"


def _midnight_from(hour: str) -> str:
    day = date.fromisoformat(hour[:DAY_LENGTH])
    return hour if hour.endswith(MIDNIGHT) else hour_of(day + timedelta(days=1))
