"""Service accounts: made, changed, disabled, deleted by owners, who make their API keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.db.models import F
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from controlplane.accounts import custom_roles, selectors, service_accounts
from controlplane.console.forms.accounts import ApiKeyForm, RotationForm, ServiceAccountForm
from controlplane.console.listing import listing
from controlplane.console.page import owners_page
from controlplane.console.proof import proof_asked
from controlplane.console.views.keys import key_made_once, row_of
from controlplane.core.errors import SluiceError

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.models import ServiceAccount
    from controlplane.accounts.selectors import Caller

KEY_IDS = "id_key_%s"
"""Of the fields for a new key, which stand on one page with those of the account."""


@require_http_methods(["GET", "HEAD", "POST"])
@owners_page
@proof_asked
def listed(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Those of the organisation, and a new one."""
    form = ServiceAccountForm(request.POST or None, own_roles=_own_roles(caller))
    if request.method == "POST" and form.is_valid():
        try:
            made = service_accounts.service_account_create(**_asked(caller), **form.wanted())
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, f"{made.name} was made. It has no keys yet.")
            return redirect("console:service_account", caller.organisation.id, made.id)
    rows = selectors.service_account_list(organisation=caller.organisation)
    context = {"form": form, "listing": listing(request, rows.order_by("name"), size=service_accounts.MOST)}
    return render(request, "console/service_accounts.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@owners_page
@proof_asked
def shown(request: HttpRequest, caller: Caller, service_account_id: str) -> HttpResponse:
    """One, its keys, and another name, description or role for it."""
    found = _found(caller, service_account_id)
    form = ServiceAccountForm(request.POST, own_roles=_own_roles(caller)) if request.method == "POST" else None
    if form is not None and form.is_valid():
        try:
            service_accounts.service_account_change(
                **_asked(caller), service_account_id=service_account_id, **form.wanted()
            )
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, "The service account was changed.")
            return redirect("console:service_account", caller.organisation.id, service_account_id)
    return _page(request, caller, found, form=form)


@require_POST
@owners_page
@proof_asked
def key(request: HttpRequest, caller: Caller, service_account_id: str) -> HttpResponse:
    """A new key that acts as it. The answer is the page with the key's text in it: nothing keeps it for a page after it."""
    found = _found(caller, service_account_id)
    form = ApiKeyForm(request.POST, organisation=caller.organisation, id_of=KEY_IDS)
    if form.is_valid():
        try:
            text = key_made_once(
                request,
                caller,
                form,
                lambda: service_accounts.service_account_key_create(
                    **_asked(caller), service_account_id=service_account_id, **form.wanted()
                ),
            )
        except SluiceError as error:
            form.refuse(error)
        else:
            return _page(request, caller, found, text=text)
    return _page(request, caller, found, key_form=form)


@require_POST
@owners_page
@proof_asked
def switch(request: HttpRequest, caller: Caller, service_account_id: str) -> HttpResponse:
    """Refuse all of its keys, or take them again."""
    disabled = request.POST.get("disabled") == "1"
    service_accounts.service_account_change(**_asked(caller), service_account_id=service_account_id, disabled=disabled)
    said = "Its keys are refused from now on." if disabled else "Its keys are good again."
    messages.success(request, said)
    return redirect("console:service_account", caller.organisation.id, service_account_id)


@require_POST
@owners_page
@proof_asked
def delete(request: HttpRequest, caller: Caller, service_account_id: str) -> HttpResponse:
    """End it, and revoke its keys."""
    service_accounts.service_account_delete(**_asked(caller), service_account_id=service_account_id)
    messages.success(request, "The service account was deleted, and its keys were revoked.")
    return redirect("console:service_accounts", caller.organisation.id)


def _asked(caller: Caller) -> dict[str, Any]:
    return {"organisation": caller.organisation, "by": caller.person}


def _own_roles(caller: Caller) -> list[tuple[str, str]]:
    rows = custom_roles.custom_role_list(organisation=caller.organisation).order_by("name")
    return list(rows.values_list("pk", "name"))


def _found(caller: Caller, service_account_id: str) -> ServiceAccount:
    return selectors.service_account_get(organisation=caller.organisation, service_account_id=service_account_id)


def _page(
    request: HttpRequest,
    caller: Caller,
    row: ServiceAccount,
    *,
    form: ServiceAccountForm | None = None,
    key_form: ApiKeyForm | None = None,
    text: str | None = None,
) -> HttpResponse:
    keys = selectors.api_key_list(organisation=caller.organisation).filter(service_account=row)
    found = listing(request, keys.order_by(F("revoked_at").asc(nulls_first=True), "-created_at"), size=50)
    known = {"name": row.name, "description": row.description, "role": row.custom_role_id or row.role}
    context = {
        "row": row,
        "form": form or ServiceAccountForm(initial=known, own_roles=_own_roles(caller)),
        "key_form": key_form or ApiKeyForm(organisation=caller.organisation, id_of=KEY_IDS),
        "rotation": RotationForm(),
        "text": text,
        "listing": found,
        "shown": [row_of(each, caller) for each in found.page.object_list],
    }
    is_refused = bool((form and form.errors) or (key_form and key_form.errors))
    return render(request, "console/service_account.html", context, status=422 if is_refused else 200)
