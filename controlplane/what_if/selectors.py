"""What a month of an instance would have cost otherwise, and how its days would have fitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from controlplane.billing.pricing import documents
from controlplane.billing.pricing.money import difference_of
from controlplane.billing.pricing.rating import Month, Size, total
from controlplane.billing.pricing.what_if import Wanted, is_elastic_known, what_if_document
from controlplane.billing.selectors import bill_get, check_summed, plan_throughout
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import FieldProblem, Invalid
from controlplane.instances.selectors import instance_any
from controlplane.instances.validation import RULES
from controlplane.quotas.report import report_days
from controlplane.what_if.rules import ReportedDay, ResourceDays, days_beside, limits_of

if TYPE_CHECKING:
    from controlplane.tenants.models import Organisation

SIZES = ("bandwidth_mib_per_s", "storage_gib", "partitions")
AS_IT_WAS: Mapping[str, float | None] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A month as it was, or is so far, and as it would have been."""

    instance_id: str
    month: Month
    so_far: bool  # the month is not invoiced
    currency: str
    cost: Decimal  # without adjustments of earlier months
    plans: tuple[str, ...]  # in order
    would_currency: str
    would_cost: Decimal
    would_plans: tuple[str, ...]
    size: Size | None  # that it would have had at last; None: the instance was not there
    days: tuple[ResourceDays, ...]
    is_elastic_known: bool  # False: elastic use is not estimated, and counted as it was at the bandwidth of then

    @property
    def difference(self) -> Decimal | None:
        """How much more it would have cost; None: in another currency."""
        return difference_of(self.would_cost, self.cost) if self.currency == self.would_currency else None


def what_if_get(
    *,
    organisation: Organisation,
    instance_id: str,
    month: Month,
    size: Mapping[str, float | None] = AS_IT_WAS,
    plan: str | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> WhatIf:
    """`size` has members of SIZES; what is None stays as it was. Raises NotFound, Invalid, Conflict."""
    wanted = _wanted(size)
    terms = None if plan is None else (plan_throughout(plan, month),)
    bill = bill_get(organisation=organisation, instance_id=instance_id, month=month, clock=clock)
    instance = instance_any(organisation=organisation, instance_id=instance_id)
    inputs: Mapping[str, Any] = (bill.invoice.inputs if bill.invoice else bill.inputs) or {}
    was, would = what_if_document(inputs), what_if_document(inputs, wanted, terms)
    check_summed(would, documents.rated(would))
    sizes = [
        period.size
        for period in documents.periods_in(would)
        if period.start < month.end and (period.until is None or period.until > month.start)
    ]
    rows = report_days(instance=instance, start=month.start, end=month.end)
    days = [ReportedDay(row.resource, row.p95, row.most, row.throttled_minutes) for row in rows]
    bandwidths, disks = {each.bandwidth_mb_per_s for each in sizes}, {each.disk_gb for each in sizes}
    limits = limits_of(
        bandwidth_mib_per_s=bandwidths.pop() if len(bandwidths) == 1 else None,
        storage_gib=disks.pop() if len(disks) == 1 else None,
    )
    own, other = documents.terms_in(was), documents.terms_in(would)
    return WhatIf(
        instance.pk,
        month,
        bill.invoice is None,
        own[-1].plan.currency,
        total(documents.rated(was)),
        tuple(dict.fromkeys(term.plan.name for term in own)),
        other[-1].plan.currency,
        total(documents.rated(would)),
        tuple(dict.fromkeys(term.plan.name for term in other)),
        sizes[-1] if sizes else None,
        days_beside(days, limits),
        is_elastic_known(inputs, would),
    )


def _wanted(size: Mapping[str, float | None]) -> Wanted:
    """Raises Invalid with everything that is wrong."""
    given = {name: value for name, value in size.items() if value is not None}
    problems = [
        FieldProblem(name, problem) for name, value in given.items() if (problem := RULES[name](value)) is not None
    ]
    if problems:
        raise Invalid.fields(problems)

    def decimal(name: str) -> Decimal | None:
        return Decimal(str(given[name])) if name in given else None

    partitions = given.get("partitions")
    return Wanted(
        decimal("bandwidth_mib_per_s"), decimal("storage_gib"), None if partitions is None else int(partitions)
    )
