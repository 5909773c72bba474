"""Rows of what operators decide about bills, where an invoice of nothing is enough for a test."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from controlplane.billing.chain import next_link
from controlplane.billing.models import CreditNote, Invoice


def note_row(organisation) -> CreditNote:
    """A credit note on the organisation's first invoice, whatever that comes to; the next one of the chain."""
    head = CreditNote.objects.for_organisation(organisation).order_by("number").last()
    number, previous_hash = next_link(head)
    note = CreditNote(
        number=number,
        organisation=organisation,
        invoice=Invoice.objects.for_organisation(organisation).get(number=1),
        currency="CNY",
        amount=Decimal("0.01"),
        reason="sorry",
        actor="ops@example.com",
        created_at=datetime(2026, 6, 3, tzinfo=UTC),
        previous_hash=previous_hash,
    )
    note.hash = note.sealed().hash()
    note.save(force_insert=True)
    return note
