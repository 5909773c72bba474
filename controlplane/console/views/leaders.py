"""Spreading an instance's leaders: which would go where, and what each broker would carry; done once that was seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from controlplane.console.page import tenant_page
from controlplane.core.errors import SluiceError
from controlplane.instances.selectors import instance_get
from controlplane.remedies import leaders
from controlplane.remedies.spreading import Carried

if TYPE_CHECKING:
    from typing import Any

    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller
    from controlplane.remedies.spreading import Spread

NOBODY = Carried(0, 0, 0)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
def spread(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """The preview. What cannot be done now is said in its place: it is no error to look."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    context: dict[str, Any] = {"instance": instance, "tab": "quota"}
    status = 200
    try:
        if request.method == "POST":
            operation = leaders.leaders_spread(
                organisation=caller.organisation, actor=caller.actor, instance_id=instance.id
            )
            messages.success(request, "Other replicas are being elected; clients find them by themselves.")
            return redirect("console:operation", caller.organisation.id, operation.id)
        found = leaders.leaders_plan(organisation=caller.organisation, instance_id=instance.id)
        context |= {"leads": found.leads, "brokers": _brokers(found)}
    except SluiceError as error:
        context["problem"] = error
        status = error.http_status if request.method == "POST" else 200
    return render(request, "console/leaders_spread.html", context, status=status)


def _brokers(found: Spread) -> list[tuple[int, Carried, Carried]]:
    return [
        (broker, found.before.get(broker, NOBODY), found.after.get(broker, NOBODY))
        for broker in sorted({*found.before, *found.after})
    ]
