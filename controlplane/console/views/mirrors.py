"""Mirrors that copy into an instance, by what they have said last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.shortcuts import render
from django.views.decorators.http import require_safe

from controlplane.console.page import tenant_page
from controlplane.core.errors import BandwidthUsedUp, Conflict, Unavailable
from controlplane.instances.models import InstanceState
from controlplane.instances.selectors import instance_get
from controlplane.mirrors import selectors

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller


@require_safe
@tenant_page
def shown(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """Lag, rates, offsets of both sides. What cannot be read now is said calmly."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    context: dict[str, Any] = {
        "instance": instance,
        "tab": "mirrors",
        "away": None,
        "mirrors": [],
        "running": instance.state == InstanceState.RUNNING,
    }
    status = 200
    try:
        context["mirrors"] = selectors.mirrors_read(organisation=caller.organisation, instance_id=instance_id)
    except (Unavailable, BandwidthUsedUp, Conflict) as error:
        context["away"], status = error, error.http_status
    return render(request, "console/instance_mirrors.html", context, status=status)
