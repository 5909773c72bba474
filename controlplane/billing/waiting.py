"""Which months are due, which of them wait, and why.

A month is *due* CLOSE_AFTER after its end. Its invoices *wait* until metering has counted all usage up to the month's end
and GRACE beyond it (metering.selectors.Completeness), so that a broker which was away at the end has come back and told
what it had counted; and until the quota report of the month's last day says what is to be given back (`pricing/credits.py`).
Metering is that of the instance's cluster. An operator may *waive* all that by name, for the month or for
one instance: usage that comes after all is adjusted later; for days that are not reported by then nothing is given back.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Exists, Min, OuterRef, Q

from controlplane.billing.models import Invoice, MeteringWaiver, Settled
from controlplane.billing.pricing.credits import credit_terms_of
from controlplane.billing.pricing.rating import Month
from controlplane.instances.models import Instance
from controlplane.metering.pipeline.settings import DEFAULT_CLUSTER
from controlplane.metering.selectors import Completeness, completeness, completeness_by_cluster

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from django.db.models import QuerySet

    from controlplane.metering import finality
    from controlplane.tenants.models import Organisation

CLOSE_AFTER = timedelta(hours=6)
GRACE = timedelta(hours=1)
LOOK_BACK = 24
"""Months that are closed late where the service or its metering was down."""
ADJUSTED_FOR = 12
"""Months for which usage that comes late is still billed, or paid back."""

OPEN = "open"  # the month is not over
WAITING = "waiting_for_metering"  # it is over, and not all of its usage has been counted
CLOSING = "closing"  # nothing is missing any more: the invoice is written within minutes, or CLOSE_AFTER after the end
INVOICED = "invoiced"
NOTHING = "nothing"  # the instance was not there in this month
STATES = (OPEN, WAITING, CLOSING, INVOICED, NOTHING)

_REASON = "the closer serves every organisation"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A due month whose invoices wait."""

    month: Month
    why: str  # a sentence for operators
    invoices: int  # that wait
    brokers: tuple[finality.Waiting, ...] = ()  # whose hours and boots are missing
    cluster: str = DEFAULT_CLUSTER  # whose metering they wait for


def months_due(now: datetime) -> list[Month]:
    """The last months whose waiting time is over, oldest first."""
    months = []
    month = Month.of(now - CLOSE_AFTER)
    for _ in range(LOOK_BACK):
        month = month.before(1)
        months.append(month)
    return months[::-1]


def why_waiting(month: Month, metered: Completeness) -> str:
    """Why invoices of a month have to wait, for operators; empty: all of its usage has been counted, and its days are reported.

    `metered`: of the cluster that they are about.
    """
    reasons = [metered.why_not(until=month.end + GRACE)]
    if credit_terms_of(month) is not None:
        reasons.append(metered.why_unreported(until=month.end))
    return "; ".join(filter(None, reasons))


def uninvoiced(month: Month, cluster: str) -> QuerySet[Instance]:
    """Instances of a cluster that existed in a month and have no invoice for it."""
    rows = Instance.objects.unscoped(_REASON).select_related("organisation", "cluster")
    return rows.filter(_lacks(month), cluster__name=cluster).order_by("pk")


def gone(month: Month) -> QuerySet[Instance]:
    """Instances that were gone before a month and have invoices that late usage may still adjust, by one of that month."""
    of_it = Invoice.objects.unscoped(_REASON).filter(instance=OuterRef("pk"))
    settled = Settled.objects.unscoped(_REASON).filter(instance=OuterRef("pk"), month=str(month))
    rows = (
        Instance.objects.unscoped(_REASON).select_related("organisation", "cluster").filter(deleted_at__lt=month.start)
    )
    rows = rows.filter(Exists(of_it.filter(month__gte=str(month.before(ADJUSTED_FOR)))))
    return rows.exclude(Exists(of_it.filter(month=str(month)))).exclude(Exists(settled)).order_by("pk")


def to_come(*, organisation: Organisation, month: Month, now: datetime) -> int:
    """How many invoices of a month are owed and not written: as is known now, since a month that goes on may bring more.

    Of months before LOOK_BACK none is written any more.
    """
    if str(month) < str(months_due(now)[0]):
        return 0
    return Instance.objects.for_organisation(organisation).filter(_lacks(month)).count()


def adjusting_to_come(*, organisation: Organisation, month: Month, now: datetime) -> int:
    """How many instances that were gone before the month may bring an invoice of it, which adjusts an earlier one.

    Only while no later month is due: the closer then goes by that.
    """
    if str(month) < str(months_due(now)[-1]):
        return 0
    return gone(month).filter(organisation=organisation).count()


def unbilled(*, organisation: Organisation, now: datetime) -> list[Month]:
    """Months of which an invoice of this organisation is not written yet, the running one among them; oldest first. One query."""
    months = list(dict.fromkeys([*months_due(now), Month.of(now - CLOSE_AFTER), Month.of(now)]))
    counts = Instance.objects.for_organisation(organisation).aggregate(
        **{f"of_{number}": Count("pk", filter=_lacks(month)) for number, month in enumerate(months)}
    )
    return [month for month, count in zip(months, counts.values(), strict=True) if count]


def uninvoiced_ever(cluster: str, now: datetime) -> int:
    """How many instances that are or were on a cluster lack an invoice, of the present month as of the last LOOK_BACK."""
    months = dict.fromkeys([*months_due(now), Month.of(now - CLOSE_AFTER), Month.of(now)])
    lacking = Q()
    for month in months:
        lacking |= _lacks(month)
    return Instance.objects.unscoped(_REASON).filter(lacking, cluster__name=cluster).count()


