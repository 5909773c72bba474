"""Token issuers of an instance: trusted, their keys fetched anew, trusted no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from controlplane.console.advice import sentence
from controlplane.console.forms.access import TokenIssuerForm
from controlplane.console.page import tenant_page
from controlplane.console.proof import proof_asked
from controlplane.core.errors import SluiceError
from controlplane.instances.models import InstanceState
from controlplane.instances.selectors import instance_get
from controlplane.token_issuers import installed, selectors, services

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked
def listed(request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """All of them, four at most, and a new one."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    form = TokenIssuerForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            made = services.token_issuer_create(**caller.place(instance.id), **form.wanted())
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, f"Tokens of {made.issuer} let clients in within 2 seconds.")
            return redirect("console:token_issuers", caller.organisation.id, instance.id)
    context = {
        "instance": instance,
        "tab": "access",
        "part": "token_issuers",
        "running": instance.state == InstanceState.RUNNING,
        "form": form,
        "installed": bool(installed.places()),
        "issuers": selectors.token_issuer_list(organisation=caller.organisation, instance_id=instance.id),
    }
    return render(request, "console/token_issuers.html", context, status=422 if form.errors else 200)


@require_POST
@tenant_page
def refresh(request: HttpRequest, caller: Caller, instance_id: str, issuer_id: str) -> HttpResponse:
    """Fetch its keys now."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    row = services.token_issuer_refresh(**caller.place(instance.id), issuer_id=issuer_id)
    if row.keys_error:
        messages.error(request, f"Its keys could not be fetched: {sentence(row.keys_error)} Those from before stay.")
    else:
        messages.success(request, f"The keys of {row.issuer} were fetched.")
    return redirect("console:token_issuers", caller.organisation.id, instance.id)


@require_POST
@tenant_page
@proof_asked
def delete(request: HttpRequest, caller: Caller, instance_id: str, issuer_id: str) -> HttpResponse:
    """Its tokens let nobody in any more."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    row = selectors.token_issuer_get(organisation=caller.organisation, instance_id=instance.id, issuer_id=issuer_id)
    services.token_issuer_delete(**caller.place(instance.id), issuer_id=issuer_id)
    messages.success(request, f"Tokens of {row.issuer} let nobody in any more. ACLs that name their principals stay.")
    return redirect("console:token_issuers", caller.organisation.id, instance.id)
