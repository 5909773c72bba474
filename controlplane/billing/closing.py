"""Closing months: bills become invoices.

An invoice is written when its month is due and all usage of the month has been counted, or an operator has waived that
(waiting.py). Closing freezes the inputs, their hash
and the lines in one row, under the organisation's next number and chained to the invoice before (chain.py); doing it again
finds the row and changes nothing. Usage of an earlier month that became known after its invoice goes onto this one as
adjustment lines (adjustments.py), if it was a month in the same currency: otherwise it waits for an invoice in that one, for
twelve months. An instance that is gone gets an invoice only where something is left to bill.

A bill that cannot be computed is noted for operators, tried again each time, and no obstacle to those behind it.

Two workers may close at the same time. Which late usage an invoice has to bill depends on the invoices before it, and the
number says which those are: who finds the number taken computes it all anew.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, transaction
from django.db.models import Q

from controlplane.billing.chain import next_link, number_text
from controlplane.billing.models import Invoice, InvoiceFailure, Settled
from controlplane.billing.pricing import documents
from controlplane.billing.pricing.currencies import check_sole_currency
from controlplane.billing.pricing.rating import Month, total
from controlplane.billing.selectors import inputs_of, late_usage, terms_of
from controlplane.billing.waiting import (
    ADJUSTED_FOR,
    GRACE,
    gone,
    month_waivers,
    months_due,
    uninvoiced,
    waiting_instances,
    waived_instances,
    why_waiting,
)
from controlplane.core import audit
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import ConcurrentChange
from controlplane.instances.models import Instance
from controlplane.metering.selectors import Completeness, completeness_by_cluster

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from controlplane.metering.models import BrokerWaiver

LOG = logging.getLogger(__name__)
ATTEMPTS = 20
_REASON = "the closer serves every organisation"


@dataclass(frozen=True, slots=True)
class Waived:
    """Why invoices of a month need not wait although not all of its usage has been counted."""

    brokers: Sequence[BrokerWaiver] = ()  # that are not waited for, whoever's invoice it is
    missing: str = ""  # all the same, in a sentence: only what is waived for the month, or the instance, is written


def invoices_close(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Close every month that is due and need not wait, for every instance that existed in it; how many were written."""
    now, metered = clock.now(), completeness_by_cluster()
    months = months_due(now)
    return sum(
        _month_close(month, now, cluster, of_it, newest=month == months[-1])
        for month in months
        for cluster, of_it in metered.items()
    )


def _month_close(month: Month, now: datetime, cluster: str, metered: Completeness, *, newest: bool) -> int:
    """Of the instances of one cluster: what another one's meter has to wait for is no obstacle to these."""
    why = why_waiting(month, metered)
    until = month.end + GRACE
    waived = (
        Waived(metered.waivers_applied(until=until), missing=why) if why or metered.has_waived(until=until) else None
    )
    instances = waived_instances(month, cluster) if why else uninvoiced(month, cluster)
    closed = sum(_close_guarded(instance, month, now, waived) for instance in instances.iterator())
    if not why and newest:
        closed += sum(
            _close_guarded(instance, month, now, waived) for instance in gone(month).filter(cluster__name=cluster)
        )
    if not why:
        return closed
    count = waiting_instances(month, cluster).count()
    if count:
        LOG.warning("%d invoices of %s on cluster %s wait: %s", count, month, cluster, why)
    return closed


