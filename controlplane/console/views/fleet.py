"""Operators' pages: brokers with their leaders, flow and allocations, and every tenant's instances."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.db.models import Q
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from controlplane.billing.pricing.documents import month_of
from controlplane.billing.pricing.taxes import tax_name
from controlplane.billing.selectors import invoice_failures, tax_list, waivers
from controlplane.billing.services import metering_waive
from controlplane.billing.waiting import waiting, waiting_instances
from controlplane.clusters import coordination, zookeeper
from controlplane.clusters.selectors import ports_of
from controlplane.clusters.services import cluster_list, cluster_named, clusters_known
from controlplane.console.flow import DIRECTIONS, bar, directions, flow_of, transactions_of
from controlplane.console.forms.billing import WaiverForm
from controlplane.console.listing import ROWS, Listing, listing, searched
from controlplane.console.page import staff_looks, staff_page
from controlplane.console.proof import proof_asked
from controlplane.console.shares import shares_of
from controlplane.core import kept, pulse
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import SluiceError, Unavailable
from controlplane.fleet.broker_state import costs_of, state_of
from controlplane.health.selectors import health_get
from controlplane.instances.models import Instance, InstanceState
from controlplane.instances.selectors import bootstrap_of, instance_fresh, limits_shown, routes_wanted
from controlplane.mail import outbox
from controlplane.metering import selectors as metering
from controlplane.metering.elastic import journals_unread
from controlplane.quotas.figures import figures_get
from controlplane.quotas.selectors import allocation_of, allocations_get, brokers_get, flows_get, journals_with_problems
from controlplane.remedies.neighbours import noise_everywhere

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.clusters.models import PhysicalCluster

ALLOCATIONS = 10
"""Instances on a page of allocations: each has two directions, and each of these its brokers."""
MOST_TAXES = 50
NOISE, MOST_NOISE = timedelta(days=1), 8


@require_safe
@staff_page
def overview(request: HttpRequest) -> HttpResponse:
    """Brokers above, all instances below."""
    shown = _instances(request)
    instances = list(shown.page.object_list)
    figures = figures_get(instances, flows_get)
    flows = figures.documents
    heard = pulse.heard()
    healths = health_get(instances, figures=figures, heard=heard)
    context = {
        "listing": shown,
        "rows": [(instance, flows.get(instance.id), healths.get(instance.id)) for instance in instances],
        "figures": figures,
        "invoice_failures": invoice_failures(),
        "waiting": waiting(SYSTEM_CLOCK.now()),
        "journals": journals_with_problems(),
        "unread": journals_unread(SYSTEM_CLOCK.now()),
        "meter": metering.status(),
        "workers_away_since": heard.away_since,
        "cache_is_away": kept.is_away(),
        "mail_is_off": not outbox.is_on(),
        "losses": metering.losses_open(),
        **_brokers(),
    }
    part = request.htmx  # type: ignore[attr-defined]
    return render(request, "console/parts/fleet_rows.html" if part else "console/fleet.html", context)


@require_safe
@staff_page
def allocation(request: HttpRequest) -> HttpResponse:
    """How every limit is shared out between brokers; the rows come again every 2 s."""
    shown = _instances(request, size=ALLOCATIONS)
    instances = list(shown.page.object_list)
    figures = figures_get(instances, allocations_get)
    rows = [(instance, shares_of(figures.documents.get(instance.id, {}))) for instance in instances]
    part = request.htmx  # type: ignore[attr-defined]
    template = "console/parts/fleet_allocation_rows.html" if part else "console/fleet_allocation.html"
    return render(
        request, template, {"listing": shown, "rows": rows, "figures": figures, "opened": request.GET.get("open")}
    )


@require_http_methods(["GET", "HEAD", "POST"])
@staff_page
@proof_asked
def invoices(request: HttpRequest) -> HttpResponse:
    """Which invoices wait or fail, and why; a month or an instance may be told not to wait for metering."""
    months = waiting(SYSTEM_CLOCK.now())
    several = len(clusters_known()) > 1
    lines = [(str(each.month), each.cluster if several else "") for each in months]
    form = WaiverForm(request.POST or None, lines=lines)
    if form.is_valid():
        month, _, cluster = form.cleaned_data["month"].partition(" ")
        instance_id = form.cleaned_data["instance"] or None
        try:
            metering_waive(
                month=month_of(month),
                instance_id=instance_id,
                cluster=cluster,
                actor=request.user.email,  # type: ignore[union-attr]  # staff_page has looked
                reason=form.cleaned_data["reason"],
            )
        except SluiceError as error:
            form.refuse(error)
        else:
            if instance_id:
                what = f"The invoice of {instance_id} for {month} no longer waits"
            elif cluster:
                what = f"Invoices of {month} on cluster {cluster} no longer wait"
            else:
                what = f"Invoices of {month} no longer wait"
            messages.success(request, f"{what} for metering: within ten minutes the closer writes what it can.")
            return redirect("console:fleet_invoices")
    rows = [(instance, each) for each in months for instance in waiting_instances(each.month, each.cluster)]
    context = {
        "months": months,
        "owed": [(each, one) for each in months for one in each.brokers],
        "several": len({each.cluster for each in months}) > 1,
        "metering": reverse("console:fleet_metering"),
        "listing": listing(request, rows),
        "failures": invoice_failures(),
        "waivers": waivers()[:20],
        "taxes": [(row, tax_name(row.name, row.rate)) for row in tax_list()[:MOST_TAXES]],
        "counted_until": metering.complete_to_everywhere(),
        "form": form,
    }
    return render(request, "console/fleet_invoices.html", context)


@require_safe
@staff_page
def brokers(request: HttpRequest) -> HttpResponse:
    """The brokers' table alone: it comes again every 2 s. Of one cluster, where its page asks."""
    name = request.GET.get("cluster")
    context = {"clusters": [brokers_of(cluster_named(name))], "cluster": cluster_named(name)} if name else _brokers()
    return render(request, "console/parts/fleet_brokers.html", context)


