"""Usage and bills. A line of a bill leads to days and hours, an hour to the records in `__usage` that were counted.

An instance's usage and bills outlive it: these pages open for a deleted one, too.
"""

from __future__ import annotations

from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import OuterRef, Q, Subquery
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from controlplane.billing import costs
from controlplane.billing import selectors as billing
from controlplane.billing.chain import number_text
from controlplane.billing.downloads import focus_answer, pdf_answer, statement_focus_answer, statement_pdf_answer
from controlplane.billing.pricing.documents import month_of, rated
from controlplane.billing.pricing.money import total_of
from controlplane.billing.pricing.plans import Plan, bandwidth_on_sale, month_day, plan_on, plans_on
from controlplane.billing.pricing.rating import Month, total
from controlplane.billing.pricing.what_if import what_if_document
from controlplane.billing.services import plan_choose
from controlplane.billing.statements import statement_get
from controlplane.billing.verification import invoice_raw, invoice_verify
from controlplane.billing.waiting import months_waiting, waiting_ids
from controlplane.console.advice import sentence
from controlplane.console.calendar import DAY, HOUR, MONTH, Span, span_of
from controlplane.console.commandline import command_of
from controlplane.console.forms.instances import PlanForm
from controlplane.console.forms.what_if import WhatIfForm
from controlplane.console.listing import kept, listing, order_asked, ordered, searched
from controlplane.console.page import billing_page, tenant_page
from controlplane.console.places import is_open_within
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import Conflict, Invalid, NotFound, SluiceError
from controlplane.health.selectors import health_get
from controlplane.instances.models import Instance, InstanceState
from controlplane.instances.selectors import instance_any
from controlplane.metering import selectors as metering
from controlplane.what_if.selectors import what_if_get

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from datetime import datetime
    from decimal import Decimal

    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller
    from controlplane.billing.pricing.sharing import Shares
    from controlplane.what_if.selectors import WhatIf

SUMS = ("produced_bytes", "consumed_bytes", "stored_byte_seconds")
RECORD_ROWS = 100
PLAN_CHOICE = ("plan", "when")
COSTS = ("so_far", "forecast")
"""Columns of the list that are of the present month."""
SORTED = {name: name for name in ("name", *COSTS)}
"""Columns that the list can be sorted by, in the words of REST."""


