"""Usage and bill of an instance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.shortcuts import render
from django.views.decorators.http import require_safe

from controlplane.console.page import tenant_page
from controlplane.instances.selectors import instance_get

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller


@require_safe
@tenant_page
def usage(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """By hour."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    return render(request, "console/instance_usage.html", {"instance": instance, "tab": "usage"})


@require_safe
@tenant_page
def bill(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """By month and line."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    return render(request, "console/instance_bill.html", {"instance": instance, "tab": "bill"})
