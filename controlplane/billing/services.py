"""Choosing a plan; closing months.

An invoice closes CLOSE_AFTER after its month's end, so that the last usage records have come. Closing freezes the
inputs, their hash and the lines in one row; doing it again finds the row and changes nothing. A bill that cannot be computed is
noted for operators, tried again each time, and no obstacle to those behind it. `invoice_check` computes it all once more and says
what differs.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction

from controlplane.billing import documents
from controlplane.billing.models import Invoice, InvoiceFailure, PlanChoice
from controlplane.billing.rating import Month, total
from controlplane.billing.selectors import inputs_of, plan_named, plan_of
from controlplane.core import audit
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Conflict
from controlplane.instances.models import Instance

if TYPE_CHECKING:
    from controlplane.tenants.models import Organisation

LOG = logging.getLogger(__name__)
CLOSE_AFTER = timedelta(hours=6)
LOOK_BACK = 3
"""Months that are closed late where the service was down at their end."""


@transaction.atomic
def plan_choose(
    *, organisation: Organisation, actor: str, plan: str, month: Month, clock: Clock = SYSTEM_CLOCK
) -> PlanChoice:
    """A plan from the beginning of a month on, this one or later. Raises Invalid, Conflict."""
    plan_named(plan)
    if month.start < Month.of(clock.now()).start:
        raise Conflict(f"{month} is over: a plan can change from this month on", code="month_over")
    rows = PlanChoice.objects.for_organisation(organisation)
    choice, _ = rows.update_or_create(organisation=organisation, from_month=str(month), defaults={"plan": plan})
    detail = {"plan": plan, "from_month": str(month)}
    audit.record(organisation=organisation, actor=actor, action="plan.choose", target=plan, detail=detail, clock=clock)
    return choice


def invoices_close(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Close every month that is due, for every instance that existed in it; how many invoices were written."""
    now = clock.now()
    return sum(_close_month(month, now) for month in months_due(now))


def months_due(now: datetime) -> list[Month]:
    """The last months whose waiting time is over, oldest first."""
    months = []
    month = Month.of(now - CLOSE_AFTER)
    for _ in range(LOOK_BACK):
        month = Month.of(month.start - timedelta(days=1))
        months.append(month)
    return months[::-1]


def _close_month(month: Month, now: datetime) -> int:
    closed = Invoice.objects.unscoped("the closer serves every organisation").filter(month=str(month))
    rows = Instance.objects.unscoped("the closer serves every organisation").select_related("organisation")
    due = rows.filter(created_at__lt=month.end).exclude(deleted_at__lt=month.start)
    return sum(
        _close_guarded(instance, month, now)
        for instance in due.exclude(pk__in=closed.values("instance_id")).order_by("pk").iterator()
    )


def _close_guarded(instance: Instance, month: Month, now: datetime) -> bool:
    failures = InvoiceFailure.objects.unscoped("the closer serves every organisation")
    about = {"organisation_id": instance.organisation_id, "instance": instance, "month": str(month)}
    try:
        made = invoice_close(instance=instance, month=month, now=now)
    except Exception as error:  # what is the matter with one bill must not keep all others from being written
        LOG.exception("invoice of %s for %s", instance.id, month)
        problem = f"{type(error).__name__}: {error}"
        failures.update_or_create(**about, defaults={"problem": problem, "at": now})
        return False
    failures.filter(instance=instance, month=str(month)).delete()
    return made


def invoice_close(*, instance: Instance, month: Month, now: datetime) -> bool:
    """Freeze one bill; whether it was this call that did it."""
    plan = plan_of(organisation=instance.organisation, month=month)
    inputs = inputs_of(instance, plan, month, now)
    lines = documents.rated(inputs)
    invoice = Invoice(
        organisation_id=instance.organisation_id,
        instance=instance,
        month=str(month),
        currency=plan.currency,
        total=total(lines),
        lines=[documents.line_document(line) for line in lines],
        inputs=inputs,
        input_hash=documents.digest_of(inputs),
        created_at=now,
    )
    try:
        with transaction.atomic():
            invoice.save(force_insert=True)
    except IntegrityError:  # another worker closed it meanwhile
        return False
    LOG.info("invoice of %s for %s: %s %s", instance.id, month, invoice.total, invoice.currency)
    return True


def invoice_check(*, invoice: Invoice) -> list[str]:
    """What is not as it was: sentences, none when the invoice computes from today's rows to the same lines."""
    found = []
    if documents.digest_of(invoice.inputs) != invoice.input_hash:
        found.append("the inputs are not those that were sealed")
    lines = documents.rated(invoice.inputs)
    if [documents.line_document(line) for line in lines] != invoice.lines or total(lines) != invoice.total:
        found.append("the inputs give other lines")
    month = documents.month_of(invoice.month)
    plan = plan_of(organisation=invoice.organisation, month=month)
    today = inputs_of(invoice.instance, plan, month, datetime.fromisoformat(invoice.inputs["now"]))
    found += [f"{name} has changed since" for name in today if today[name] != invoice.inputs[name]]
    return found
