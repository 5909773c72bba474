"""Prices of all plans, and what a size would cost, for whoever comes: nothing of an organisation is in it."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from controlplane.billing.pricing.elastic import elastic_prices_on
from controlplane.billing.pricing.plans import DEFAULT_PLAN, Plan, month_day, plan_on, plans_on
from controlplane.billing.pricing.prepaid_prices import LEAST_MONTHS, MOST_MONTHS, MonthlyPrices, prices_on
from controlplane.billing.selectors import HOURS_PER_MONTH, Estimate, estimate
from controlplane.console.forms.billing import PriceForm
from controlplane.core.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from datetime import date

    from django.http import HttpRequest, HttpResponse

EXAMPLE = {"plan": DEFAULT_PLAN, "bandwidth_mib_per_s": 20, "storage_gib": 100, "partitions": 300}


@require_safe
@never_cache
def shown(request: HttpRequest) -> HttpResponse:
    """By currency: plans as they are sold this month."""
    day = month_day(SYSTEM_CLOCK.now())
    plans = sorted(plans_on(day), key=lambda plan: plan.currency)  # within a currency in the order of their declaration
    form = PriceForm(request.GET if "plan" in request.GET else None, plans=plans, initial=EXAMPLE)
    sizes = form.cleaned_data if form.is_valid() else EXAMPLE
    context = {
        "currencies": [
            (currency, [_listed(plan, day) for plan in group])
            for currency, group in groupby(plans, key=lambda plan: plan.currency)
        ],
        "form": form,
        "price": None if form.errors else _estimate(sizes, day),
        "sizes": sizes,
        "months": (LEAST_MONTHS, MOST_MONTHS),
        "hours_per_month": HOURS_PER_MONTH,
    }
    return render(request, "console/prices.html", context, status=422 if form.errors else 200)


def _estimate(sizes: dict[str, Any], day: date) -> Estimate:
    bought = {name: size for name, size in sizes.items() if name != "plan"}
    return estimate(plan=plan_on(sizes["plan"], day), **bought)


def _listed(plan: Plan, day: date) -> dict[str, Any]:
    monthly = _monthly(plan, day)
    return {
        "plan": plan,
        "monthly": monthly,
        "elastic": elastic_prices_on(plan.name, day),
        "bands": list(zip(plan.bands, monthly.bands, strict=True))
        if monthly
        else [(each, None) for each in plan.bands],
    }


def _monthly(plan: Plan, day: date) -> MonthlyPrices | None:
    """None: nothing is paid in advance under this plan."""
    try:
        return prices_on(plan.name, day)
    except LookupError:
        return None
