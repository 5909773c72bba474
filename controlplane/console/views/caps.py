"""What an organisation may have: its own page, and operators' pages of the cluster's capacity and of everyone's caps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import Q
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from controlplane.accounts.scopes import BILLING
from controlplane.admission import installed, rules, selectors
from controlplane.admission.services import CAPS_SET, caps_set, room_set
from controlplane.clusters.services import cluster_list, cluster_named
from controlplane.console.advice import grouped
from controlplane.console.forms.admission import CapsForm, RoomForm
from controlplane.console.listing import listing, searched
from controlplane.console.page import staff_looks, staff_page, tenant_page
from controlplane.core.errors import SluiceError
from controlplane.core.models import AuditEntry
from controlplane.tenants.models import Organisation
from controlplane.tenants.operators import organisation_any

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller
    from controlplane.admission.selectors import Use

SHOWN_CHANGES = 20


@require_safe
@tenant_page
def shown(request: HttpRequest, caller: Caller) -> HttpResponse:
    """A tenant's caps, how much of each is in use, and how to have more."""
    organisation = caller.organisation
    currency = selectors.plan_counted(organisation).currency
    with_price = caller.limits.covers(BILLING, changes=False)
    uses = [use for use in selectors.caps_use(organisation) if with_price or use.resource != rules.PRICE]
    context = {
        "rows": _rows(uses, currency),
        "how": selectors.how_to_raise(organisation),
        "confirmed_above": grouped(rules.shown(rules.PRICE, installed.price_confirmed_above(currency), currency)),
    }
    return render(request, "console/caps.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_page
def capacity(request: HttpRequest) -> HttpResponse:
    """What may be sold of a cluster and what is; and every organisation with what it has. `?cluster=`: not of the oldest one."""
    clusters, named = cluster_list(), request.GET.get("cluster")
    cluster = cluster_named(named) if named else clusters[0]
    form = RoomForm(request.POST or None)
    if form.is_valid():
        try:
            room_set(cluster=cluster, actor=request.user.email, **form.cleaned_data)  # type: ignore[union-attr]
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, "Set. It counts for what is bought from now on; what is sold stays sold.")
            address = reverse("console:fleet_capacity")
            return redirect(f"{address}?{urlencode({'cluster': cluster.name})}" if named else address)
    search = searched(request)
    organisations = Organisation.objects.order_by("name", "pk")
    if search:
        organisations = organisations.filter(Q(name__icontains=search) | Q(id__icontains=search))
    shown = listing(request, organisations, search=search)
    found = list(shown.page.object_list)
    taken = selectors.sizes_by_organisation(found)
    context = {
        "cluster": cluster,
        "clusters": clusters,
        "brokers": selectors.hosts_of(cluster),
        "rows": _rows(selectors.cluster_use(cluster)),
        "form": form,
        "changes": selectors.room_changes(cluster)[:SHOWN_CHANGES],
        "listing": shown,
        "owners": [
            (each, [grouped(rules.shown(name, amount)) for name, amount in taken[each.id].items()]) for each in found
        ],
    }
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "console/parts/organisation_rows.html", context)
    return render(request, "console/fleet_capacity.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_page
def organisation(request: HttpRequest, owner_id: str) -> HttpResponse:
    """The caps of one organisation, to be raised or lowered."""
    found = organisation_any(owner_id)
    staff_looks(request, found, found.id)
    uses, currency = selectors.caps_use(found), selectors.plan_counted(found).currency
    form = CapsForm(request.POST or None, uses=uses, currency=currency)
    if form.is_valid():
        try:
            caps_set(
                organisation=found,
                actor=request.user.email,  # type: ignore[union-attr]  # staff_page has looked
                caps=form.changes,
                reason=form.cleaned_data["reason"],
            )
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, f"The caps of {found.name} are set.")
            return redirect("console:fleet_organisation", found.id)
    entries = AuditEntry.objects.for_organisation(found).filter(action=CAPS_SET).order_by("-pk")[:SHOWN_CHANGES]
    context = {
        "organisation": found,
        "rows": _rows(uses, currency),
        "form": form,
        "fields": [
            (form[name], currency if name == rules.PRICE else rules.RESOURCES[name].unit) for name in rules.ORGANISATION
        ],
        "changes": [(entry, _changed(entry.detail, currency)) for entry in entries],
    }
    return render(request, "console/fleet_organisation.html", context, status=422 if form.errors else 200)


def _rows(uses: list[Use], currency: str = "") -> list[tuple[Use, str, str, str]]:
    """Each with its limit, use and default in words."""
    return [
        (use, *(grouped(rules.shown(use.resource, amount, currency)) for amount in (use.limit, use.used, use.default)))
        for use in uses
    ]


def _changed(detail: dict[str, Any], currency: str) -> list[str]:
    return [
        f"{rules.RESOURCES[name].title.capitalize()}: {change['from']} → {change['to']}"
        + (f" {change.get('currency', currency)}" if name == rules.PRICE else f" {rules.RESOURCES[name].unit}").rstrip()
        for name, change in detail.get("caps", {}).items()
        if name in rules.RESOURCES
    ]
