"""Files of invoices, credit notes and statements as HTTP answers: the same for REST and for the console."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpResponse

from controlplane.billing.exports.credit_note_pdf import credit_note_pdf
from controlplane.billing.exports.focus import focus_csv
from controlplane.billing.exports.pdf import invoice_pdf
from controlplane.billing.exports.statement_pdf import statement_pdf
from controlplane.billing.selectors import credit_note_exported, invoice_exported
from controlplane.billing.statements import documents_of, statement_get

if TYPE_CHECKING:
    from controlplane.billing.pricing.rating import Month
    from controlplane.tenants.models import Organisation

PDF, CSV = "application/pdf", "text/csv"


def pdf_answer(*, organisation: Organisation, number: str) -> HttpResponse:
    """Raises NotFound, Conflict."""
    document = invoice_exported(organisation=organisation, number=number)
    return _file(invoice_pdf(document), f"{document.number}.pdf", PDF)


def focus_answer(*, organisation: Organisation, number: str) -> HttpResponse:
    """Raises NotFound, Conflict."""
    document = invoice_exported(organisation=organisation, number=number)
    return _file(focus_csv(document), f"{document.number}-focus.csv", f"{CSV}; charset=utf-8")


def note_pdf_answer(*, organisation: Organisation, number: str) -> HttpResponse:
    """Of a credit note. Raises NotFound, Conflict."""
    document = credit_note_exported(organisation=organisation, number=number)
    return _file(credit_note_pdf(document), f"{document.number}.pdf", PDF)


def note_focus_answer(*, organisation: Organisation, number: str) -> HttpResponse:
    """The same. Raises NotFound, Conflict."""
    document = credit_note_exported(organisation=organisation, number=number)
    return _file(focus_csv(document), f"{document.number}-focus.csv", f"{CSV}; charset=utf-8")


def statement_pdf_answer(*, organisation: Organisation, month: Month) -> HttpResponse:
    """Of a month of the organisation. Raises Conflict."""
    found = statement_get(organisation=organisation, month=month)
    return _file(statement_pdf(found), f"statement-{found.month}.pdf", PDF)


def statement_focus_answer(*, organisation: Organisation, month: Month) -> HttpResponse:
    """The rows of all its documents. Raises Conflict."""
    content = focus_csv(*documents_of(organisation=organisation, month=month))
    return _file(content, f"statement-{month}-focus.csv", f"{CSV}; charset=utf-8")


def _file(content: bytes, name: str, content_type: str) -> HttpResponse:
    # To be saved; browsers shall not make anything else of it.
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "X-Content-Type-Options": "nosniff"}
    return HttpResponse(content, content_type=content_type, headers=headers)
