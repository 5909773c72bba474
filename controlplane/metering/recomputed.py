"""What the raw records have said of an instance's days: which of them the job `reconcile` has recomputed, and what was different.

The job keeps a row for each look at some hours (pipeline/jobs/reconcile.py). Of a day the last look counts that had all of it,
and the raw records of the instance's cluster. Of a look with very many differences only the first are kept: then it says nothing
of days of which it keeps none.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from controlplane.metering.models import Difference, Reconciliation
from controlplane.metering.pipeline.comparable import DAY_LENGTH, day_range, hour_of
from controlplane.metering.pipeline.reconcile_tables import MOST_DIFFERENCES
from controlplane.metering.selectors import moment_of

if TYPE_CHECKING:
    from controlplane.instances.models import Instance

MOST_SHOWN = 100


@dataclass(frozen=True, slots=True)
class RawCompared:
    """Of some days of an instance. Equal to the raw records, where all days are compared and nothing differs."""

    compared: tuple[date, ...]
    not_compared: tuple[date, ...]
    at: datetime | None  # the oldest of the looks that count; None: there is none
    differences: tuple[Difference, ...]  # of the instance, the first MOST_SHOWN


def raw_compared(*, instance: Instance, first: date, after: date) -> RawCompared:
    """Days [first, after)."""
    days = [first + timedelta(days=number) for number in range((after - first).days)]
    cluster = instance.cluster.name
    looks = [
        look
        for look in Reconciliation.objects.filter(start_hour__lt=hour_of(after), end_hour__gt=hour_of(first)).order_by(
            "-at_ms", "-pk"
        )
        if cluster not in (*look.gone, *look.begins_later)
    ]
    last = {day: look for day in days if (look := _last(looks, day)) is not None}
    found: dict[int, list[Difference]] = {}
    # What invoices differ by is late usage as a rule, which the next invoice adjusts: verification says that, of today.
    rows = Difference.objects.filter(
        reconciliation__in={look.pk for look in last.values()}, instance=instance.pk, against="database"
    )
    for row in rows.order_by("hour", "pk"):
        found.setdefault(row.reconciliation_id, []).append(row)
    differences, compared = [], []
    for day, look in last.items():
        of_day = [row for row in found.get(look.pk, ()) if row.hour[:DAY_LENGTH] == day.isoformat()]
        if of_day or look.different <= MOST_DIFFERENCES:
            compared.append(day)
            differences += of_day
    return RawCompared(
        tuple(compared),
        tuple(day for day in days if day not in compared),
        moment_of(min(last[day].at_ms for day in compared)) if compared else None,
        tuple(differences[:MOST_SHOWN]),
    )


def _last(looks: list[Reconciliation], day: date) -> Reconciliation | None:
    hours = day_range(day)
    return next((look for look in looks if look.start_hour <= hours.start and look.end_hour >= hours.end), None)
