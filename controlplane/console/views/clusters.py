"""Operators' pages of physical clusters: which there are, what each has and has sold, and what it may be used for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from controlplane.admission import places, rules, selectors
from controlplane.admission.retiring import cluster_set
from controlplane.clusters.models import ClusterState
from controlplane.clusters.registering import cluster_register
from controlplane.clusters.selectors import cluster_events
from controlplane.clusters.services import cluster_named, clusters_known
from controlplane.console.forms.clusters import ClusterChangeForm, ClusterRegisterForm
from controlplane.console.page import staff_page
from controlplane.console.views.fleet import brokers_of
from controlplane.core.errors import SluiceError

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.admission.places import Place
    from controlplane.clusters.models import ClusterEvent

SHOWN_EVENTS = 20
NONE = "\N{EN DASH}"
STATES = {
    ClusterState.OPEN: ("running", "Open"),
    ClusterState.CORDONED: ("warning", "Cordoned"),
    ClusterState.DRAINING: ("warning", "Draining"),
    ClusterState.RETIRED: ("off", "Retired"),
}
OBSTACLES = {
    "closed": "No other cluster takes new instances.",
    "zones": "No other cluster that takes new instances is in its zones.",
    "apart": "On every other cluster is an instance that it is to be apart from.",
    "full": "No other cluster has room for it.",
}
MEMBERS = {
    "zookeeper_hosts": "ZooKeeper",
    "zones": "Zones",
    "capacity": "Instances at most",
    "state": "State",
    "mode": "Rebalancing by itself",
    "new_brokers": "Rebalancing for new brokers",
    "skew_percent": "Percent above the average",
    "lasting_minutes": "Minutes that it lasts",
    "rest_hours": "Hours since the last rebalance",
    "in_windows": "Only in maintenance windows",
    "throttle_bytes_per_s": "Throttle",
    "at_once": "Partitions copied at once",
}


@require_http_methods(["GET", "HEAD", "POST"])
@staff_page
def listed(request: HttpRequest) -> HttpResponse:
    """Every cluster with how full it is; and a form to register another one."""
    form = ClusterRegisterForm(request.POST or None)
    if form.is_valid():
        try:
            made = cluster_register(actor=request.user.email, **form.cleaned_data)  # type: ignore[union-attr]
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, "Registered. New instances are placed on it as soon as its brokers are there.")
            return redirect("console:fleet_cluster", made.name)
    context = {"rows": [_row(place) for place in places.places_of(clusters_known())], "form": form}
    return render(request, "console/fleet_clusters.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_page
def shown(request: HttpRequest, cluster: str) -> HttpResponse:
    """One cluster: its brokers, what of it is sold, what has to leave it, and what it may be used for."""
    found = cluster_named(cluster)
    form = ClusterChangeForm(request.POST or None, cluster=found)
    if form.is_valid():
        try:
            if form.changes:
                cluster_set(
                    cluster=found,
                    actor=request.user.email,  # type: ignore[union-attr]  # staff_page has looked
                    changes=form.changes,
                    reason=form.cleaned_data["reason"],
                )
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(
                request, "Changed. What is on the cluster stays there." if form.changes else "Nothing has changed."
            )
            return redirect("console:fleet_cluster", found.name)
    (place,) = places.places_of([found])
    leaving = places.leaving(found) if found.state == ClusterState.DRAINING else None
    context = {
        **_row(place),
        "uses": [
            (
                rules.RESOURCES[name].title,
                rules.shown(name, place.capacity[name]),
                rules.shown(name, place.taken[name]),
                selectors.percent_of(place.taken[name], place.capacity[name]),
            )
            for name in rules.CLUSTER
        ],
        "clusters": [] if found.state == ClusterState.RETIRED else [brokers_of(found)],  # nobody asks that any more
        "leaving": leaving and [(left, OBSTACLES.get(left.obstacle or "", "")) for left in leaving],
        "is_draining": leaving is not None,
        "form": form,
        "events": [(event, _told(event)) for event in cluster_events(found)[:SHOWN_EVENTS]],
    }
    return render(request, "console/fleet_cluster.html", context, status=422 if form.errors else 200)


def _row(place: Place) -> dict[str, Any]:
    level, title = STATES[ClusterState(place.cluster.state)]
    resource, percent = place.fullest
    return {
        "cluster": place.cluster,
        "place": place,
        "level": level,
        "title": title,
        "fullest": rules.RESOURCES[resource].title,
        "percent": percent,
        "away": place.brokers - place.there,
    }


def _told(event: ClusterEvent) -> list[tuple[str, str, str]]:
    """Member, before and after."""
    return [
        (MEMBERS.get(name, name), _text(change.get("from")), _text(change.get("to")))
        for name, change in event.detail.items()
    ]


def _text(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)
    return text or NONE
