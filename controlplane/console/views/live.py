"""What flows now, as JSON: static/console/live.js asks every 2 s and draws it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import JsonResponse
from django.views.decorators.http import require_safe

from controlplane.console.advice import said
from controlplane.console.flow import flow_of
from controlplane.console.page import staff_page, tenant_page
from controlplane.core.errors import Unavailable
from controlplane.instances.selectors import instance_fresh, instance_get
from controlplane.quotas import master
from controlplane.quotas.selectors import allocation_get

if TYPE_CHECKING:
    from typing import Any

    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller
    from controlplane.instances.models import Instance


@require_safe
@tenant_page
def of_tenant(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """One instance of the caller's."""
    del request
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    try:
        return _answer(instance, allocation_get(organisation=caller.organisation, instance_id=instance_id))
    except Unavailable as error:
        return _away(error)


@require_safe
@staff_page
def of_operators(request: HttpRequest, instance_id: str) -> HttpResponse:
    """Anyone's, for operators."""
    del request
    instance = instance_fresh(instance_id)
    try:
        return _answer(instance, master.allocation(instance_id))
    except Unavailable as error:
        return _away(error)


def _answer(instance: Instance, document: dict[str, Any]) -> HttpResponse:
    return JsonResponse({"known": True, **flow_of(instance, document).as_json()})


def _away(error: Unavailable) -> HttpResponse:
    # 200: not knowing is an ordinary answer here, which the page shows in place of the figures.
    return JsonResponse({"known": False, "why": said(error)})
