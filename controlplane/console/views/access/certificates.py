"""The instance's authority as a file, what a TLS route shows its clients, and whose certificates it takes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from controlplane.certificates import services
from controlplane.console.forms.certificates import BroughtForm, ClientCaForm
from controlplane.console.page import tenant_page
from controlplane.console.proof import proof_asked_where
from controlplane.core.errors import NotFound, SluiceError
from controlplane.instances.selectors import instance_get
from controlplane.routes.selectors import route_get
from controlplane.snippets.programs.way import AUTHORITY

if TYPE_CHECKING:
    from django.http import HttpRequest

    from controlplane.accounts.selectors import Caller
    from controlplane.certificates.models import RouteCertificate
    from controlplane.instances.models import Instance

BRING, GIVE_BACK, CLIENT_CA = "bring", "give-back", "client-ca"
IN_FORCE = "for new connections within 2 seconds."


@require_safe
@tenant_page
def authority(_request: HttpRequest, caller: Caller, instance_id: str) -> HttpResponse:
    """What clients trust, by the name that the snippets call it."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    disposition = {"Content-Disposition": f'attachment; filename="{AUTHORITY}"'}
    pem = services.authority_of(instance)
    return HttpResponse(pem, content_type="application/x-pem-file", headers=disposition)


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked_where(lambda request: request.POST.get("change") == CLIENT_CA)
def of_route(request: HttpRequest, caller: Caller, instance_id: str, route_id: str) -> HttpResponse:
    """One route's: three forms, of which one is sent."""
    instance = instance_get(organisation=caller.organisation, instance_id=instance_id)
    route = route_get(organisation=caller.organisation, instance_id=instance_id, route_id=route_id)
    row, sent = certificate_of(instance, route_id), request.POST.get("change")
    brought = BroughtForm(request.POST if sent == BRING else None)
    trusted = ClientCaForm(
        request.POST if sent == CLIENT_CA else None, initial={"client_ca": row.client_ca if row else ""}
    )
    at = {"instance": instance, "route": route_id, "actor": caller.actor}
    said = ""
    try:
        if sent == BRING and brought.is_valid():
            services.certificate_bring(**at, **brought.cleaned_data)
            said = f"The route shows your certificate {IN_FORCE}"
        elif sent == CLIENT_CA and trusted.is_valid():
            services.client_ca_set(**at, **trusted.cleaned_data)
            said = f"It holds {IN_FORCE}"
        elif sent == GIVE_BACK:
            services.certificate_give_back(**at)
            said = f"The route shows a certificate of the instance's authority {IN_FORCE}"
    except SluiceError as error:
        if sent == GIVE_BACK:
            raise
        (brought if sent == BRING else trusted).refuse(error)
    if said:
        messages.success(request, said)
        return redirect("console:route_certificate", caller.organisation.id, instance.id, route_id)
    context = {
        "instance": instance,
        "tab": "access",
        "route": route,
        "is_tls": route.security.endswith("ssl"),
        "certificate": row,
        "brought": brought,
        "trusted": trusted,
        "may_change": caller.may_change and route.state != "deleting",
    }
    status = 422 if brought.errors or trusted.errors else 200
    return render(request, "console/route_certificate.html", context, status=status)


def certificate_of(instance: Instance, route_id: str) -> RouteCertificate | None:
    """What the route shows; None while it has nothing."""
    try:
        return services.certificate_get(instance=instance, route=route_id)
    except NotFound:
        return None
