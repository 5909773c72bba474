"""How an instance is paid: by the hour or in advance, up to when, and what becomes of it then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from controlplane.admission import dry_runs as outlooks
from controlplane.admission import prepaid
from controlplane.console.forms.prepaid import PrepaidEndForm, PrepaidForm
from controlplane.console.page import tenant_page
from controlplane.console.proof import proof_asked_where
from controlplane.core.errors import Conflict, SluiceError
from controlplane.instances.models import InstanceState

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller
    from controlplane.admission.prepaid import PrepaidNow, Quote
    from controlplane.core.dry_runs import Outlook


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked_where(lambda request: "set" in request.POST or "preview" not in request.POST)
def shown(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """What is paid and what would be paid back; a form to buy or renew months, with a preview, and one for the end."""
    now = prepaid.prepaid_get(organisation=caller.organisation, instance_id=instance_id)
    of_end = "set" in request.POST
    form = PrepaidForm(request.POST if request.method == "POST" and not of_end else None, now=now)
    end_form = PrepaidEndForm(request.POST if of_end else None, now=now)
    chosen: PrepaidForm | PrepaidEndForm = end_form if of_end else form
    preview = None
    if request.method == "POST" and chosen.is_valid():
        try:
            preview = _acted(request, caller, now, chosen)
        except SluiceError as error:
            chosen.refuse(error)
        else:
            if preview is None:
                return redirect("console:instance_prepaid", caller.organisation.id, instance_id)
    context = {
        "instance": now.instance,
        "tab": "settings",
        "now": now,
        "a_month": _a_month(caller, now),
        "form": form,
        "end_form": end_form,
        "preview": preview,
        "is_open_to_change": now.instance.state != InstanceState.DELETING,
    }
    status = 422 if form.errors or end_form.errors else 200
    return render(request, "console/instance_prepaid.html", context, status=status)


def _acted(request: HttpRequest, caller: Caller, now: PrepaidNow, form: PrepaidForm | PrepaidEndForm) -> Outlook | None:
    """What was asked for, or what it would do. Raises SluiceError."""
    asked: dict[str, Any] = {
        "organisation": caller.organisation,
        "actor": caller.actor,
        "instance_id": now.instance.id,
        **form.wanted(),
    }
    if "set" in request.POST:
        prepaid.prepaid_set(**asked)
        messages.success(request, "What becomes of it at the end was changed.")
        return None
    is_renewal = "ends_at" in asked
    if "preview" in request.POST:
        return outlooks.renewing(**asked) if is_renewal else outlooks.beginning(**asked)
    if is_renewal:
        prepaid.prepaid_renew(**asked)
        messages.success(request, "The instance was renewed.")
    else:
        prepaid.prepaid_begin(**asked)
        messages.success(request, "The instance is paid in advance.")
    return None


def _a_month(caller: Caller, now: PrepaidNow) -> Quote | None:
    """What a month costs in advance at its present size; None: under the plan of its organisation none can be bought."""
    sizes = {name: getattr(now.instance, name) for name in ("bandwidth_mib_per_s", "storage_gib", "partitions")}
    try:
        return prepaid.prepaid_quote(organisation=caller.organisation, months=1, sizes=sizes)
    except Conflict:
        return None
