"""What flows now, as JSON: static/console/live.js asks every 2 s and draws it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import JsonResponse
from django.views.decorators.http import require_safe

from controlplane.console.advice import away_text
from controlplane.console.flow import DIRECTIONS, flow_of
from controlplane.console.page import staff_looks, staff_page, tenant_page
from controlplane.console.wording import worded
from controlplane.instances.selectors import instance_fresh, instance_get
from controlplane.quotas.figures import figures_get
from controlplane.quotas.selectors import allocation_of

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller
    from controlplane.instances.models import Instance


@require_safe
@tenant_page
def of_tenant(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """One instance of the caller's."""
    del request
    return _answer(instance_get(organisation=caller.organisation, instance_id=instance_id))


@require_safe
@staff_page
def of_operators(request: HttpRequest, instance_id: str) -> HttpResponse:
    """Anyone's, for operators."""
    found = instance_fresh(instance_id)
    staff_looks(request, found.organisation, found.id)
    return _answer(found)


def _answer(instance: Instance) -> HttpResponse:
    figures = figures_get([instance], allocation_of)
    document = figures.documents.get(instance.id)
    drawn = None if document is None else _in_words(flow_of(instance, dict(document)).as_json())
    if figures.away is None:
        return JsonResponse({"known": True, **(drawn or {})})
    # 200: not knowing is an ordinary answer here, which the page shows in place of the figures, or above the last ones.
    return JsonResponse({"known": False, "why": away_text(figures), "last": drawn})


def _in_words(document: dict[str, Any]) -> dict[str, Any]:
    """With its sentences in the language of the page."""
    for name in DIRECTIONS:
        direction = document[name]
        direction["rule"], direction["words"] = worded(direction["rule"]), worded(direction["words"])
        direction["brokers"] = [
            {**broker, "explanation": worded(broker.get("explanation"))} for broker in direction["brokers"]
        ]
    return document
