"""Reading bills: of an instance and a month, as far as it has come or as it was invoiced; and prices beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import F, Q

from controlplane.billing import waiting
from controlplane.billing.chain import NOTE_PREFIX, Sealed, number_of, number_text
from controlplane.billing.exports.credit_note import CreditNoteDocument, credit_note_document
from controlplane.billing.exports.document import InvoiceDocument, Names, invoice_document
from controlplane.billing.models import (
    CreditNote,
    Invoice,
    InvoiceFailure,
    MeteringWaiver,
    PlanChoice,
    PrepaidEvent,
    TaxRate,
)
from controlplane.billing.pricing import documents
from controlplane.billing.pricing.adjustments import Late, adjustments, by_span, late_of, together
from controlplane.billing.pricing.credited_taxes import CreditedTax, credited_taxes
from controlplane.billing.pricing.credits import Missed, MissedDays, credits_of
from controlplane.billing.pricing.currencies import MixedCurrenciesError, check_sole_currency
from controlplane.billing.pricing.elastic import elastic_of
from controlplane.billing.pricing.money import amount_of, text_of, total_of
from controlplane.billing.pricing.plans import DEFAULT_PLAN, NAMES, Plan, hourly, month_day, plan_on
from controlplane.billing.pricing.prepaid import Account, Event, account_of
from controlplane.billing.pricing.prepaid import Prepaid as PaidInAdvance
from controlplane.billing.pricing.prepaid_prices import prices_in
from controlplane.billing.pricing.rating import (
    HOUR,
    USED,
    Hours,
    Line,
    Month,
    Period,
    Size,
    Span,
    Term,
    Used,
    spans_of,
    total,
)
from controlplane.billing.pricing.taxes import Tax
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Conflict, Invalid, NotFound
from controlplane.instances.history import spec_change_list
from controlplane.instances.models import Instance, SpecChangeKind
from controlplane.instances.selectors import instance_any
from controlplane.metering import selectors as metering
from controlplane.metering.elastic import elastic_hours
from controlplane.metering.pipeline.quota_days import MINUTE_MS
from controlplane.quotas.report import missed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.db.models import QuerySet

    from controlplane.tenants.models import Organisation

_FOUND = "the caller found the instance in its organisation"
_TAXES = "what was set for everybody is in the same table"
HOURS_PER_MONTH = 730
"""Of an average month, for estimates only."""


@dataclass(frozen=True, slots=True)
class Adjustment:
    """A line that adjusts an invoice, and where it stands."""

    invoice: str  # number of the later one
    month: str
    line: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Bill:
    """One instance, one month. `lines` are documents.line_document's; `invoice` is None while the month is open."""

    instance_id: str
    month: Month
    plan: str  # the last one of the month
    currency: str
    total: str
    lines: list[dict[str, Any]]
    invoice: Invoice | None
    spans: tuple[Span, ...]  # the month by plans
    state: str  # one of waiting.STATES
    counted_until: datetime | None = None  # while it waits: up to when all usage has been counted, as far as is known
    adjustments: tuple[Adjustment, ...] = ()  # lines of later invoices that adjust this one
    inputs: dict[str, Any] | None = None  # what a bill so far was computed from


@dataclass(frozen=True, slots=True)
class Estimate:
    """What an instance of some size costs, before it is made. Amounts of use are not in it."""

    currency: str
    per_hour: Decimal
    per_month: Decimal  # of 730 hours
    lines: tuple[tuple[str, Decimal], ...]  # item, per hour


