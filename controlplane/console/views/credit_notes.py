"""Credit notes: their files for tenants, and giving back a part of an invoice, for operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import messages
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from controlplane.billing import selectors as billing
from controlplane.billing.chain import number_text
from controlplane.billing.crediting import credit_note_write
from controlplane.billing.downloads import note_focus_answer, note_pdf_answer
from controlplane.billing.pricing.money import text_of, total_of
from controlplane.console.forms.billing import CreditNoteForm, InvoiceOfForm
from controlplane.console.page import staff_looks, staff_page, tenant_page
from controlplane.console.proof import proof_asked
from controlplane.core.errors import NotFound, SluiceError
from controlplane.tenants.operators import organisation_any

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller
    from controlplane.billing.models import Invoice


@require_safe
@tenant_page
def pdf(_request: HttpRequest, caller: Caller, note: str) -> HttpResponse:
    """A credit note as a PDF."""
    return note_pdf_answer(organisation=caller.organisation, number=note)


@require_safe
@tenant_page
def focus(_request: HttpRequest, caller: Caller, note: str) -> HttpResponse:
    """A credit note in FOCUS 1.2, as CSV."""
    return note_focus_answer(organisation=caller.organisation, number=note)


@require_safe
@staff_page
def pdf_of_operators(request: HttpRequest, owner_id: str, note: str) -> HttpResponse:
    """Any organisation's credit note as a PDF."""
    organisation = organisation_any(owner_id)
    answer = note_pdf_answer(organisation=organisation, number=note)
    staff_looks(request, organisation, note)
    return answer


@require_http_methods(["GET", "HEAD", "POST"])
@staff_page
@proof_asked
def of_operators(request: HttpRequest) -> HttpResponse:
    """An invoice that `?organisation=` and `?invoice=` name, what is left of it, and a form that gives back a part."""
    asked = InvoiceOfForm(request.GET or None)
    invoice = _invoice(asked)
    if invoice is None:
        return _shown(request, {"asked": asked}, wrong=bool(asked.errors))
    staff_looks(request, invoice.organisation, number_text(invoice.number))
    notes = billing.credit_notes_of([invoice])[invoice.pk]
    credited = total_of(note.amount for note in notes)
    left = invoice.total - credited
    form = CreditNoteForm(request.POST or None, initial={"left": text_of(left)})
    if form.is_valid():
        try:
            note = credit_note_write(
                organisation=invoice.organisation,
                invoice=number_text(invoice.number),
                actor=request.user.email,  # type: ignore[union-attr]  # staff_page has looked
                **form.cleaned_data,
            )
        except SluiceError as error:
            form.refuse(error)
            form.data = {**request.POST.dict(), "left": text_of(left)}  # what the page shows now is what one looks at
        else:
            messages.success(
                request, f"{note.number_text} is written: {note.currency} {text_of(note.amount)} given back."
            )
            named = {"organisation": invoice.organisation_id, "invoice": number_text(invoice.number)}
            return redirect(f"{reverse('console:fleet_credit_notes')}?{urlencode(named)}")
    context = {
        "asked": asked,
        "invoice": invoice,
        "number": number_text(invoice.number),
        "notes": billing.with_taxes(notes),
        "credited": credited,
        "left": left,
        "form": form,
    }
    return _shown(request, context, wrong=bool(form.errors))


def _invoice(asked: InvoiceOfForm) -> Invoice | None:
    """The one that is named; a name that is none stands beside its field."""
    if not asked.is_valid():
        return None
    try:
        organisation = organisation_any(asked.cleaned_data["organisation"].strip())
    except NotFound as error:
        asked.add_error("organisation", error.detail)
        return None
    try:
        return billing.invoice_get(organisation=organisation, number=asked.cleaned_data["invoice"].strip())
    except NotFound as error:
        asked.add_error("invoice", error.detail)
        return None


def _shown(request: HttpRequest, context: dict[str, Any], *, wrong: bool) -> HttpResponse:
    return render(request, "console/fleet_credit_notes.html", context, status=422 if wrong else 200)
