"""Closing months: bills become invoices.

A month is due CLOSE_AFTER after its end, so that the last usage records have come. Closing freezes the inputs, their hash
and the lines in one row, under the organisation's next number and chained to the invoice before (chain.py); doing it again
finds the row and changes nothing. Usage of an earlier month that became known after its invoice goes onto this one as
adjustment lines (adjustments.py). An instance that is gone gets an invoice only where something is left to bill.

A bill that cannot be computed is noted for operators, tried again each time, and no obstacle to those behind it.

Two workers may close at the same time. Which late usage an invoice has to bill depends on the invoices before it, and the
number says which those are: who finds the number taken computes it all anew.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction

from controlplane.billing import documents
from controlplane.billing.chain import FIRST
from controlplane.billing.models import Invoice, InvoiceFailure, Settled
from controlplane.billing.rating import Month, total
from controlplane.billing.selectors import inputs_of, late_usage, terms_of
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import ConcurrentChange
from controlplane.instances.models import Instance

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet

LOG = logging.getLogger(__name__)
CLOSE_AFTER = timedelta(hours=6)
LOOK_BACK = 12
"""Months that are closed late where the service or its metering was down."""
ADJUSTED_FOR = 12
"""Months for which usage that comes late is still billed, or paid back."""
ATTEMPTS = 20
_REASON = "the closer serves every organisation"


def invoices_close(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Close every month that is due, for every instance that existed in it; how many invoices were written."""
    now = clock.now()
    months = months_due(now)
    closed = sum(_close_guarded(instance, month, now) for month in months for instance in _existing(month))
    return closed + sum(_close_guarded(instance, months[-1], now) for instance in _gone(months[-1]))


def months_due(now: datetime) -> list[Month]:
    """The last months whose waiting time is over, oldest first."""
    months = []
    month = Month.of(now - CLOSE_AFTER)
    for _ in range(LOOK_BACK):
        month = Month.of(month.start - timedelta(days=1))
        months.append(month)
    return months[::-1]


def invoice_close(*, instance: Instance, month: Month, now: datetime) -> bool:
    """Freeze one bill; whether it was this call that did it. Raises ConcurrentChange where others are always faster."""
    for _ in range(ATTEMPTS):
        if Invoice.objects.unscoped(_REASON).filter(instance=instance, month=str(month)).exists():
            return False
        invoice = _draft(instance, month, now)
        if not invoice.lines and instance.deleted_at is not None and instance.deleted_at < month.start:
            about = {"organisation_id": instance.organisation_id, "instance": instance, "month": str(month)}
            Settled.objects.unscoped(_REASON).get_or_create(**about, defaults={"at": now})
            return False
        try:
            with transaction.atomic():
                invoice.save(force_insert=True)
        except IntegrityError:  # another worker has taken the number, or closed the month
            continue
        LOG.info("%s, for %s in %s: sealed as %s", invoice, instance.id, month, invoice.hash)
        return True
    raise ConcurrentChange(f"{ATTEMPTS} numbers in a row were taken by others")


def _draft(instance: Instance, month: Month, now: datetime) -> Invoice:
    # The head is read first: an invoice that comes after it takes the number, and then this draft is never saved.
    head = (
        Invoice.objects.unscoped(_REASON).filter(organisation_id=instance.organisation_id).order_by("-number").first()
    )
    terms = terms_of(organisation=instance.organisation, month=month)
    currency = terms[-1].plan.currency
    since = month.before(ADJUSTED_FOR)
    # What is owed in another currency waits for an invoice in that one.
    late = [late for late in late_usage(instance=instance, since=since) if late.terms[-1].plan.currency == currency]
    inputs = inputs_of(instance, terms, month, now, late)
    lines = documents.rated(inputs)
    invoice = Invoice(
        number=head.number + 1 if head else 1,
        organisation_id=instance.organisation_id,
        instance=instance,
        month=str(month),
        currency=currency,
        total=total(lines),
        lines=[documents.line_document(line) for line in lines],
        inputs=inputs,
        input_hash=documents.digest_of(inputs),
        created_at=now,
        previous_hash=head.hash if head else FIRST,
    )
    invoice.hash = invoice.sealed().hash()
    return invoice


def _existing(month: Month) -> QuerySet[Instance]:
    """Instances that existed in a month and have no invoice for it."""
    closed = Invoice.objects.unscoped(_REASON).filter(month=str(month))
    rows = Instance.objects.unscoped(_REASON).select_related("organisation")
    rows = rows.filter(created_at__lt=month.end).exclude(deleted_at__lt=month.start)
    return rows.exclude(pk__in=closed.values("instance_id")).order_by("pk")


def _gone(month: Month) -> QuerySet[Instance]:
    """Instances that were gone before a month and have invoices that late usage may still adjust."""
    invoices = Invoice.objects.unscoped(_REASON)
    settled = Settled.objects.unscoped(_REASON).filter(month=str(month))
    rows = Instance.objects.unscoped(_REASON).select_related("organisation").filter(deleted_at__lt=month.start)
    rows = rows.filter(pk__in=invoices.filter(month__gte=str(month.before(ADJUSTED_FOR))).values("instance_id"))
    rows = rows.exclude(pk__in=invoices.filter(month=str(month)).values("instance_id"))
    return rows.exclude(pk__in=settled.values("instance_id")).order_by("pk")


def _close_guarded(instance: Instance, month: Month, now: datetime) -> bool:
    failures = InvoiceFailure.objects.unscoped(_REASON)
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
