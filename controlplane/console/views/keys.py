"""API keys: made, shown once, revoked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.db.models import F
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from controlplane.accounts import selectors, services
from controlplane.console.forms.accounts import ApiKeyForm
from controlplane.console.listing import listing
from controlplane.console.page import tenant_page
from controlplane.console.proof import proof_asked
from controlplane.core.errors import SluiceError

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked
def listed(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Keys, and a new one.

    The answer to the form is the page itself with the key's text in it: nothing keeps the text for a page after it.
    """
    form, text = ApiKeyForm(request.POST or None), None
    if request.method == "POST" and form.is_valid():
        try:
            _, text = services.api_key_create(
                organisation=caller.organisation, user=caller.user, name=form.cleaned_data["name"]
            )
            form = ApiKeyForm()
        except SluiceError as error:
            form.refuse(error)
    rows = selectors.api_key_list(organisation=caller.organisation)
    context = {
        "form": form,
        "text": text,
        "listing": listing(request, rows.order_by(F("revoked_at").asc(nulls_first=True), "-created_at"), size=50),
        "origin": request.build_absolute_uri("/").rstrip("/"),
    }
    return render(request, "console/keys.html", context, status=422 if form.errors else 200)


@require_POST
@tenant_page
def revoke(request: HttpRequest, caller: Caller, key_id: str) -> HttpResponse:
    """From now on a key opens nothing."""
    services.api_key_revoke(
        organisation=caller.organisation, actor=caller.actor, key_id=key_id, only_of=caller.whose_keys
    )
    messages.success(request, "The key was revoked. Requests with it are refused from now on.")
    return redirect("console:keys", caller.organisation.id)
