"""Connections of an instance: who is connected, who moves most, who was refused; and who produces and consumes a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.shortcuts import render
from django.views.decorators.http import require_safe

from controlplane.connections import selectors
from controlplane.console.listing import listing, searched
from controlplane.console.page import tenant_page
from controlplane.console.views.whitelists import covers
from controlplane.core import origin
from controlplane.core.errors import Unavailable
from controlplane.instances.models import InstanceState
from controlplane.instances.selectors import instance_get
from controlplane.routes.selectors import route_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller
    from controlplane.connections.selectors import Connected, ConnectionView, RefusedView
    from controlplane.instances.models import Instance

CONNECTION_ROWS, TALKER_ROWS, REFUSED_ROWS = 50, 10, 50
EVERY_S = 5
"""Between two looks of a page that stays open."""
_WHITELIST = "whitelist"


@require_safe
@tenant_page
def shown(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """All of it with one question to each broker. A cluster that is away is said calmly."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    search, address = searched(request), origin.seen_at(request)
    context: dict[str, Any] = {
        "instance": instance,
        "tab": "connections",
        "every_s": EVERY_S,
        "away": None,
        "running": instance.state == InstanceState.RUNNING,
        "address": address,
        "covered": covers(instance.whitelist, address),
        "listing": listing(request, [], search=search),
    }
    try:
        connected, talking = selectors.overview_read(
            organisation=caller.organisation, instance_id=instance_id, most_talkers=TALKER_ROWS
        )
    except Unavailable as error:
        context["away"] = error
    else:
        found = [row for row in connected.connections if _fits(row, search.lower())]
        routes = route_list(organisation=caller.organisation, instance_id=instance_id) if connected.refused else []
        lists = {route.key: route.whitelist for route in routes}
        context |= {
            "connected": connected,
            "talking": talking,
            "refused": [_refused(instance, row, lists) for row in connected.refused[:REFUSED_ROWS]],
            "refused_more": connected.other_refused + sum(row.count for row in connected.refused[REFUSED_ROWS:]),
            "listing": listing(request, found, search=search, size=CONNECTION_ROWS),
            "total": _total(connected),
        }
    part = request.htmx  # type: ignore[attr-defined]
    template = "console/parts/connections_now.html" if part else "console/instance_connections.html"
    return render(request, template, context, status=503 if context["away"] and not part else 200)


@require_safe
@tenant_page
def of_topic(request: HttpRequest, caller: Caller, instance_id: str, topic: str) -> HttpResponse:
    """Who produces and consumes one topic: a section that comes behind its page, and a page of its own without scripts."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    context: dict[str, Any] = {
        "instance": instance,
        "tab": "topics",
        "topic": topic,
        "every_s": EVERY_S,
        "away": None,
    }
    try:
        context["talking"] = selectors.talkers_read(
            organisation=caller.organisation, instance_id=instance_id, topic=topic, most=TALKER_ROWS
        )
    except Unavailable as error:
        context["away"] = error
    part = request.htmx  # type: ignore[attr-defined]
    template = "console/parts/topic_talkers.html" if part else "console/topic_talkers.html"
    return render(request, template, context, status=503 if context["away"] and not part else 200)


def _fits(row: ConnectionView, search: str) -> bool:
    said = (row.client_id, row.address, row.principal or "", row.software_name, row.route_id)
    return any(search in text.lower() for text in said)


def _refused(instance: Instance, row: RefusedView, lists: Mapping[str, list[str] | None]) -> dict[str, Any]:
    """With what can be done about it. `lists` are the routes' own; None, or no route: the instance's list alone.

    What is told are refusals since the brokers started: an address may have been let in meanwhile.
    """
    if row.reason != _WHITELIST:
        return {"row": row}
    own = lists.get(row.route_id)
    is_listed = covers(instance.whitelist, row.address)
    by_route = is_listed and own is not None and not covers(own, row.address)
    return {"row": row, "can_be_added": not is_listed, "by_route": by_route, "let_in": is_listed and not by_route}


def _total(connected: Connected) -> dict[str, float]:
    rows, others = connected.connections, connected.others
    return {
        "count": len(rows) + others.count,
        "in_bytes_per_s": sum(row.in_bytes_per_s for row in rows) + others.in_bytes_per_s,
        "out_bytes_per_s": sum(row.out_bytes_per_s for row in rows) + others.out_bytes_per_s,
    }
