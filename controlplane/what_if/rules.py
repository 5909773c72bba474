"""Days of the quota report beside another limit. Pure.

A day is *over* a limit where its largest minute is, and *mostly over* where its 95th percentile is: more than 72 minutes. A flow
that was throttled shows no more than the limit of that day, so of a larger size nothing can be said by how much it would have
been used; on how many days somebody waited says whether a larger one would have helped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

MIB, GIB = 2**20, 2**30
FLOWS, STORAGE = ("produce", "consume"), "storage"
RESOURCES = (*FLOWS, STORAGE)


@dataclass(frozen=True, slots=True)
class ReportedDay:
    """Of the quota report: bytes a second, or bytes of storage."""

    resource: str  # one of RESOURCES
    p95: int
    most: int
    throttled_minutes: int


@dataclass(frozen=True, slots=True)
class ResourceDays:
    """A resource's days in a month, beside a limit that is in the unit of the days."""

    resource: str
    limit: int | None  # None: its size was not asked for, and differed within the month
    reported: int
    over: int | None
    mostly_over: int | None
    throttled: int  # days on which somebody waited, at the size that it had
    most: int | None  # None: no day was reported


def limits_of(*, bandwidth_mib_per_s: Decimal | None, storage_gib: Decimal | None) -> Mapping[str, int | None]:
    """By resource, of a size: in bytes, as its instance would have them (instances/spec.py)."""
    flow = None if bandwidth_mib_per_s is None else max(1, round(bandwidth_mib_per_s * MIB))
    return {**dict.fromkeys(FLOWS, flow), STORAGE: None if storage_gib is None else max(1, round(storage_gib * GIB))}


def days_beside(days: Iterable[ReportedDay], limits: Mapping[str, int | None]) -> tuple[ResourceDays, ...]:
    """Each of RESOURCES."""
    known = list(days)
    return tuple(_of(name, [day for day in known if day.resource == name], limits[name]) for name in RESOURCES)


def _of(resource: str, days: list[ReportedDay], limit: int | None) -> ResourceDays:
    return ResourceDays(
        resource,
        limit,
        len(days),
        None if limit is None else sum(day.most > limit for day in days),
        None if limit is None else sum(day.p95 > limit for day in days),
        sum(day.throttled_minutes > 0 for day in days),
        max((day.most for day in days), default=None),
    )
