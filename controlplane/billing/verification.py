"""Computing invoices again: whether each is what was sealed, and what today's rows say of its month. Credit notes with them.

Two kinds of difference. An invoice that does not fit its hash, its inputs or its neighbours was tampered with or damaged.
One whose month looks different today (late usage, above all) is as it was, and the next invoice adjusts it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from controlplane.billing.chain import NOTE_PREFIX, PREFIX, break_before, number_text
from controlplane.billing.models import CreditNote, Invoice
from controlplane.billing.pricing import documents
from controlplane.billing.pricing.adjustments import compared
from controlplane.billing.pricing.credits import credit_terms_of, credits_in
from controlplane.billing.pricing.elastic import elastic_in
from controlplane.billing.pricing.money import text_of, total_of
from controlplane.billing.pricing.plans import plan_version
from controlplane.billing.pricing.prepaid_prices import prices_version
from controlplane.billing.pricing.rating import Line, Month, Span, slots_of, spans_of, total
from controlplane.billing.pricing.taxes import tax_in
from controlplane.billing.selectors import (
    credit_note_list,
    invoice_list,
    late_usage,
    missed_days,
    paid_in_advance,
    periods_of,
    tax_of,
    terms_of,
)
from controlplane.metering.elastic import elastic_hours, is_kept
from controlplane.metering.recomputed import RawCompared, raw_compared
from controlplane.quotas.report import is_reported

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from controlplane.tenants.models import Organisation


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as it was. `line` counts from 1 and is None where it is about the invoice as a whole.

    Codes: number, chain, hash, inputs, line, total, credited (damaged); price_list, plans, sizes, prepaid, elastic, guarantee,
    tax, usage (the month looks different). `credit_note`: its number, where it is about one of the invoice's notes.
    """

    invoice: str  # its number
    code: str
    detail: str  # a sentence
    line: int | None = None
    item: str | None = None
    invoiced: str | None = None
    recomputed: str | None = None
    credit_note: str | None = None

    def document(self) -> dict[str, Any]:
        """As REST shows it."""
        return asdict(self)


def invoice_verify(*, invoice: Invoice) -> list[Difference]:
    """Everything that can be said of one invoice; nothing where it is what its rows give."""
    return [*_sealed(invoice), *_follows(invoice), *_recomputed(invoice), *_today(invoice), *_credited(invoice)]


def invoice_raw(*, invoice: Invoice) -> RawCompared:
    """What the raw records have said of its month: behind every hour of usage stand records with an offset each."""
    month = documents.month_of(invoice.month)
    return raw_compared(instance=invoice.instance, first=month.start.date(), after=month.end.date())


def organisation_verify(*, organisation: Organisation) -> list[Difference]:
    """All invoices of an organisation and then its credit notes, from the first on.

    Damage only, since late usage is no fault of the chain.
    """
    return [*_invoices_verify(organisation), *_notes_verify(organisation)]


def _invoices_verify(organisation: Organisation) -> Iterator[Difference]:
    before: Invoice | None = None
    for invoice in invoice_list(organisation=organisation).order_by("number").iterator():
        yield from (*_chained(invoice, before), *_sealed(invoice), *_recomputed(invoice))
        before = invoice


def _notes_verify(organisation: Organisation) -> Iterator[Difference]:
    rows = (
        credit_note_list(organisation=organisation).select_related("invoice").defer("invoice__lines", "invoice__inputs")
    )
    before: CreditNote | None = None
    given: dict[int, Decimal] = {}
    for note in rows.order_by("number").iterator():
        yield from _note(note, before)
        given[note.invoice_id] = total_of((given.get(note.invoice_id, Decimal(0)), note.amount))
        yield from _beyond(note, given[note.invoice_id])
        before = note


