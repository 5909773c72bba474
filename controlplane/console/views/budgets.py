"""Budgets: what months may cost, how this one stands, what was told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from controlplane.alarms.selectors import organisation_receivers
from controlplane.billing.selectors import plan_of
from controlplane.budgets import selectors, services
from controlplane.console.flow import Bar
from controlplane.console.forms.budgets import BudgetForm
from controlplane.console.listing import listing
from controlplane.console.once import made_once
from controlplane.console.page import billing_page, tenant_page
from controlplane.console.proof import proof_asked
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import SluiceError

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller
    from controlplane.budgets.selectors import BudgetNow

HISTORY_ROWS = 20
FULL = 100


@require_safe
@tenant_page
def listed(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Every budget and how it stands this month."""
    rows = selectors.budget_list(organisation=caller.organisation).order_by("created_at", "pk")
    now = selectors.budgets_now(list(rows), organisation=caller.organisation)
    return render(request, "console/budgets.html", {"rows": [(each, _bar(each)) for each in now]})


@require_http_methods(["GET", "HEAD", "POST"])
@billing_page
def new(request: HttpRequest, caller: Caller) -> HttpResponse:
    """What a month may cost, of one instance or of all."""
    form = BudgetForm(request.POST or None, receivers=organisation_receivers(organisation=caller.organisation))
    if request.method == "POST" and form.is_valid():
        try:
            made = made_once(
                request,
                caller,
                form,
                lambda: (
                    services.budget_create(organisation=caller.organisation, actor=caller.actor, **form.wanted()).pk
                ),
            )
        except SluiceError as error:
            form.refuse(error)
        else:
            name = form.cleaned_data["name"]
            messages.success(request, f"{name} is looked at every five minutes.")
            return redirect("console:budget", caller.organisation.id, made)
    currency = plan_of(organisation=caller.organisation, at=SYSTEM_CLOCK.now()).currency
    status = 422 if form.errors else 200
    return render(request, "console/budget_new.html", {"form": form, "currency": currency}, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@billing_page
def shown(request: HttpRequest, caller: Caller, budget_id: str) -> HttpResponse:
    """One budget: how it stands, what it told, its members."""
    budget = selectors.budget_get(organisation=caller.organisation, budget_id=budget_id)
    (now,) = selectors.budgets_now([budget], organisation=caller.organisation)
    receivers = organisation_receivers(organisation=caller.organisation)
    told = [each.pk for each in now.receivers]
    form = BudgetForm(request.POST or None, receivers=receivers, budget=budget, told=told)
    if request.method == "POST" and form.is_valid():
        try:
            services.budget_update(
                organisation=caller.organisation, actor=caller.actor, budget_id=budget.pk, changes=form.wanted()
            )
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, "The budget was changed.")
            return redirect("console:budget", caller.organisation.id, budget.pk)
    history = selectors.alert_list(organisation=caller.organisation, budget_id=budget.pk).order_by("-at", "-pk")
    context = {
        "now": now,
        "bar": _bar(now),
        "form": form,
        "currency": budget.currency,
        "listing": listing(request, history, size=HISTORY_ROWS),
    }
    return render(request, "console/budget.html", context, status=422 if form.errors else 200)


@require_POST
@billing_page
@proof_asked
def delete(request: HttpRequest, caller: Caller, budget_id: str) -> HttpResponse:
    """It is looked at no more, and its history goes."""
    budget = selectors.budget_get(organisation=caller.organisation, budget_id=budget_id)
    services.budget_delete(organisation=caller.organisation, actor=caller.actor, budget_id=budget.pk)
    messages.success(request, f"{budget.name} was deleted.")
    return redirect("console:budgets", caller.organisation.id)


def _bar(now: BudgetNow) -> Bar | None:
    if now.percent is None:
        return None
    shown: Any = max(0, min(FULL, now.percent))
    return Bar(now.percent, FULL, shown)