def bill_get(
    *, organisation: Organisation, instance_id: str, month: Month, plan: str | None = None, clock: Clock = SYSTEM_CLOCK
) -> Bill:
    """The bill so far, or the invoice. `plan`: what it would be under another plan. Raises NotFound, Invalid.

    A bill so far has what is late of the month before, which its invoice will adjust.
    """
    instance = instance_any(organisation=organisation, instance_id=instance_id)
    invoice = invoice_list(organisation=organisation).filter(instance=instance, month=str(month)).first()
    if invoice is not None:
        spans = spans_of(documents.terms_in(invoice.inputs), month)
        if plan is None or {span.plan.name for span in spans} == {plan}:
            return _bill(instance, month, spans, invoice.lines, invoice.total, clock.now(), invoice=invoice)
    now = clock.now()
    late: Sequence[Late] = ()
    if plan is None:
        terms = terms_of(organisation=organisation, month=month)
        if Month.of(now) in (month, month.before(-1)):
            late = late_usage(instance=instance, since=month.before(1), currency=terms[-1].plan.currency)
    else:
        terms = (plan_throughout(plan, month),)
    inputs = inputs_of(instance, terms, month, now, late=late)
    lines = documents.rated(inputs)
    check_summed(inputs, lines)
    shown = [documents.line_document(line) for line in lines]
    return _bill(instance, month, spans_of(terms, month), shown, total(lines), now, inputs=inputs)


def _bill(
    instance: Instance,
    month: Month,
    spans: tuple[Span, ...],
    lines: list[dict[str, Any]],
    amount: Decimal,
    now: datetime,
    *,
    invoice: Invoice | None = None,
    inputs: dict[str, Any] | None = None,
) -> Bill:
    last = spans[-1].plan
    state = waiting.state_of(instance=instance, month=month, now=now, invoice=invoice, lines=lines)
    return Bill(
        instance.id,
        month,
        last.name,
        last.currency,
        text_of(amount),
        lines,
        invoice,
        spans,
        state,
        metering.complete_to(instance.cluster.name) if state == waiting.WAITING else None,
        () if invoice is None else adjustments_of(invoice),
        inputs,
    )


def check_summed(inputs: Mapping[str, Any], lines: Sequence[Line]) -> None:
    """Whether the lines of a bill, or of a what-if, can be added up. Raises Conflict."""
    try:
        check_sole_currency(inputs, lines)
    except MixedCurrenciesError as error:
        raise Conflict(str(error), code="other_currency") from error


def adjustments_of(invoice: Invoice) -> tuple[Adjustment, ...]:
    """Lines of later invoices that adjust this one."""
    number = number_text(invoice.number)
    rows = Invoice.objects.unscoped("of the same instance").filter(instance_id=invoice.instance_id)
    return tuple(
        Adjustment(number_text(later.number), later.month, line)
        for later in rows.filter(number__gt=invoice.number).defer("inputs").order_by("number")
        for line in later.lines
        if line.get("adjusts", {}).get("invoice") == number
    )


def inputs_of(
    instance: Instance,
    terms: Sequence[Term],
    month: Month,
    now: datetime,
    *,
    late: Sequence[Late] = (),
    waived: bool = False,
) -> dict[str, Any]:
    """What the instance's bill is computed from, as the database has it now."""
    hours, prepaid, periods = hours_of(instance, month), paid_in_advance(instance), periods_of(instance)
    charged = account_of(prepaid, periods, now).paid.charges if prepaid.events else ()
    tax, taxes = _taxes(
        instance.organisation_id, month, {Month.of(line.charged.at) for line in charged if line.charged}
    )
    elastic = elastic_of(elastic_hours(instance=instance, start=month.start, end=month.end), terms, month)
    return documents.inputs_document(
        terms, periods, month, now, hours, late=late, waived=waived, prepaid=prepaid, elastic=elastic,
        credits_=credits_of(missed_days(instance, month), month), tax=tax, taxes=taxes,
    )  # fmt: skip


def inputs_today(instance: Instance, plan: str, month: Month, now: datetime) -> dict[str, Any]:
    """The same of a month that may be invoiced already, under one plan for all of it. Raises Invalid."""
    return inputs_of(instance, (plan_throughout(plan, month),), month, now)


def tax_of(organisation_id: str, month: Month) -> Tax | None:
    """What invoices of a month are taxed with: as was set for the organisation, or else for everybody."""
    return _tax_in(_tax_rates(organisation_id), month)


