"""A change of who may do what that is tried: who would be cut off, and the two ways on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from controlplane.access import proposals
from controlplane.console.advice import said
from controlplane.console.listing import listing
from controlplane.console.page import tenant_page
from controlplane.console.proof import proof_asked_where
from controlplane.core.errors import NotFound, SluiceError, Unavailable
from controlplane.instances.models import InstanceState
from controlplane.instances.selectors import instance_get
from controlplane.instances.spec import config_of

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller
    from controlplane.instances.models import Instance

TRY = "try"
"""The name of the other button of a form: what it says is tried first."""
EVERY_S = 3


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked_where(lambda request: request.POST.get("then") == "in-force")
def shown(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """The proposal; while one looks, its findings come again."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    if request.method == "POST":
        return _decided(request, caller, instance)
    view, away = None, None
    try:
        view = proposals.proposal_get(organisation=caller.organisation, instance_id=instance.id)
    except NotFound:
        view = None
    except Unavailable as error:
        away = error
    context = {
        "instance": instance,
        "tab": "access",
        "part": "proposal",
        "view": view,
        "away": away,
        "every_s": EVERY_S,
        "config": config_of(instance.config),
        "running": instance.state == InstanceState.RUNNING,
        "listing": listing(request, view.cut_off) if view else None,
    }
    part = request.htmx  # type: ignore[attr-defined]
    template = "console/parts/proposal_now.html" if part else "console/proposal.html"
    return render(request, template, context, status=503 if away and not part else 200)


def _decided(request: HttpRequest, caller: Caller, instance: Instance) -> HttpResponse:
    place = {"organisation": caller.organisation, "actor": caller.actor, "instance_id": instance.id}
    wanted, proposal_id = request.POST.get("then"), request.POST.get("id", "")
    try:
        if wanted == "in-force":
            proposals.proposal_put_in_force(**place, proposal_id=proposal_id)
            messages.success(request, "It is in force within 2 seconds, on open connections too.")
        elif wanted == "discard":
            proposals.proposal_discard(**place, proposal_id=proposal_id)
            messages.success(request, "The proposal was discarded. What is in force stays as it is.")
        elif wanted == "nobody":
            proposals.proposal_make(**place, allow_everyone=False, extends=True)
            messages.success(request, "It is being tried. Nobody is cut off meanwhile.")
        else:
            messages.info(request, "Nothing was changed.")
    except Unavailable:
        raise
    except SluiceError as error:
        messages.error(request, said(error))
    return redirect("console:proposal", caller.organisation.id, instance.id)


def tried(request: HttpRequest, caller: Caller, instance: Instance, **members: Any) -> HttpResponse:
    """What a form says, tried together with the proposal that there is. Raises what `proposal_make` does."""
    proposals.proposal_make(
        organisation=caller.organisation, actor=caller.actor, instance_id=instance.id, extends=True, **members
    )
    messages.success(request, "It is being tried. Nobody is cut off meanwhile.")
    return redirect("console:proposal", caller.organisation.id, instance.id)
