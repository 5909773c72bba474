"""Connect: what to paste into a client, by a route and with a topic that are chosen. It changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.shortcuts import render
from django.views.decorators.http import require_safe

from controlplane.console.forms.snippets import SnippetForm
from controlplane.console.page import tenant_page
from controlplane.console.views.access.certificates import certificate_of
from controlplane.core.errors import Conflict, Invalid
from controlplane.instances.selectors import instance_get
from controlplane.routes.selectors import route_list
from controlplane.snippets.selectors import guide_get

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller


@require_safe
@tenant_page
def shown(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """The guide of one route, with the topic and the mechanism that the address says."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    routes = [route.key for route in route_list(organisation=caller.organisation, instance_id=instance_id)]
    form = SnippetForm(request.GET or None, routes=routes)
    context: dict[str, Any] = {"instance": instance, "tab": "overview", "form": form, "guide": None, "away": None}
    if not form.is_bound or form.is_valid():
        asked = form.cleaned_data if form.is_bound else {}
        try:
            found = guide_get(
                organisation=caller.organisation,
                instance_id=instance_id,
                route_id=asked.get("route", ""),
                topic=asked.get("topic", ""),
                mechanism=asked.get("mechanism", ""),
            )
        except Invalid as error:
            form.refuse(error)
        except Conflict as error:
            context["away"] = error
        else:
            is_tls = found.route.security.endswith("ssl")
            context |= {
                "guide": found,
                "topic": asked.get("topic", ""),
                "snippets": found.snippets,
                "lacks_topic": found.lacks_topic,
                "is_tls": is_tls,
                "certificate": certificate_of(instance, found.route.key) if is_tls else None,
            }
    return render(request, "console/instance_snippets.html", context, status=422 if form.errors else 200)
