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
from controlplane.billing.adjustments import by_span, late_of
from controlplane.billing.models import Invoice, InvoiceFailure, PlanChoice
from controlplane.billing.plans import plan_version
from controlplane.billing.rating import HOUR, Month, Span, floored, slots_of, spans_of, total
from controlplane.billing.selectors import hours_of, inputs_of, periods_of, plan_named, plan_of, terms_of
from controlplane.core import audit
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Conflict, Invalid
from controlplane.instances.models import Instance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controlplane.tenants.models import Organisation

LOG = logging.getLogger(__name__)
CLOSE_AFTER = timedelta(hours=6)
LOOK_BACK = 3
"""Months that are closed late where the service was down at their end."""


NOW, NEXT_MONTH = "now", "next_month"


@transaction.atomic
def plan_choose(
    *, organisation: Organisation, actor: str, plan: str, when: str = NOW, clock: Clock = SYSTEM_CLOCK
) -> PlanChoice:
    """A plan from the next full hour on (NOW), or from the next month (NEXT_MONTH): never for hours that have begun.

    It takes the place of changes that were chosen before and have not come into force. Raises Invalid, Conflict.
    """
    now = clock.now()
    if when not in (NOW, NEXT_MONTH):
        raise Invalid.field("when", f"must be {NOW} or {NEXT_MONTH}")
    at = Month.of(now).end if when == NEXT_MONTH else _hour_from(now)
    chosen = plan_named(plan, at)
    present = plan_of(organisation=organisation, at=now)
    if when == NOW and chosen.currency != present.currency:
        raise Conflict(
            f"{chosen.title} is paid in {chosen.currency}, this month in {present.currency}: choose it for the next month",
            code="other_currency",
        )
    rows = PlanChoice.objects.for_organisation(organisation)
    rows.filter(at__gte=at).delete()
    choice = PlanChoice(organisation=organisation, plan=plan, at=at)
    choice.save(force_insert=True)
    detail = {"plan": plan, "at": at.isoformat()}
    audit.record(organisation=organisation, actor=actor, action="plan.choose", target=plan, detail=detail, clock=clock)
    return choice


def _hour_from(moment: datetime) -> datetime:
    """The first full hour that does not begin before a moment."""
    hour = floored(moment)
    return hour if hour == moment else hour + HOUR


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
    terms = terms_of(organisation=instance.organisation, month=month)
    inputs = inputs_of(instance, terms, month, now)
    lines = documents.rated(inputs)
    invoice = Invoice(
        organisation_id=instance.organisation_id,
        instance=instance,
        month=str(month),
        currency=terms[-1].plan.currency,
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
    """What is not as it was: sentences, none when the invoice computes from today's rows to the same lines.

    Prices are those of the versions that the invoice names, whatever is sold today.
    """
    inputs = invoice.inputs
    month = documents.month_of(invoice.month)
    now = datetime.fromisoformat(inputs["now"])
    found = []
    if documents.digest_of(inputs) != invoice.input_hash:
        found.append("the inputs are not those that were sealed")
    if documents.line_documents(inputs) != invoice.lines or total(documents.rated(inputs)) != invoice.total:
        found.append("the inputs give other lines")
    for term in documents.terms_in(inputs):
        try:
            published = plan_version(term.plan.name, term.plan.version)
        except LookupError as error:
            found.append(str(error))
        else:
            if published != term.plan:
                found.append(f"version {published.version} of the plan {published.name!r} has other prices today")
    sealed = spans_of(documents.terms_in(inputs), month)
    today = spans_of(terms_of(organisation=invoice.organisation, month=month), month)
    if _named(sealed) != _named(today):
        found.append("the plans of the month have changed since")
    if slots_of(documents.periods_in(inputs), month, now) != slots_of(periods_of(invoice.instance), month, now):
        found.append("the sizes of the month have changed since")
    hours = hours_of(invoice.instance, month)
    if not documents.has_hours(inputs):
        hours = by_span(documents.terms_in(inputs), month, hours)
    if late_of(documents.hours_in(inputs), hours):
        found.append("the usage of the month has changed since")
    return found


def _named(spans: Sequence[Span]) -> list[tuple[datetime, str, int]]:
    return [(span.start, span.plan.name, span.plan.version) for span in spans]