def invoice_close(*, instance: Instance, month: Month, now: datetime, waived: Waived | None = None) -> bool:
    """Freeze one bill; whether it was this call that did it. `waived`: not all usage has been counted, and why that is no matter.

    That is on record in the organisation's audit trail, with the invoice. Raises ConcurrentChange where others are always faster.
    """
    for _ in range(ATTEMPTS):
        if Invoice.objects.unscoped(_REASON).filter(instance=instance, month=str(month)).exists():
            return False
        invoice = _draft(instance, month, now, waived=waived is not None)
        if not invoice.lines and instance.deleted_at is not None and instance.deleted_at < month.start:
            about: dict[str, Any] = {
                "organisation_id": instance.organisation_id,
                "instance": instance,
                "month": str(month),
            }
            Settled.objects.unscoped(_REASON).get_or_create(**about, defaults={"at": now})
            return False
        try:
            with transaction.atomic():
                invoice.save(force_insert=True)
                if waived is not None:
                    _record(invoice, instance, month, now, waived)
        except IntegrityError:
            if not _is_taken(invoice):
                raise  # no other worker is the reason: it would be refused each time
            continue  # another worker has taken the number, or closed the month
        LOG.info("%s, for %s in %s: sealed as %s", invoice, instance.id, month, invoice.hash)
        return True
    raise ConcurrentChange(f"{ATTEMPTS} numbers in a row were taken by others")


def _is_taken(invoice: Invoice) -> bool:
    """Whether another invoice has its number or its month: in its error each database names a constraint another way."""
    same = Q(organisation=invoice.organisation_id, number=invoice.number)
    same |= Q(instance=invoice.instance_id, month=invoice.month)
    return Invoice.objects.unscoped(_REASON).filter(same).exists()


def _record(invoice: Invoice, instance: Instance, month: Month, now: datetime, waived: Waived) -> None:
    """The invoice was written without waiting: on whose word. A broker may have been waived long before the month was due."""
    of_month = month_waivers(instance=instance, month=month) if waived.missing else []
    words = [(f"metering of {month}", each.reason, each.actor, each.at) for each in of_month]
    words += [
        (f"broker {each.broker} of cluster {each.cluster}", each.reason, each.by, each.at) for each in waived.brokers
    ]
    audit.record(
        organisation=instance.organisation,
        actor=audit.SYSTEM,
        action="invoice.close_waived",
        target=number_text(invoice.number),
        detail={
            "instance_id": instance.pk,
            "month": str(month),
            "missing": waived.missing,
            "waivers": [
                {"not_waited_for": what, "reason": reason, "by": by, "at": at.isoformat()}
                for what, reason, by, at in words
            ],
        },
        at=now,
    )


def _draft(instance: Instance, month: Month, now: datetime, *, waived: bool = False) -> Invoice:
    # The head is read first: an invoice that comes after it takes the number, and then this draft is never saved.
    head = (
        Invoice.objects.unscoped(_REASON).filter(organisation_id=instance.organisation_id).order_by("-number").first()
    )
    terms = terms_of(organisation=instance.organisation, month=month)
    currency = terms[-1].plan.currency
    late = late_usage(instance=instance, since=month.before(ADJUSTED_FOR), currency=currency)
    inputs = inputs_of(instance, terms, month, now, late=late, waived=waived)
    lines = documents.rated(inputs)
    check_sole_currency(inputs, lines)
    number, previous_hash = next_link(head)
    invoice = Invoice(
        number=number,
        organisation_id=instance.organisation_id,
        instance=instance,
        month=str(month),
        currency=currency,
        total=total(lines),
        lines=[documents.line_document(line) for line in lines],
        inputs=inputs,
        input_hash=documents.digest_of(inputs),
        created_at=now,
        previous_hash=previous_hash,
    )
    invoice.hash = invoice.sealed().hash()
    return invoice


def _close_guarded(instance: Instance, month: Month, now: datetime, waived: Waived | None) -> bool:
    failures = InvoiceFailure.objects.unscoped(_REASON)
    about: dict[str, Any] = {"organisation_id": instance.organisation_id, "instance": instance, "month": str(month)}
    try:
        made = invoice_close(instance=instance, month=month, now=now, waived=waived)
    except Exception as error:  # what is the matter with one bill must not keep all others from being written
        LOG.exception("invoice of %s for %s", instance.id, month)
        # A plan or a price list that is missing says so in a sentence; what else is raised here is a bug, with its name.
        problem = str(error) if type(error) is LookupError else f"{type(error).__name__}: {error}"
        failures.update_or_create(**about, defaults={"problem": problem, "at": now})
        return False
    failures.filter(instance=instance, month=str(month)).delete()
    return made