def _credited(invoice: Invoice) -> Iterator[Difference]:
    """The notes of one invoice, each with the one before it in the organisation."""
    rows = credit_note_list(organisation=invoice.organisation)
    befores: dict[int, CreditNote | None] = {}
    previous: CreditNote | None = None
    for link in rows.order_by("number").only("number", "hash"):  # one query, however many notes the invoice has
        befores[link.pk], previous = previous, link
    sum_of = Decimal(0)
    for note in rows.filter(invoice=invoice).order_by("number"):
        note.invoice = invoice  # whose inputs are large, and read already
        yield from _note(note, befores[note.pk])
        sum_of = total_of((sum_of, note.amount))
        yield from _beyond(note, sum_of)


def _note(note: CreditNote, before: CreditNote | None) -> Iterator[Difference]:
    about: dict[str, Any] = {"invoice": number_text(note.invoice.number), "credit_note": note.number_text}
    broken = break_before(note, before, NOTE_PREFIX, "credit note")
    if broken is not None:
        yield Difference(code=broken[0], detail=broken[1], **about)
    digest = note.sealed().hash()
    if digest != note.hash:
        detail = "it is not the credit note that was sealed, or not of this invoice"
        yield Difference(code="hash", detail=detail, invoiced=note.hash, recomputed=digest, **about)


def _beyond(note: CreditNote, given: Decimal) -> Iterator[Difference]:
    """`given`: by this note and by those before it. What is not of the invoice's kind at all is beyond it, too."""
    about: dict[str, Any] = {"invoice": number_text(note.invoice.number), "credit_note": note.number_text}
    if given > note.invoice.total or note.currency != note.invoice.currency:
        yield Difference(
            code="credited",
            detail="with it more is given back than the invoice has",
            invoiced=f"{note.invoice.currency} {text_of(note.invoice.total)}",
            recomputed=f"{note.currency} {text_of(given)}",
            **about,
        )


def _sealed(invoice: Invoice) -> Iterator[Difference]:
    name = number_text(invoice.number)
    digest = invoice.sealed().hash()
    if digest != invoice.hash:
        yield Difference(name, "hash", "it is not the invoice that was sealed", None, None, invoice.hash, digest)
    digest = documents.digest_of(invoice.inputs)
    if digest != invoice.input_hash:
        detail = "the inputs are not those that were sealed"
        yield Difference(name, "inputs", detail, None, None, invoice.input_hash, digest)


def _follows(invoice: Invoice) -> Iterator[Difference]:
    rows = invoice_list(organisation=invoice.organisation).filter(number__lt=invoice.number)
    yield from _chained(invoice, rows.order_by("number").last())


def _chained(invoice: Invoice, before: Invoice | None) -> Iterator[Difference]:
    broken = break_before(invoice, before, PREFIX, "invoice")
    if broken is not None:
        yield Difference(number_text(invoice.number), *broken)


def _recomputed(invoice: Invoice) -> Iterator[Difference]:
    """From the inputs, line by line."""
    name = number_text(invoice.number)
    lines = documents.line_documents(invoice.inputs)
    for place in range(max(len(lines), len(invoice.lines))):
        was = invoice.lines[place] if place < len(invoice.lines) else None
        now = lines[place] if place < len(lines) else None
        if was != now:
            item = (was or now or {}).get("item")
            yield Difference(name, "line", "the inputs give another line", place + 1, item, _said(was), _said(now))
    amount = total(documents.rated(invoice.inputs))
    if amount != invoice.total:
        detail = "the lines add up to another total"
        yield Difference(name, "total", detail, None, None, text_of(invoice.total), text_of(amount))