def waived_instances(month: Month, cluster: str) -> QuerySet[Instance]:
    """Those of them that need not wait."""
    return uninvoiced(month, cluster).filter(_waived(month))


def waiting_instances(month: Month, cluster: str) -> QuerySet[Instance]:
    """Those that wait as long as not all usage of the month on their cluster has been counted."""
    return uninvoiced(month, cluster).exclude(_waived(month))


def waived_by(month: Month, reasons: Collection[str], instance_id: str | None) -> list[Instance]:
    """Whose invoices would wait no more: on these clusters, or one of them alone."""
    found = (each for name in reasons for each in waiting_instances(month, name))
    return [each for each in found if instance_id in (None, each.pk)]


def reasons_by_cluster(month: Month, cluster: str) -> dict[str, str]:
    """Why invoices of a month wait, by the clusters where they do; `cluster`: of this one alone; empty: of all."""
    return {
        name: why
        for name, of_it in completeness_by_cluster().items()
        if cluster in ("", name) and (why := why_waiting(month, of_it))
    }


def waiting_for_broker(broker: int, cluster: str, now: datetime) -> dict[Month, list[Instance]]:
    """Instances whose invoices wait for what this broker has not told, by their months, oldest first."""
    return {
        each.month: list(waiting_instances(each.month, cluster))
        for each in waiting(now)
        if each.cluster == cluster and any(one.broker == broker for one in each.brokers)
    }


def waiting(now: datetime) -> list[Waiting]:
    """The due months that wait, oldest first; once for each cluster whose metering some of their invoices wait for."""
    found = [
        Waiting(month, why_waiting(month, metered), count, tuple(metered.waiting_for(until=month.end + GRACE)), cluster)
        for cluster, metered in completeness_by_cluster().items()
        for month, count in _counts_waiting(
            now, Instance.objects.unscoped(_REASON).filter(cluster__name=cluster), metered
        ).items()
    ]
    return sorted((each for each in found if each.why), key=lambda each: str(each.month))


def months_waiting(*, organisation: Organisation, now: datetime) -> list[Month]:
    """Months of which an invoice of this organisation waits for metering, oldest first."""
    found = set()
    for cluster, metered in completeness_by_cluster().items():
        instances = Instance.objects.for_organisation(organisation).filter(cluster__name=cluster)
        found |= {month for month in _counts_waiting(now, instances, metered) if why_waiting(month, metered)}
    return sorted(found, key=str)


def waiting_ids(month: Month, instance_ids: Sequence[str]) -> set[str]:
    """Which of these instances have an invoice of a month that waits for the metering of their cluster."""
    found: set[str] = set()
    for cluster, metered in completeness_by_cluster().items():
        if why_waiting(month, metered):
            rows = waiting_instances(month, cluster).filter(pk__in=instance_ids)
            found.update(rows.values_list("pk", flat=True))
    return found


def _counts_waiting(now: datetime, instances: QuerySet[Instance], metered: Completeness) -> dict[Month, int]:
    """How many invoices of each due month would wait if nothing had been counted; in few queries however many months."""
    months = months_due(now)
    if not why_waiting(months[-1], metered):  # what is complete up to the newest is complete up to all before it
        return {}
    first = instances.aggregate(first=Min("created_at"))["first"]
    months = [month for month in months if first is not None and first < month.end]
    counts = instances.aggregate(
        **{f"of_{number}": Count("pk", filter=_lacks(month) & ~_waived(month)) for number, month in enumerate(months)}
    )
    return {month: count for month, count in zip(months, counts.values(), strict=True) if count}


def _lacks(month: Month) -> Q:
    """An instance existed in the month and has no invoice for it."""
    closed = Invoice.objects.unscoped(_REASON).filter(month=str(month), instance=OuterRef("pk"))
    was_there = Q(created_at__lt=month.end) & (Q(deleted_at=None) | Q(deleted_at__gte=month.start))
    return was_there & ~Q(Exists(closed))


def _waived(month: Month) -> Q:
    return Q(Exists(_waivers(month, OuterRef("pk"), OuterRef("cluster__name"))))


def month_waivers(*, instance: Instance, month: Month) -> QuerySet[MeteringWaiver]:
    """Those by which the instance's invoice of a month need not wait, the first one first."""
    return _waivers(month, instance.pk, instance.cluster.name).order_by("pk")


def _waivers(month: Month, instance: Any, cluster: Any) -> QuerySet[MeteringWaiver]:
    of_it = (Q(instance=None) | Q(instance=instance)) & (Q(cluster="") | Q(cluster=cluster))
    return MeteringWaiver.objects.filter(of_it, month=str(month))


def state_of(*, instance: Instance, month: Month, now: datetime, invoice: Invoice | None, lines: list[Any]) -> str:
    """One of STATES, of a bill with these lines."""
    if invoice is not None:
        return INVOICED
    gone = instance.deleted_at is not None and instance.deleted_at < month.start
    if not lines and (gone or instance.created_at >= month.end):
        return NOTHING
    if now < month.end:
        return OPEN
    needless = month_waivers(instance=instance, month=month).exists()
    return CLOSING if needless or not why_waiting(month, completeness(instance.cluster.name)) else WAITING
