"""The audit of an instance: what happened there, page by page backwards, and the switch."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from controlplane.access import trail
from controlplane.admission import purchases
from controlplane.console.forms.audit import AuditForm
from controlplane.console.page import tenant_page
from controlplane.console.proof import proof_asked_where
from controlplane.core.errors import SluiceError, Unavailable
from controlplane.instances.models import InstanceState
from controlplane.instances.selectors import instance_get
from controlplane.instances.spec import config_of

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.access.trail import AuditPage
    from controlplane.accounts.selectors import Caller
    from controlplane.instances.models import Instance

ROWS = 50
ON, OFF = "on", "off"
LONGEST_PLACE = 18
"""Digits of an offset in the address."""


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked_where(lambda request: request.POST.get("audit") == OFF)
def shown(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """What fits the filter in the address, the newest first."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    if request.method == "POST":
        return _switched(request, caller, instance)
    form = AuditForm({name: request.GET[name] for name in AuditForm.base_fields if name in request.GET})
    page: AuditPage | None = None
    away: SluiceError | None = None
    if form.is_valid():
        try:
            page = trail.audit_page(
                organisation=caller.organisation,
                instance_id=instance.id,
                wanted=form.wanted(),
                before=_place(request.GET.get("before", "")),
                most=ROWS,
            )
        except Unavailable as error:
            away = error
        except SluiceError as error:
            form.refuse(error)
    context = {
        "instance": instance,
        "tab": "access",
        "part": "audit",
        "is_on": config_of(instance.config)["audit"],
        "may_be_switched": caller.may_change and instance.state == InstanceState.RUNNING,
        "form": form,
        "filtered": any(form.data.values()),
        "further": "before" in request.GET,
        "away": away,
        "page": page,
        "rows": [(datetime.fromtimestamp(each.time_ms / 1000, UTC), each) for each in page.records] if page else [],
    }
    status = 503 if away else 422 if form.errors else 200
    return render(request, "console/instance_audit.html", context, status=status)


def _switched(request: HttpRequest, caller: Caller, instance: Instance) -> HttpResponse:
    wanted, is_on = request.POST.get("audit"), config_of(instance.config)["audit"]
    if wanted not in (ON, OFF) or (wanted == ON) == is_on:
        messages.info(request, "Nothing was changed.")
    else:
        caller.limits.admit_config({"audit"})
        purchases.instance_change(
            organisation=caller.organisation,
            actor=caller.actor,
            instance_id=instance.id,
            changes={"config": {"audit": wanted == ON}},
        )
        began = "The audit is on: within seconds brokers write down what happens from now on."
        ended = "The audit is off within seconds. What was written stays until it expires."
        messages.success(request, began if wanted == ON else ended)
    return redirect("console:instance_audit", caller.organisation.id, instance.id)


def _place(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_PLACE else None