def _taxes(organisation_id: str, month: Month, others: set[Month]) -> tuple[Tax | None, dict[str, Tax | None]]:
    """That of a month, and those of others that have another one."""
    rates = _tax_rates(organisation_id)
    present = _tax_in(rates, month)
    taxes = {str(other): _tax_in(rates, other) for other in others}
    return present, {other: tax for other, tax in taxes.items() if tax != present}


def _tax_rates(organisation_id: str) -> list[TaxRate]:
    """All that were set for the organisation, and then for everybody, the last month first."""
    rows = TaxRate.objects.unscoped(_TAXES).filter(Q(organisation_id=organisation_id) | Q(organisation=None))
    return sorted(rows.order_by("-month", "-pk"), key=lambda row: row.organisation_id is None)


def _tax_in(rates: Sequence[TaxRate], month: Month) -> Tax | None:
    row = next((row for row in rates if row.month <= str(month)), None)
    return None if row is None or not row.rate else Tax(row.name, row.rate.normalize())


def tax_list() -> QuerySet[TaxRate]:
    """All that were ever set, everybody's first: for operators."""
    order = (F("organisation").asc(nulls_first=True), "month")
    return TaxRate.objects.unscoped(_TAXES).select_related("organisation").order_by(*order)


def missed_days(instance: Instance, month: Month) -> MissedDays:
    """Of a month, the days on which the bandwidth that was bought could not be had, as the quota report says."""
    found: dict[date, list[Missed]] = {}
    for row in missed(instance=instance, start=month.start, end=month.end):
        found.setdefault(date.fromisoformat(row.day), []).append(
            Missed(row.under_limit_ms or 0, row.minutes * MINUTE_MS)
        )
    return {day: tuple(sorted(each)) for day, each in found.items()}


def paid_in_advance(instance: Instance) -> PaidInAdvance:
    """What has happened to what is paid in advance."""
    events = (
        Event(row.kind, row.at, row.months, None if row.prices is None else prices_in(row.prices), row.at_end)
        for row in prepaid_events(instance)
    )
    return PaidInAdvance(tuple(events))


def prepaid_events(instance: Instance) -> list[PrepaidEvent]:
    """In order."""
    return list(PrepaidEvent.objects.unscoped(_FOUND).filter(instance=instance).order_by("number"))


def account_get(instance: Instance, now: datetime) -> Account:
    """How what is paid in advance stands at a moment."""
    return account_of(paid_in_advance(instance), periods_of(instance), now)


def hours_of(instance: Instance, month: Month) -> dict[datetime, Used]:
    """The month's usage by the hour, as the tables have it now."""
    rows = metering.usage_hours(instance=instance, start=month.start, end=month.end)
    return {
        datetime.fromisoformat(row.hour): Used(row.produced_bytes, row.consumed_bytes, row.stored_byte_seconds)
        for row in rows
    }


def late_usage(
    *, instance: Instance, only: Invoice | None = None, since: Month | None = None, currency: str | None = None
) -> list[Late]:
    """Usage that is known by now and stands on no invoice: of the invoiced months since one, or of `only` one.

    `currency`: of months in this one; what is owed in another waits for an invoice in that one. What later invoices have
    adjusted already is no longer late.
    """
    rows = Invoice.objects.unscoped(_FOUND).filter(instance=instance)
    if only is not None:
        invoices = [only]
    else:
        invoices = list(rows.filter(month__gte=str(since)).order_by("number") if since else rows.order_by("number"))
    if not invoices:
        return []
    adjusted: dict[str, dict[datetime, Used]] = {}
    for inputs in rows.filter(number__gt=invoices[0].number).values_list("inputs", flat=True):
        for late in documents.late_in(inputs):
            adjusted[late.invoice] = together(adjusted.get(late.invoice, {}), late.changed)
    found = (_late_of(invoice, adjusted.get(number_text(invoice.number), {}), instance) for invoice in invoices)
    wanted = (late for late in found if currency in (None, late.terms[-1].plan.currency))
    return [late for late in wanted if adjustments(late)]