def _today(invoice: Invoice) -> Iterator[Difference]:
    """From today's rows, at the prices that the invoice names."""
    name, inputs = number_text(invoice.number), invoice.inputs
    month = documents.month_of(invoice.month)
    for term in documents.terms_in(inputs):
        try:
            published = plan_version(term.plan.name, term.plan.version)
        except LookupError as error:
            yield Difference(name, "price_list", str(error))
        else:
            if published != term.plan:
                detail = f"version {published.version} of the plan {published.name!r} has other prices today"
                yield Difference(name, "price_list", detail)
    sealed = _named(spans_of(documents.terms_in(inputs), month))
    today = _named(spans_of(terms_of(organisation=invoice.organisation, month=month), month))
    if sealed != today:
        yield Difference(name, "plans", "the plans of the month are others today", None, None, str(sealed), str(today))
    now = datetime.fromisoformat(inputs["now"])
    if slots_of(documents.periods_in(inputs), month, now) != slots_of(periods_of(invoice.instance), month, now):
        yield Difference(name, "sizes", "the sizes of the month are others today")
    yield from _prepaid(invoice, now)
    yield from _elastic(invoice, month)
    yield from _guarantee(invoice, month)
    taxed, due = tax_in(inputs.get("tax")), tax_of(invoice.organisation_id, month)
    if taxed != due:
        yield Difference(
            name, "tax", "the tax of the month is another today", None, None, str(taxed or "none"), str(due or "none")
        )
    yield from _late(invoice)


def _prepaid(invoice: Invoice, now: datetime) -> Iterator[Difference]:
    """What was paid in advance, up to the invoice."""
    name, sealed = number_text(invoice.number), documents.prepaid_in(invoice.inputs)
    today = paid_in_advance(invoice.instance)
    if sealed.events != tuple(event for event in today.events if event.at <= now):
        yield Difference(name, "prepaid", "what was paid in advance by then is something else today")
    for prices in {event.prices for event in sealed.events if event.prices is not None}:
        try:
            published = prices_version(prices.name, prices.version)
        except LookupError as error:
            yield Difference(name, "price_list", str(error))
        else:
            if published != prices:
                detail = f"version {prices.version} of the price list {prices.name!r} has other prices today"
                yield Difference(name, "price_list", detail)


def _elastic(invoice: Invoice, month: Month) -> Iterator[Difference]:
    """What was carried above the bought bandwidth, as masters have said it by now. What came late is not billed.

    Of a month whose minutes are forgotten there is nothing to compare with.
    """
    if not is_kept(month.start):
        return
    name, sealed = number_text(invoice.number), elastic_in(invoice.inputs.get("elastic"))
    hours = elastic_hours(instance=invoice.instance, start=month.start, end=month.end)
    if dict(sealed.hours) != hours:
        yield Difference(name, "elastic", "what was carried above the bought bandwidth is something else today")


def _guarantee(invoice: Invoice, month: Month) -> Iterator[Difference]:
    """Days on which the bandwidth that was bought could not be had, as the quota report has it by now. What came late stays so.

    Of a month whose days are forgotten, or that has no terms, there is nothing to compare with.
    """
    if not is_reported(month.start) or credit_terms_of(month) is None:
        return
    sealed = credits_in(invoice.inputs.get("guarantee"))
    if dict(sealed.days) != missed_days(invoice.instance, month):
        name = number_text(invoice.number)
        yield Difference(name, "guarantee", "the days on which the guarantee was missed are others today")


def _late(invoice: Invoice) -> Iterator[Difference]:
    for late in late_usage(instance=invoice.instance, only=invoice):
        for old, new, line in compared(late):
            yield Difference(
                late.invoice,
                "usage",
                f"usage of {line.start:%Y-%m-%d %H:%M} to {line.end:%Y-%m-%d %H:%M} UTC is known by now that was not then:"
                f" the next invoice in {invoice.currency} adjusts it",
                line.adjusts.line if line.adjusts else None,
                line.item,
                _quantity(old),
                _quantity(new),
            )


def _quantity(line: Line | None) -> str:
    return "0" if line is None else f"{text_of(line.quantity)} {line.unit}"


def _said(line: Mapping[str, Any] | None) -> str | None:
    return f"{line['quantity']} {line['unit']}, {line['amount']}" if line else None


def _named(spans: Sequence[Span]) -> list[tuple[datetime, str, int]]:
    return [(span.start, span.plan.name, span.plan.version) for span in spans]
