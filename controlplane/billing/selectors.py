"""Reading bills: of an instance and a month, as far as it has come or as it was invoiced; and prices beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from controlplane.billing import documents
from controlplane.billing.models import Invoice, InvoiceFailure, PlanChoice
from controlplane.billing.money import amount_of, text_of, total_of
from controlplane.billing.plans import DEFAULT_PLAN, PLANS, Plan, hourly
from controlplane.billing.rating import Month, Period, Size, Used, total
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Invalid
from controlplane.instances.history import spec_change_list
from controlplane.instances.models import Instance, SpecChangeKind
from controlplane.instances.selectors import instance_any
from controlplane.metering import selectors as metering

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from controlplane.tenants.models import Organisation

HOURS_PER_MONTH = 730
"""Of an average month, for estimates only."""


@dataclass(frozen=True, slots=True)
class Bill:
    """One instance, one month. `lines` are documents.line_document's; `invoice` is None while the month is open."""

    instance_id: str
    month: Month
    plan: str
    currency: str
    total: str
    lines: list[dict[str, str]]
    invoice: Invoice | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """What an instance of some size costs, before it is made. Amounts of use are not in it."""

    currency: str
    per_hour: Decimal
    per_month: Decimal  # of 730 hours
    lines: tuple[tuple[str, Decimal], ...]  # item, per hour


def bill_get(
    *, organisation: Organisation, instance_id: str, month: Month, plan: str | None = None, clock: Clock = SYSTEM_CLOCK
) -> Bill:
    """The bill so far, or the invoice. `plan`: what it would be under another plan. Raises NotFound, Invalid."""
    instance = instance_any(organisation=organisation, instance_id=instance_id)
    invoice = invoice_list(organisation=organisation).filter(instance=instance, month=str(month)).first()
    if invoice is not None and plan in (None, invoice.inputs["plan"]["name"]):
        name, amount = invoice.inputs["plan"]["name"], text_of(invoice.total)
        return Bill(instance.id, month, name, invoice.currency, amount, invoice.lines, invoice)
    chosen = plan_of(organisation=organisation, month=month) if plan is None else plan_named(plan)
    lines = documents.rated(inputs_of(instance, chosen, month, clock.now()))
    shown = [documents.line_document(line) for line in lines]
    return Bill(instance.id, month, chosen.name, chosen.currency, text_of(total(lines)), shown, None)


def inputs_of(instance: Instance, plan: Plan, month: Month, now: datetime) -> dict[str, Any]:
    """What the instance's bill is computed from, as the database has it now."""
    used = Used(*metering.usage_total(instance=instance, start=month.start, end=month.end))
    return documents.inputs_document(plan, periods_of(instance), month, now, used)


def periods_of(instance: Instance) -> list[Period]:
    """The history of sizes as periods; a change before the first opening only says with which size it opened."""
    periods: list[Period] = []
    started: tuple[datetime, Size] | None = None
    for change in spec_change_list(instance=instance):
        if started is not None:
            periods.append(Period(started[0], change.at, started[1]))
        elif change.kind != SpecChangeKind.OPENED:
            continue
        if change.kind == SpecChangeKind.CLOSED:
            return periods
        size = Size(Decimal(str(change.bandwidth_mib_per_s)), Decimal(str(change.storage_gib)), change.partitions)
        started = (change.at, size)
    return periods if started is None else [*periods, Period(started[0], None, started[1])]


def plan_of(*, organisation: Organisation, month: Month) -> Plan:
    """The organisation's plan in a month."""
    rows = PlanChoice.objects.for_organisation(organisation).filter(from_month__lte=str(month))
    choice = rows.order_by("-from_month").first()
    return PLANS[choice.plan if choice else DEFAULT_PLAN]


def plan_named(name: str) -> Plan:
    """Raises Invalid."""
    if name not in PLANS:
        raise Invalid.field("plan", f"must be one of {', '.join(PLANS)}")
    return PLANS[name]


def invoice_failures() -> QuerySet[InvoiceFailure]:
    """Bills that are due and could not be closed, of everybody: for operators."""
    rows = InvoiceFailure.objects.unscoped("operators look after every tenant's bills")
    return rows.select_related("instance").order_by("month", "instance_id")


def invoice_list(*, organisation: Organisation) -> QuerySet[Invoice]:
    """All invoices of an organisation."""
    return Invoice.objects.for_organisation(organisation)


def estimate(*, bandwidth_mib_per_s: float, storage_gib: float, partitions: int, plan: str = DEFAULT_PLAN) -> Estimate:
    """The price of an instance of this size, before it exists. Raises Invalid for a plan that is none."""
    chosen = plan_named(plan)
    entries = hourly(
        chosen,
        bandwidth_mb_per_s=Decimal(str(bandwidth_mib_per_s)),
        disk_gb=Decimal(str(storage_gib)),
        partitions=partitions,
    )
    lines = tuple((entry.item, entry.units * entry.unit_price) for entry in entries)
    per_hour = sum((price for _, price in lines), Decimal(0))
    month = total_of(amount_of(entry.units * HOURS_PER_MONTH, entry.unit_price) for entry in entries)
    return Estimate(chosen.currency, per_hour, month, lines)