def _late_of(invoice: Invoice, adjusted: Hours, instance: Instance) -> Late:
    month = documents.month_of(invoice.month)
    terms = documents.terms_in(invoice.inputs)
    known, today = together(documents.hours_in(invoice.inputs), adjusted), hours_of(instance, month)
    by_hour = documents.has_hours(invoice.inputs)
    if not by_hour:
        known, today = by_span(terms, month, known), by_span(terms, month, today)
    return Late(
        invoice=number_text(invoice.number),
        month=month,
        terms=terms,
        lines={
            (line["item"], datetime.fromisoformat(line["from"])): number
            for number, line in enumerate(invoice.lines, start=1)
            if line["item"] in USED and "adjusts" not in line
        },
        billed=by_span(terms, month, known),
        changed=late_of(known, today),
        by_hour=by_hour,
    )


def periods_of(instance: Instance) -> list[Period]:
    """The history of sizes as periods; a change before the first opening only says with which size it opened.

    From its isolation until it is open again an instance has none: what was bought costs nothing meanwhile.
    """
    periods: list[Period] = []
    started: tuple[datetime, Size] | None = None
    for change in spec_change_list(instance=instance):
        if started is not None:
            periods.append(Period(started[0], change.at, started[1]))
        elif change.kind not in (SpecChangeKind.OPENED, SpecChangeKind.RESTORED):
            continue
        if change.kind == SpecChangeKind.CLOSED:
            return periods
        if change.kind == SpecChangeKind.ISOLATED:
            started = None
            continue
        size = Size(Decimal(str(change.bandwidth_mib_per_s)), Decimal(str(change.storage_gib)), change.partitions)
        started = (change.at, size)
    return periods if started is None else [*periods, Period(started[0], None, started[1])]


def terms_of(*, organisation: Organisation, month: Month) -> tuple[Term, ...]:
    """The organisation's plans within a month, each in the version that prices the month. Raises LookupError."""
    rows = PlanChoice.objects.for_organisation(organisation).filter(at__lt=month.end).order_by("at")
    chosen = [(max(row.at, month.start), row.plan) for row in rows]
    by_hour = {month.start: DEFAULT_PLAN, **dict(chosen)}  # of those before the month the last one stands
    day = month_day(month.start)
    return tuple(Term(start, plan_on(name, day)) for start, name in sorted(by_hour.items()))


def plan_throughout(name: str, month: Month) -> Term:
    """One plan for all of a month: a what-if. Raises Invalid."""
    return Term(month.start, plan_named(name, month.start))


def plan_of(*, organisation: Organisation, at: datetime) -> Plan:
    """The organisation's plan at a moment."""
    terms = terms_of(organisation=organisation, month=Month.of(at))
    return next(term.plan for term in reversed(terms) if term.start <= at)


def plan_counted(*, organisation: Organisation, at: datetime) -> Plan:
    """By which prices what is bought at a moment counts: one that was chosen in this hour is in force for most of its hours.

    But none in another currency than the month that has not ended: what is charged now is on that month's bill.
    """
    present = plan_of(organisation=organisation, at=at)
    following = plan_of(organisation=organisation, at=at + HOUR)
    return following if following.currency == present.currency else present


def currency_next(*, organisation: Organisation, at: datetime) -> tuple[Plan, datetime] | None:
    """A plan in another currency that was chosen and is still to come, and when."""
    present = plan_of(organisation=organisation, at=at)
    for choice in PlanChoice.objects.for_organisation(organisation).filter(at__gt=at).order_by("at"):
        following = plan_named(choice.plan, choice.at)
        if following.currency != present.currency:
            return following, choice.at
    return None


