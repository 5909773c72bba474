"""Transactions of an instance: what is open, who waits for it, and ending one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from controlplane.api.sorting import in_order
from controlplane.console.forms.transactions import EndingForm, HangingEndingForm
from controlplane.console.listing import kept, listing, order_asked, searched
from controlplane.console.page import tenant_page
from controlplane.console.proof import proof_asked
from controlplane.core.errors import SluiceError, Unavailable
from controlplane.instances.models import InstanceState
from controlplane.instances.selectors import instance_get
from controlplane.transactions import selectors, services

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller

PARTITION_ROWS = 100
SORTED: Mapping[str, Callable[[str], str]] = {"transactional_id": str}
"""The column that the list can be sorted by: how they stand is asked of those on the page."""


@require_safe
@tenant_page
def listed(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """Every transactional id; how those on this page stand. A cluster that is away is said calmly."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    search, names, views, away = searched(request), [], [], None
    found, order = None, order_asked(request, SORTED)
    try:
        names = selectors.transactional_ids(organisation=caller.organisation, instance_id=instance_id)
        if order is not None:
            names = in_order(names, order, value=SORTED[order.field], key=str)
        found = listing(request, [name for name in names if search.lower() in name.lower()], search=search)
        views = selectors.transaction_summaries(
            organisation=caller.organisation, instance_id=instance_id, transactional_ids=list(found.page.object_list)
        )
    except Unavailable as error:
        away = error
    context = {
        "instance": instance,
        "tab": "transactions",
        "listing": found or listing(request, [], search=search),
        "views": views,
        "away": away,
        "running": instance.state == InstanceState.RUNNING,
        "none_at_all": not names and away is None,
        "order": order,
        "keeps": kept(request, "sort"),
    }
    part = request.htmx  # type: ignore[attr-defined]
    template = "console/parts/transaction_rows.html" if part else "console/transactions.html"
    return render(request, template, context, status=503 if away and not part else 200)


@require_safe
@tenant_page
def shown(request: HttpRequest, caller: Caller, instance_id: str, transactional_id: str) -> HttpResponse:
    """State, producer, and which partitions' readers wait for it."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    context = {"instance": instance, "tab": "transactions", "name": transactional_id, "away": None, "view": None}
    try:
        view = selectors.transaction_get(
            organisation=caller.organisation, instance_id=instance_id, transactional_id=transactional_id
        )
        waiting_first = sorted(view.partitions, key=lambda row: row.holds_back is not True)
        context |= {"view": view, "listing": listing(request, waiting_first, size=PARTITION_ROWS)}
    except Unavailable as error:
        context["away"] = error
    return render(request, "console/transaction.html", context, status=503 if context["away"] else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked
def end(request: HttpRequest, caller: Caller, instance_id: str, transactional_id: str) -> HttpResponse:
    """Abort what is open, once its id was typed."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    view = selectors.transaction_get(
        organisation=caller.organisation, instance_id=instance_id, transactional_id=transactional_id
    )
    form = EndingForm(request.POST or None, name=transactional_id)
    if request.method == "POST" and form.is_valid():
        try:
            services.transaction_end(
                organisation=caller.organisation,
                actor=caller.actor,
                instance_id=instance.id,
                transactional_id=transactional_id,
            )
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, f"The transaction of {transactional_id} was ended.")
            return redirect("console:transaction", caller.organisation.id, instance.id, transactional_id)
    context = {"instance": instance, "tab": "transactions", "view": view, "form": form}
    return render(request, "console/transaction_end.html", context, status=422 if form.errors else 200)


@require_safe
@tenant_page
def hanging(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """Those that no coordinator knows. Every partition is looked at, so this is a page of its own."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    context = {"instance": instance, "tab": "transactions", "away": None}
    try:
        seen = selectors.hanging_transactions(organisation=caller.organisation, instance_id=instance_id)
        context |= {"listing": listing(request, seen.found), "unknown_partitions": seen.unknown_partitions}
    except Unavailable as error:
        context["away"] = error
    return render(request, "console/hanging_transactions.html", context, status=503 if context["away"] else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked
def end_hanging(
    request: HttpRequest, caller: Caller, instance_id: str, topic: str, partition: int, offset: int
) -> HttpResponse:
    """Abort what hangs in a partition from an offset on, once the topic's name was typed."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    view = selectors.hanging_transaction_get(
        organisation=caller.organisation, instance_id=instance_id, topic=topic, partition=partition, offset=offset
    )
    form = HangingEndingForm(request.POST or None, name=topic)
    if request.method == "POST" and form.is_valid():
        try:
            services.hanging_transaction_end(
                organisation=caller.organisation,
                actor=caller.actor,
                instance_id=instance.id,
                topic=topic,
                partition=partition,
                offset=offset,
            )
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, f"What hung in partition {partition} of {topic} was ended.")
            return redirect("console:hanging_transactions", caller.organisation.id, instance.id)
    context = {"instance": instance, "tab": "transactions", "view": view, "form": form}
    return render(request, "console/hanging_transaction_end.html", context, status=422 if form.errors else 200)