@require_safe
@tenant_page
def usage(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """A day by hour, or with ``?month=`` a month by day."""
    instance = instance_any(organisation=caller.organisation, instance_id=instance_id)
    by_day = "month" in request.GET
    now = SYSTEM_CLOCK.now()
    span = span_of(request.GET.get("month" if by_day else "day"), MONTH if by_day else DAY, now)
    hours = metering.usage_hours(instance=instance, start=span.start, end=span.end)
    rows = _days(hours) if by_day else [_row(hour.hour[:13], [hour]) for hour in hours]
    context = {
        **_frame(instance, span, "usage"),
        "by_day": by_day,
        "rows": rows,
        "sums": _row("", hours),
        "most": max((max(row["produced_bytes"], row["consumed_bytes"]) for row in rows), default=0),
        "whole": _whole(metering.instance_hours(instance=instance, start=span.start, end=span.end).values()),
        "meter": metering.status_of(instance.cluster.name),
    }
    return render(request, "console/instance_usage.html", context)


@require_safe
@tenant_page
def records(request: HttpRequest, caller: Caller, instance_id: str, hour: str) -> HttpResponse:
    """What an hour is made of: by topic and broker, with the record of `__usage` that says so."""
    instance = instance_any(organisation=caller.organisation, instance_id=instance_id)
    span = span_of(hour, HOUR, SYSTEM_CLOCK.now())
    rows = metering.usage_records(instance=instance, start=span.start, end=span.end)
    context = {
        **_frame(instance, span, "usage"),
        "listing": listing(request, rows, size=RECORD_ROWS),
        "away": metering.records_away(span.start),
    }
    return render(request, "console/usage_records.html", context)


@require_safe
@tenant_page
def bill(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """A month: so far with its forecast, or as invoiced. Beside it, what the same month costs under the other plans."""
    instance = instance_any(organisation=caller.organisation, instance_id=instance_id)
    now = SYSTEM_CLOCK.now()
    span = span_of(request.GET.get("month"), MONTH, now)
    month = month_of(span.text)

    asked: dict[str, Any] = {"organisation": caller.organisation, "instance_id": instance_id, "month": month}
    found = billing.bill_get(**asked)
    choice = plans_on(month_day(span.start))

    @cache
    def usage() -> dict[str, Any]:
        """What was read for the bill; an invoice is compared with today's usage, which is read once for all plans."""
        return found.inputs or billing.inputs_today(instance, choice[0].name, month, now)

    def under(plan: Plan) -> dict[str, Any] | None:
        """None: some of it has no price in the plan's currency."""
        try:
            would = what_if_document(usage(), terms=(billing.plan_throughout(plan.name, month),))
            billing.check_summed(would, lines := rated(would))
        except Conflict:
            return None
        return {"currency": plan.currency, "total": total(lines)}

    names = {each.plan.name for each in found.spans}
    number = number_text(found.invoice.number) if found.invoice else None
    notes = billing.credit_notes_of([found.invoice])[found.invoice.pk] if found.invoice else []
    context = {
        **_frame(instance, span, "bill"),
        "bill": found,
        "number": number,
        "notes": billing.with_taxes(notes),
        "credited": (credited := total_of(note.amount for note in notes)),
        "after_credit": found.invoice.total - credited if found.invoice else None,
        "cost": None if found.inputs is None or now >= month.end else costs.cost_of(instance, found, now),
        "commands": [command_of(page, {"number": number}) for page in ("invoice_pdf", "invoice_focus")],
        "others": [
            (plan.title, other) for plan in choice if names != {plan.name} and (other := under(plan)) is not None
        ],
        "is_over": now >= span.end,
        "shows_topics": is_open_within(caller.limits, "/bill/topics"),
        "shows_users": is_open_within(caller.limits, "/bill/users"),
        "periods": [
            period
            for period in billing.periods_of(instance)
            if period.start < span.end and (period.until is None or period.until > span.start)
        ],
    }
    return render(request, "console/instance_bill.html", context)


@require_safe
@tenant_page
def by_topic(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """A month's bill by topic, and what no topic can be given."""
    return _shared(request, caller, instance_id, costs.topic_costs_get, "console/instance_cost_topics.html")


@require_safe
@tenant_page
def by_user(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """A month's bill by user, and what no user can be given."""
    return _shared(request, caller, instance_id, costs.user_costs_get, "console/instance_cost_users.html")


def _shared(
    request: HttpRequest,
    caller: Caller,
    instance_id: str,
    shared_get: Callable[..., tuple[billing.Bill, Shares[Any]]],
    template: str,
) -> HttpResponse:
    instance = instance_any(organisation=caller.organisation, instance_id=instance_id)
    span = span_of(request.GET.get("month"), MONTH, SYSTEM_CLOCK.now())
    found, shares = shared_get(organisation=caller.organisation, instance_id=instance_id, month=month_of(span.text))
    context = {
        **_frame(instance, span, "bill"),
        "bill": found,
        "shares": shares,
        "listing": listing(request, shares.parts),
        "shared": total_of(each.amount for each in shares.parts),
    }
    return render(request, template, context)


@require_safe
@tenant_page
def what_if(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """What a month would have cost at another size or under another plan. Nothing is changed."""
    instance = instance_any(organisation=caller.organisation, instance_id=instance_id)
    span = span_of(request.GET.get("month"), MONTH, SYSTEM_CLOCK.now())
    asked = "ask" in request.GET
    form = WhatIfForm(request.GET if asked else None, plans=plans_on(month_day(span.start)))
    found = None
    if asked and form.is_valid():
        try:
            found = what_if_get(
                organisation=caller.organisation,
                instance_id=instance_id,
                month=month_of(span.text),
                **form.wanted(),
            )
        except (Conflict, Invalid) as error:
            form.refuse(error)
    context = {**_frame(instance, span, "bill"), "form": form, "found": found, "billed_mib_per_s": _billed(found)}
    return render(request, "console/instance_what_if.html", context, status=422 if form.errors else 200)


def _billed(found: WhatIf | None) -> Decimal | None:
    """The bandwidth on sale that the size is billed as; None: it is on sale itself, or bandwidth is not billed."""
    if found is None or found.size is None:
        return None
    plan = plan_on(found.would_plans[-1], month_day(found.month.start))
    asked = found.size.bandwidth_mb_per_s
    billed = bandwidth_on_sale(plan, asked)
    return None if billed == asked else billed


@require_safe
@tenant_page
def verify(request: HttpRequest, caller: Caller, number: str) -> HttpResponse:
    """An invoice, computed once more: whether it is what was sealed, and what today's usage says of its month."""
    invoice = billing.invoice_get(organisation=caller.organisation, number=number)
    differences = invoice_verify(invoice=invoice)
    context = {
        "invoice": invoice,
        "number": number,
        "instance": invoice.instance,
        "differences": differences,
        "only_late": all(each.code == "usage" for each in differences),
        "raw": invoice_raw(invoice=invoice),
    }
    return render(request, "console/invoice_verify.html", context)


@require_safe
@tenant_page
def pdf(_request: HttpRequest, caller: Caller, number: str) -> HttpResponse:
    """An invoice as a PDF."""
    return pdf_answer(organisation=caller.organisation, number=number)


@require_safe
@tenant_page
def focus(_request: HttpRequest, caller: Caller, number: str) -> HttpResponse:
    """An invoice in FOCUS 1.2, as CSV."""
    return focus_answer(organisation=caller.organisation, number=number)


@require_safe
@tenant_page
def statement(request: HttpRequest, caller: Caller) -> HttpResponse:
    """A month's invoices of all instances and the credit notes written in it, added up."""
    now = SYSTEM_CLOCK.now()
    span = _stated(request)
    found = statement_get(organisation=caller.organisation, month=month_of(span.text))
    context = {
        "span": span,
        "after": span.after if span.after.begun(now) else None,
        "statement": found,
        "is_over": now >= span.end,
        "listing": listing(request, found.invoices),
        "commands": [command_of(page, {}, {"month": span.text}) for page in ("statement_pdf", "statement_focus")],
    }
    return render(request, "console/statement.html", context)


@require_safe
@tenant_page
def statement_pdf(request: HttpRequest, caller: Caller) -> HttpResponse:
    """A month as a PDF."""
    return statement_pdf_answer(organisation=caller.organisation, month=month_of(_stated(request).text))


@require_safe
@tenant_page
def statement_focus(request: HttpRequest, caller: Caller) -> HttpResponse:
    """A month in FOCUS 1.2, as CSV."""
    return statement_focus_answer(organisation=caller.organisation, month=month_of(_stated(request).text))


def _stated(request: HttpRequest) -> Span:
    """The month that a statement is asked of. Raises NotFound where it has not begun."""
    now = SYSTEM_CLOCK.now()
    span = span_of(request.GET.get("month"), MONTH, now)
    if not span.begun(now):
        raise NotFound("this month has not begun")
    return span


def _with_costs(rows: QuerySet[Instance], caller: Caller, month: Month) -> QuerySet[Instance]:
    """Each with what the month costs, as last computed, to be sorted by."""
    known = costs.cost_list(organisation=caller.organisation, month=month).filter(instance=OuterRef("pk"))
    return rows.annotate(**{name: Subquery(known.values(name)[:1]) for name in COSTS})


@require_safe
@tenant_page
def listed(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Every instance there is or was, with its invoices: where the bill of a deleted one is found."""
    search, order, now = searched(request), order_asked(request, SORTED), SYSTEM_CLOCK.now()
    month = Month.of(now)
    rows = Instance.objects.for_organisation(caller.organisation).select_related("cluster")
    if order is None:
        rows = rows.order_by("-created_at", "pk")
    else:
        rows = ordered(_with_costs(rows, caller, month) if order.field in COSTS else rows, order, SORTED)
    if search:
        rows = rows.filter(Q(name__icontains=search) | Q(id__icontains=search))
    shown = listing(request, rows, search=search)
    instances = list(shown.page.object_list)
    invoices: dict[str, Any] = {}
    for invoice in billing.invoice_list(organisation=caller.organisation).filter(instance__in=instances):
        known = invoices.get(invoice.instance_id)
        if known is None or known.month < invoice.month:
            invoices[invoice.instance_id] = invoice
    numbers = {each: number_text(invoice.number) for each, invoice in invoices.items()}
    plan = billing.plan_state(organisation=caller.organisation, at=now)
    months = months_waiting(organisation=caller.organisation, now=now)
    # Of each instance the newest month that waits: the notice above names all of them.
    shown_ids = [instance.id for instance in instances]
    waits = {name: month for month in months[-1:] for name in waiting_ids(month, shown_ids)}
    known = costs.cost_list(organisation=caller.organisation, month=month).filter(instance__in=instances)
    by_instance = {row.instance_id: row for row in known}
    healths = health_get(instances)
    context = {
        "listing": shown,
        "order": order,
        "keeps": kept(request, "sort"),
        "rows": [
            (
                instance,
                invoices.get(instance.id),
                numbers.get(instance.id),
                waits.get(instance.id),
                by_instance.get(instance.id),
                healths.get(instance.id),
            )
            for instance in instances
        ],
        "cost": costs.organisation_cost_get(organisation=caller.organisation, month=month),
        "month": now.strftime(MONTH),
        "month_before": str(month.before(1)),
        "waiting": months,
        "form": PlanForm(
            plans=_choosable(now), initial={"plan": plan.present.name, **_refused(request), "seen": plan.text}
        ),
        "plan": plan.present,
        "next_plan": plan.following and (billing.plan_named(plan.following.plan, plan.following.at), plan.following.at),
    }
    part = request.htmx  # type: ignore[attr-defined]
    return render(request, "console/parts/bill_rows.html" if part else "console/bills.html", context)


@require_POST
@billing_page
def plan(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Another price plan, from the next full hour or the next month."""
    form = PlanForm(request.POST, plans=_choosable(SYSTEM_CLOCK.now()))
    page = reverse("console:bills", args=[caller.organisation.id])
    if not form.is_valid():
        messages.error(
            request, "Choose one of the plans that are listed, and when it takes effect. Nothing was changed."
        )
    else:
        chosen, when, seen = (form.cleaned_data[name] for name in ("plan", "when", "seen"))
        try:
            choice = plan_choose(
                organisation=caller.organisation, actor=caller.actor, plan=chosen, when=when, seen=seen or None
            )
        except SluiceError as error:
            messages.error(request, sentence(error.detail))
            page = f"{page}?{urlencode({name: form.cleaned_data[name] for name in PLAN_CHOICE})}"
        else:
            title = billing.plan_named(chosen, choice.at).title
            now = SYSTEM_CLOCK.now()
            if choice.at > now and billing.plan_state(organisation=caller.organisation, at=now).following is None:
                messages.success(request, f"The plan stays “{title}”: no change is to come.")
            else:
                messages.success(request, f"The plan is “{title}” from {choice.at:%Y-%m-%d %H:%M} UTC on.")
    return redirect(page)


def _refused(request: HttpRequest) -> dict[str, str]:
    """What was chosen and refused stays chosen."""
    return {name: request.GET[name] for name in PLAN_CHOICE if name in request.GET}


def _choosable(now: datetime) -> tuple[Plan, ...]:
    """What is sold next month, which is all of this month's and perhaps a new one."""
    return plans_on(month_day(Month.of(now).end))


def _frame(instance: Instance, span: Span, tab: str) -> dict[str, Any]:
    return {
        "instance": instance,
        "tab": tab,
        "gone": instance.state == InstanceState.DELETED,
        "span": span,
        "after": span.after if span.after.begun(SYSTEM_CLOCK.now()) else None,
    }


def _days(hours: Sequence[metering.UsageHour]) -> list[dict[str, Any]]:
    return [_row(day, list(group)) for day, group in groupby(hours, key=lambda hour: hour.hour[:10])]


def _whole(hours: Collection[metering.InstanceHour]) -> dict[str, Any] | None:
    """What belongs to no topic, summed up; None: nothing of it was counted."""
    if not hours:
        return None
    return {
        "wire_in_bytes": sum(hour.wire_in_bytes for hour in hours),
        "wire_out_bytes": sum(hour.wire_out_bytes for hour in hours),
        "requests": sum(hour.requests for hour in hours),
        "throttled_s": sum(hour.throttled_ms for hour in hours) / 1000,
    }


def _row(text: str, hours: Sequence[metering.UsageHour]) -> dict[str, Any]:
    sums = {name: sum(getattr(hour, name) for hour in hours) for name in SUMS}
    return {"text": text, "so_far": any(hour.so_far for hour in hours), **sums}