@require_safe
@staff_page
def instance(request: HttpRequest, instance_id: str) -> HttpResponse:
    """One instance of anyone's: how its limit is shared out, broker by broker."""
    found = instance_fresh(instance_id)
    staff_looks(request, found.organisation, found.id)
    figures = figures_get([found], allocation_of)
    document = figures.documents.get(found.id, {})
    flow = flow_of(found, document)
    ports = ports_of(found.id)
    now = SYSTEM_CLOCK.now()
    context = {
        "instance": found,
        "health": health_get([found], figures=figures).get(found.id),
        "flow": flow,
        "directions": directions(flow),
        "figures": figures,
        "bootstrap": bootstrap_of(routes_wanted(found.id), ports),
        "limits": limits_shown(found, ports),
        "transactions": transactions_of(document),
        "noise": noise_everywhere(start=now - NOISE, end=now, instance=found)[:MOST_NOISE],
    }
    return render(request, "console/fleet_instance.html", context)


def _instances(request: HttpRequest, *, size: int = ROWS) -> Listing:
    """Every tenant's that match the search, newest first."""
    search = searched(request)
    rows = Instance.objects.unscoped("operators see every tenant's").exclude(state=InstanceState.DELETED)
    if search:
        named = Q(name__icontains=search) | Q(id__icontains=search) | Q(organisation__name__icontains=search)
        rows = rows.filter(named)
    return listing(
        request, rows.select_related("organisation", "cluster").order_by("-created_at", "pk"), search=search, size=size
    )


def _brokers() -> dict[str, Any]:
    """Of every cluster; one that does not answer takes nothing from what the others show."""
    return {"clusters": [brokers_of(cluster) for cluster in cluster_list()]}


def brokers_of(cluster: PhysicalCluster) -> dict[str, Any]:
    """Of one, for parts/fleet_brokers.html."""
    found = brokers_get(cluster)
    cluster_away = None
    if any(broker["is_registered"] is None for broker in found) or not found:
        cluster_away = _cluster_problem(cluster)
    leaders = sum(broker["figures"]["leaders"] for broker in found if broker["figures"])
    for broker in found:
        figures = broker["figures"]
        broker["state"] = state_of(is_registered=broker["is_registered"], is_reporting=broker["is_reporting"])
        broker["costs"] = costs_of((figures or {}).get("missing"))
        if figures:
            broker["leaders_percent"] = round(100 * figures["leaders"] / leaders) if leaders else 0
            broker |= {
                name: bar(figures[name]["flow"], figures[name]["allocation"], fills=False) for name in DIRECTIONS
            }
    return {"name": cluster.name, "brokers": found, "away": cluster_away}


def _cluster_problem(cluster: PhysicalCluster) -> Unavailable | None:
    try:
        coordination.live_brokers(zookeeper.tree(cluster.address))
    except Unavailable as error:
        return error
    return None
