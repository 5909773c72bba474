"""Reading the quota report: how each day went beside what was bought, and when it will not do any more.

A job of Spark makes it (`metering/pipeline/jobs/quota_report.py`); what a column means is in `metering/pipeline/quota_days.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from django.db.models import F, Max, Q

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.instances.models import Instance
from controlplane.metering.pipeline.quota_days import KEPT_DAYS, Guarantee
from controlplane.quotas.models import QuotaDay

if TYPE_CHECKING:
    from django.db.models import QuerySet

SOON_DAYS = 30
"""Whoever will be at a limit by then is shown to operators under "soon"."""
SHOWN = ("all", "missed", "soon")
FRESH_DAYS = 2
"""The newest day is yesterday, and until its report is made the day before."""


class Outlook(StrEnum):
    """What a day's forecast still says when it is read."""

    NONE = ""
    """Nothing in sight; or the day that was foretold has passed, and newer reports are missing."""
    REACHED = "reached"
    """The day's 95th percentile is at the limit, or above."""
    TREND = "trend"
    """The straight line is at the limit, the day itself was below."""
    AHEAD = "ahead"
    """On `exhausted_on`, from today on."""


@dataclass(frozen=True, slots=True)
class ReportRow:
    """A row as people read it."""

    instance: str
    day: str
    resource: str
    limit: int | None
    p50: int
    p95: int
    p99: int
    most: int
    used_percent: float | None
    headroom: int | None  # between the limit and the 95th percentile; None: there is no limit
    minutes: int
    throttled_minutes: int
    throttled_ms: int
    throttled_under_limit_ms: int | None
    guarantee: str | None
    exhausted_on: str | None

    @property
    def throttled_s(self) -> float:
        """For how long some broker made somebody wait."""
        return self.throttled_ms / 1000

    def outlook(self, today: date) -> Outlook:
        """Of an instance that lives."""
        if self.exhausted_on is None or self.limit is None:
            return Outlook.NONE
        if self.exhausted_on > self.day:
            return Outlook.AHEAD if self.exhausted_on >= today.isoformat() else Outlook.NONE
        if self.day < (today - timedelta(days=FRESH_DAYS)).isoformat():
            return Outlook.NONE
        return Outlook.REACHED if self.p95 >= self.limit else Outlook.TREND


def row_of(day: QuotaDay) -> ReportRow:
    """What a row says, with what follows from it."""
    limit = day.limit_in_force
    return ReportRow(
        day.instance, day.day, day.resource, limit, day.p50, day.p95, day.p99, day.most,
        None if day.used_permille is None else day.used_permille / 10,
        None if limit is None else max(0, limit - day.p95),
        day.minutes, day.throttled_minutes, day.throttled_ms, day.under_limit_ms, day.guarantee or None, day.exhausted_on,
    )  # fmt: skip


def report_days(
    *,
    instance: Instance,
    start: datetime,
    end: datetime,
    after: tuple[str, str] | None = None,
    limit: int | None = None,
) -> list[ReportRow]:
    """Days that begin in [start's day, end), the newest first, by resource; behind the day and resource of `after`.

    The caller has the instance from a selector within its organisation.
    """
    rows = QuotaDay.objects.filter(instance=instance.pk, day__gte=_text(start), day__lt=_first_from(end))
    if after is not None:
        day, resource = after
        rows = rows.filter(Q(day__lt=day) | Q(day=day, resource__gt=resource))
    return [row_of(row) for row in rows.order_by("-day", "resource")[:limit]]


def missed(*, instance: Instance, start: datetime, end: datetime) -> QuerySet[QuotaDay]:
    """Its rows of the days in [start, end) on which the guarantee was missed.

    The caller has the instance from a selector within its organisation.
    """
    return QuotaDay.objects.filter(
        instance=instance.pk, day__gte=_text(start), day__lt=_first_from(end), guarantee=Guarantee.MISSED
    )


def is_reported(start: datetime, *, clock: Clock = SYSTEM_CLOCK) -> bool:
    """Whether all reports from then on are still kept."""
    return start >= clock.now() - timedelta(days=KEPT_DAYS)


def newest_day() -> str | None:
    """The last one that has a report."""
    found: str | None = QuotaDay.objects.aggregate(newest=Max("day"))["newest"]
    return found


def report_of_day(*, day: str, show: str = "all", search: str = "") -> QuerySet[QuotaDay]:
    """Everybody's, those first that used most of their limit. For operators.

    `show`: "missed" is those whose guarantee was, "soon" those whose limit is reached within 30 days. `search`: in the id, or in
    the name that the instance has now.
    """
    rows = QuotaDay.objects.filter(day=day)
    if show == "missed":
        rows = rows.filter(guarantee=Guarantee.MISSED)
    elif show == "soon":
        rows = rows.filter(exhausted_on__lte=(date.fromisoformat(day) + timedelta(days=SOON_DAYS)).isoformat())
    if search:
        named = Instance.objects.unscoped("operators see every tenant's").filter(name__icontains=search)
        rows = rows.filter(Q(instance__icontains=search) | Q(instance__in=named.values("pk")))
    return rows.order_by(F("used_permille").desc(nulls_last=True), "instance", "resource")


def everybodys_page(*, day: str, after: tuple[str, str] | None, limit: int) -> list[ReportRow]:
    """Everybody's rows of a day by instance and resource, behind those of `after`. For operators."""
    rows = QuotaDay.objects.filter(day=day)
    if after is not None:
        instance, resource = after
        rows = rows.filter(Q(instance__gt=instance) | Q(instance=instance, resource__gt=resource))
    return [row_of(row) for row in rows.order_by("instance", "resource")[:limit]]


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).date().isoformat()


def _first_from(end: datetime) -> str:
    """The first day that does not begin before `end`."""
    moment = end.astimezone(UTC)
    is_midnight = (moment.hour, moment.minute, moment.second, moment.microsecond) == (0, 0, 0, 0)
    if is_midnight or moment.date() == date.max:
        return _text(moment)
    return _text(moment + timedelta(days=1))