@dataclass(frozen=True, slots=True)
class PlanState:
    """The plan of a moment, and a change that was chosen and is still to come."""

    present: Plan
    following: PlanChoice | None

    @property
    def text(self) -> str:
        """In short, as a page's form has it: who sends it back is told where it is another by then."""
        change = f" {self.following.plan} {documents.moment_text(self.following.at)}" if self.following else ""
        return f"{self.present.name}{change}"


def plan_state(*, organisation: Organisation, at: datetime) -> PlanState:
    """The organisation's. Where the present plan was chosen again, nothing changes."""
    present = plan_of(organisation=organisation, at=at)
    rows = PlanChoice.objects.for_organisation(organisation).filter(at__gt=at).exclude(plan=present.name)
    return PlanState(present, rows.order_by("at").first())


def plan_named(name: str, at: datetime) -> Plan:
    """As it is sold in the month of a moment. Raises Invalid."""
    try:
        return plan_on(name, month_day(at))
    except LookupError as error:
        raise Invalid.field("plan", f"must be one of {', '.join(NAMES)}, and sold in that month") from error


def invoice_failures() -> QuerySet[InvoiceFailure]:
    """Bills that are due and could not be closed, of everybody: for operators."""
    rows = InvoiceFailure.objects.unscoped("operators look after every tenant's bills")
    return rows.select_related("instance").order_by("month", "instance_id")


def waiver_about(*, month: str, cluster: str, instance_id: str | None) -> MeteringWaiver | None:
    """The one of a month (YYYY-MM), of a cluster (empty: all) and of an instance (None: all), if somebody has said it."""
    return MeteringWaiver.objects.filter(month=month, cluster=cluster, instance_id=instance_id).first()


def waivers() -> QuerySet[MeteringWaiver]:
    """What operators have waived, newest first."""
    return MeteringWaiver.objects.select_related("instance").order_by("-at", "-pk")


def invoice_list(*, organisation: Organisation, month: str = "", instance_id: str = "") -> QuerySet[Invoice]:
    """Invoices of an organisation: all, or those of a month (`2026-11`), or of an instance."""
    wanted = {"month": month, "instance_id": instance_id}
    rows = Invoice.objects.for_organisation(organisation)
    return rows.filter(**{name: value for name, value in wanted.items() if value})


def invoice_get(*, organisation: Organisation, number: str) -> Invoice:
    """By its number as people write it. Raises NotFound."""
    try:
        wanted = number_of(number)
        return invoice_list(organisation=organisation).select_related("instance").get(number=wanted)
    except (ValueError, OverflowError, Invoice.DoesNotExist) as error:
        raise NotFound(f"no invoice {number}") from error


def invoice_exported(*, organisation: Organisation, number: str) -> InvoiceDocument:
    """An invoice as its PDF and its FOCUS rows take it. Raises NotFound, and Conflict where it is not what was sealed."""
    return document_of(invoice_get(organisation=organisation, number=number), organisation)


def sealed_of(invoice: Invoice) -> Sealed:
    """What was sealed. Raises Conflict where the row is not that any more, or its lines do not add up to its total."""
    sealed = invoice.sealed()
    adds_up = total_of(Decimal(line["amount"]) for line in sealed.lines) == sealed.total
    if sealed.hash() != invoice.hash or not adds_up:
        number = number_text(invoice.number)
        raise Conflict(f"{number} is not the invoice that was sealed: compute it once more", code="invoice_damaged")
    return sealed


def document_of(invoice: Invoice, organisation: Organisation) -> InvoiceDocument:
    """Of an invoice of the organisation. Raises Conflict where it is not what was sealed."""
    names, sealed = Names(settings.ENVIRONMENT.seller, organisation.name, invoice.instance.name), sealed_of(invoice)
    last_plan = documents.terms_in(invoice.inputs)[-1].plan
    waived = invoice.inputs.get("metering") == "waived"
    return invoice_document(sealed, names, last_plan=last_plan, waived=waived)


