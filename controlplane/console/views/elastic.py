"""Elastic bandwidth of an instance: the setting, and what this month has cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from controlplane.admission import elastic
from controlplane.billing.pricing.plans import GB
from controlplane.console.forms.elastic import ElasticForm
from controlplane.console.page import tenant_page
from controlplane.core.errors import SluiceError
from controlplane.instances.models import InstanceState

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
def shown(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """A cap above the bought bandwidth, with its price; a budget; what was carried this month."""
    now = elastic.elastic_get(organisation=caller.organisation, instance_id=instance_id)
    form = ElasticForm(request.POST or None, now=now)
    if request.method == "POST" and form.is_valid():
        try:
            elastic.elastic_set(
                organisation=caller.organisation, actor=caller.actor, instance_id=instance_id, **form.wanted()
            )
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, "The change is on its way to the brokers; clients stay connected.")
            return redirect("console:instance_elastic", caller.organisation.id, instance_id)
    context = {
        "instance": now.instance,
        "tab": "settings",
        "now": now,
        "produced_gb": now.produced_bytes / GB,
        "consumed_gb": now.consumed_bytes / GB,
        "form": form,
        "may_change": caller.may_change and now.instance.state not in (InstanceState.DELETING, InstanceState.ISOLATED),
    }
    return render(request, "console/instance_elastic.html", context, status=422 if form.errors else 200)
