"""A credit note as a PDF: one page of the parts that an invoice's has. Pure, and the same bytes on any day."""

from __future__ import annotations

from collections.abc import Iterator

from reportlab.lib.units import mm
from reportlab.platypus import Flowable, Paragraph, Spacer

from controlplane.billing.exports.credit_note import CreditNoteDocument
from controlplane.billing.exports.pdf import (
    HEADING,
    SMALL,
    TEXT,
    TITLE,
    amounts,
    facts,
    file_of,
    lozenges,
    moment,
    safe,
    sum_line,
)


def credit_note_pdf(document: CreditNoteDocument) -> bytes:
    """The whole file."""
    return file_of(f"Credit note {document.number}", _parts(document))


def _parts(document: CreditNoteDocument) -> Iterator[Flowable]:
    names = document.names
    yield Paragraph(f"Credit note {document.number}", TITLE)
    yield facts(
        [
            ("From", safe(names.seller)),
            ("To", safe(f"{names.organisation} ({document.organisation_id})")),
            ("On invoice", f"{document.invoice} of {document.month}"),
            ("Instance", safe(f"{names.instance} ({document.instance_id})")),
            ("Issued", f"{moment(document.issued)} UTC"),
            ("Currency", document.currency),
        ]
    )
    yield Paragraph("Reason", HEADING)
    yield Paragraph(safe(document.reason), TEXT)
    yield Spacer(1, 6 * mm)
    yield sum_line("Given back", document.currency, document.amount)
    if document.taxes:
        parts = [("Without tax", document.net), *((safe(str(tax)), tax.amount) for tax in document.taxes)]
        yield amounts(parts, document.currency)
    yield Spacer(1, 6 * mm)
    yield Paragraph("The invoice stays as it is; this note stands beside it.", SMALL)
    yield Paragraph(f"SHA-256 of this credit note, which the next one carries: {document.hash}", SMALL)
    yield Paragraph(f"SHA-256 of the credit note before it: {document.previous_hash}", SMALL)
    yield Paragraph(f"SHA-256 of the invoice: {document.invoice_hash}", SMALL)
    yield from lozenges(
        names.seller, names.organisation, names.instance, document.reason, *(tax.name for tax in document.taxes)
    )