def credit_note_list(*, organisation: Organisation) -> QuerySet[CreditNote]:
    """All credit notes of an organisation."""
    return CreditNote.objects.for_organisation(organisation)


def credit_note_get(*, organisation: Organisation, number: str) -> CreditNote:
    """By its number as people write it. Raises NotFound."""
    try:
        wanted = number_of(number, NOTE_PREFIX)
        return credit_note_list(organisation=organisation).select_related("invoice__instance").get(number=wanted)
    except (ValueError, OverflowError, CreditNote.DoesNotExist) as error:
        raise NotFound(f"no credit note {number}") from error


def credit_notes_of(invoices: Sequence[Invoice]) -> dict[int, list[CreditNote]]:
    """Those of several invoices, by the invoices' keys, each in order and with its invoice; with one query."""
    rows = CreditNote.objects.unscoped("the caller found the invoices in their organisation")
    by_key = {invoice.pk: invoice for invoice in invoices}
    found: dict[int, list[CreditNote]] = {key: [] for key in by_key}
    for note in rows.filter(invoice_id__in=by_key).order_by("number"):
        note.invoice = by_key[note.invoice_id]
        found[note.invoice_id].append(note)
    return found


def credited_of(invoice: Invoice) -> Decimal:
    """What all notes of an invoice give back together."""
    return total_of(note.amount for note in credit_notes_of([invoice])[invoice.pk])


def with_taxes(notes: Sequence[CreditNote]) -> list[tuple[CreditNote, tuple[CreditedTax, ...]]]:
    """Notes, which have their invoices with them, each with how much of each tax is in it; with one query."""
    invoices = {note.invoice_id: note.invoice for note in notes}
    taxes: dict[int, tuple[CreditedTax, ...]] = {}
    for key, of_invoice in credit_notes_of(list(invoices.values())).items():
        before = Decimal(0)
        for note in of_invoice:
            taxes[note.pk] = credited_taxes(invoices[key].lines, invoices[key].total, before, note.amount)
            before += note.amount
    return [(note, taxes[note.pk]) for note in notes]


def credit_note_exported(*, organisation: Organisation, number: str) -> CreditNoteDocument:
    """A note as its PDF and its FOCUS row take it. Raises NotFound, and Conflict where it is not what was sealed."""
    (document,) = note_documents_of([credit_note_get(organisation=organisation, number=number)], organisation)
    return document


def note_documents_of(notes: Sequence[CreditNote], organisation: Organisation) -> list[CreditNoteDocument]:
    """Of credit notes of the organisation. Raises Conflict where one, or the invoice of one, is not what was sealed."""
    return [_note_document(note, organisation, taxes) for note, taxes in with_taxes(notes)]


def _note_document(note: CreditNote, organisation: Organisation, taxes: tuple[CreditedTax, ...]) -> CreditNoteDocument:
    names = Names(settings.ENVIRONMENT.seller, organisation.name, note.invoice.instance.name)
    sealed_of(note.invoice)  # what of the note is tax is computed from it
    sealed = note.sealed()
    if sealed.hash() != note.hash:
        number = note.number_text
        raise Conflict(f"{number} is not the credit note that was sealed", code="credit_note_damaged")
    return credit_note_document(sealed, names, instance=note.invoice.instance_id, month=note.invoice.month, taxes=taxes)


def estimate(*, bandwidth_mib_per_s: float, storage_gib: float, partitions: int, plan: Plan) -> Estimate:
    """The price of an instance of this size, before it exists."""
    entries = hourly(
        plan,
        bandwidth_mb_per_s=Decimal(str(bandwidth_mib_per_s)),
        disk_gb=Decimal(str(storage_gib)),
        partitions=partitions,
    )
    lines = tuple((entry.item, entry.units * entry.unit_price) for entry in entries)
    per_hour = sum((price for _, price in lines), Decimal(0))
    month = total_of(amount_of(entry.units * HOURS_PER_MONTH, entry.unit_price) for entry in entries)
    return Estimate(plan.currency, per_hour, month, lines)
