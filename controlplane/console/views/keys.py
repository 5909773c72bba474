"""API keys: made, shown once, rotated, revoked."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.db import transaction
from django.db.models import F
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from controlplane.accounts import selectors, services
from controlplane.accounts.key_rules import TOLD_BEFORE
from controlplane.console import single_sign_on
from controlplane.console.advice import said
from controlplane.console.forms.accounts import ApiKeyForm, RotationForm
from controlplane.console.listing import listing
from controlplane.console.once import made_once
from controlplane.console.page import tenant_page
from controlplane.console.proof import proof_asked
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import Conflict, SluiceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.models import ApiKey
    from controlplane.accounts.selectors import Caller


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page
@proof_asked
def listed(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Keys, and a new one.

    The answer to the form is the page itself with the key's text in it: nothing keeps the text for a page after it.
    """
    form, text = ApiKeyForm(request.POST or None, organisation=caller.organisation, only=caller.limits.instances), None
    if request.method == "POST" and form.is_valid():

        @transaction.atomic
        def make() -> tuple[ApiKey, str]:
            return services.api_key_create(
                organisation=caller.organisation,
                user=caller.person,
                sso_until=single_sign_on.keys_until(request),
                **form.wanted(),
            )

        try:
            text = key_made_once(request, caller, form, make)
            form = ApiKeyForm(organisation=caller.organisation, only=caller.limits.instances)
        except SluiceError as error:
            form.refuse(error)
    return _page(request, caller, form, text=text)


@require_POST
@tenant_page
@proof_asked
def rotate(request: HttpRequest, caller: Caller, key_id: str) -> HttpResponse:
    """Another secret for a key of one's own, shown as a new key is."""
    asked = RotationForm(request.POST)
    if not asked.is_valid():
        return redirect("console:keys", caller.organisation.id)
    overlap = timedelta(seconds=asked.cleaned_data["overlap_s"])
    try:
        with transaction.atomic():
            key, text = services.api_key_rotate(
                organisation=caller.organisation,
                user=caller.person,
                key_id=key_id,
                overlap=overlap,
                sso_until=single_sign_on.keys_until(request),
            )
    except Conflict as error:
        messages.error(request, said(error))
        return redirect("console:keys", caller.organisation.id)
    return _page(
        request,
        caller,
        ApiKeyForm(organisation=caller.organisation, only=caller.limits.instances),
        text=text,
        rotated=key,
    )


@require_POST
@tenant_page
@proof_asked
def revoke(request: HttpRequest, caller: Caller, key_id: str) -> HttpResponse:
    """From now on a key opens nothing."""
    services.api_key_revoke(
        organisation=caller.organisation, actor=caller.actor, key_id=key_id, only_of=caller.whose_keys
    )
    messages.success(request, "The key was revoked. Requests with it are refused from now on.")
    return redirect("console:keys", caller.organisation.id)


@require_POST
@tenant_page
@proof_asked
def access_revoke(request: HttpRequest, caller: Caller, access_key_id: str) -> HttpResponse:
    """From now on nothing is signed with an access key."""
    services.access_key_revoke(
        organisation=caller.organisation, actor=caller.actor, key_id=access_key_id, only_of=caller.whose_keys
    )
    messages.success(request, "The access key was revoked. What is signed with it is refused from now on.")
    return redirect("console:keys", caller.organisation.id)


def _page(
    request: HttpRequest, caller: Caller, form: ApiKeyForm, *, text: str | None, rotated: ApiKey | None = None
) -> HttpResponse:
    rows, now = selectors.api_keys_of(caller), SYSTEM_CLOCK.now()
    found = listing(request, rows.order_by(F("revoked_at").asc(nulls_first=True), "-created_at"), size=50)
    context = {
        "form": form,
        "rotation": RotationForm(),
        "text": text,
        "rotated": rotated,
        "listing": found,
        "access_keys": [
            {"key": key, "is_asleep": key.is_asleep_at(now), "has_expired": key.has_expired_at(now)}
            for key in selectors.access_keys_standing(caller)
        ],
        "shown": [row_of(key, caller) for key in found.page.object_list],
        "origin": request.build_absolute_uri("/").rstrip("/"),
    }
    return render(request, "console/keys.html", context, status=422 if form.errors else 200)


def key_made_once(
    request: HttpRequest, caller: Caller, form: ApiKeyForm, make: Callable[[], tuple[ApiKey, str]]
) -> str | None:
    """The text of the key that `make` makes; None where the form was sent before: nothing keeps it for a second answer.

    Raises as `made_once`.
    """
    texts: list[str] = []

    def noted() -> str:
        key, text = make()
        texts.append(text)
        return key.id

    made_once(request, caller, form, noted)
    if texts:
        return texts[0]
    messages.warning(
        request, "The key stood in the first answer alone. If you have not seen that, rotate it: you are shown another."
    )
    return None


def row_of(key: ApiKey, caller: Caller) -> dict[str, Any]:
    """A key as it is now, and what the caller may do with it: service accounts' keys are the owners'."""
    now = SYSTEM_CLOCK.now()
    state = key.state_at(now)
    is_near = state == "active" and key.expires_at is not None and key.expires_at - now <= TOLD_BEFORE
    is_own = caller.may_manage if key.service_account_id else key.user_id == caller.person.pk
    return {
        "key": key,
        "state": state,
        "is_near": is_near,
        "is_rotating": key.is_rotating_at(now),
        "may_rotate": state == "active" and is_own,
        "may_revoke": caller.may_manage or is_own,
    }
