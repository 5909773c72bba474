"""A month of an organisation: its invoices of the month and the credit notes written in it, added up."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from django.conf import settings

from controlplane.billing import selectors
from controlplane.billing.chain import number_text
from controlplane.billing.exports.statement import StatedInvoice, Statement
from controlplane.billing.pricing.money import total_of
from controlplane.billing.pricing.rating import TAX
from controlplane.billing.waiting import CLOSE_AFTER, adjusting_to_come, to_come
from controlplane.core.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models import QuerySet

    from controlplane.billing.exports.credit_note import CreditNoteDocument
    from controlplane.billing.exports.document import InvoiceDocument
    from controlplane.billing.models import CreditNote, Invoice
    from controlplane.billing.pricing.rating import Month
    from controlplane.tenants.models import Organisation

AT_ONCE = 50
"""So many invoices are in memory with what they were computed from."""


def statement_get(*, organisation: Organisation, month: Month, clock: Clock = SYSTEM_CLOCK) -> Statement:
    """As of now. Raises Conflict where a document is not what was sealed."""
    now = clock.now()
    # Before the invoices are read: one that is written meanwhile is counted twice rather than never.
    missing = to_come(organisation=organisation, month=month, now=now)
    adjusting = adjusting_to_come(organisation=organisation, month=month, now=now)
    invoices = _invoices(organisation, month).defer("inputs")
    notes = selectors.note_documents_of(_notes(organisation, month), organisation)
    return Statement(
        seller=settings.ENVIRONMENT.seller,
        organisation_id=organisation.pk,
        organisation=organisation.name,
        month=str(month),
        start=month.start,
        end=month.end,
        invoices=tuple(map(_stated, invoices)),
        notes=tuple(notes),
        to_come=missing,
        may_come=adjusting,
        is_complete=not missing and not adjusting and now >= month.end + CLOSE_AFTER,
    )


def documents_of(*, organisation: Organisation, month: Month) -> Iterator[InvoiceDocument | CreditNoteDocument]:
    """The documents of a statement, whole. Raises Conflict where one is not what was sealed."""
    for invoice in _invoices(organisation, month).iterator(AT_ONCE):
        yield selectors.document_of(invoice, organisation)
    yield from selectors.note_documents_of(_notes(organisation, month), organisation)


def _invoices(organisation: Organisation, month: Month) -> QuerySet[Invoice]:
    rows = selectors.invoice_list(organisation=organisation).filter(month=str(month))
    return rows.select_related("instance").order_by("number")


def _notes(organisation: Organisation, month: Month) -> list[CreditNote]:
    """Those written in the month, whatever month they correct: a statement of a month that is over stays as it is."""
    rows = selectors.credit_note_list(organisation=organisation)
    rows = rows.filter(created_at__gte=month.start, created_at__lt=month.end).select_related("invoice__instance")
    return list(rows.defer("invoice__inputs").order_by("number"))


def _stated(invoice: Invoice) -> StatedInvoice:
    sealed = selectors.sealed_of(invoice)
    tax = total_of(Decimal(line["amount"]) for line in sealed.lines if line["item"] == TAX)
    return StatedInvoice(
        number=number_text(sealed.number),
        instance_id=sealed.instance,
        instance=invoice.instance.name,
        currency=sealed.currency,
        tax=tax,
        total=sealed.total,
        issued=sealed.created_at,
    )
