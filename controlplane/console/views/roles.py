"""Roles of the organisation's own: made, changed and deleted by owners; the page of members gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from controlplane.accounts import custom_roles
from controlplane.accounts.scopes import CHANGE, WHOLE_OF
from controlplane.console.advice import said
from controlplane.console.forms.accounts import CustomRoleForm
from controlplane.console.page import owners_page
from controlplane.console.proof import proof_asked
from controlplane.core.errors import Conflict, SluiceError

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller
    from controlplane.tenants.models import CustomRole


@require_http_methods(["GET", "HEAD", "POST"])
@owners_page
@proof_asked
def listed(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Those of the organisation, and a new one."""
    form = CustomRoleForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            made = custom_roles.custom_role_create(**_asked(caller), **form.wanted())
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, f"{made.name} was made. Nobody has it yet.")
            return redirect("console:roles", caller.organisation.id)
    rows = custom_roles.custom_role_list(organisation=caller.organisation).order_by("name")
    context = {"form": form, "rows": [(row, _words(row)) for row in rows]}
    return render(request, "console/roles.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@owners_page
@proof_asked
def shown(request: HttpRequest, caller: Caller, role_id: str) -> HttpResponse:
    """One, and other scopes for it."""
    row = custom_roles.custom_role_get(organisation=caller.organisation, role_id=role_id)
    form = CustomRoleForm(request.POST if request.method == "POST" else None, initial=_known(row))
    if request.method == "POST" and form.is_valid():
        try:
            custom_roles.custom_role_change(**_asked(caller), role_id=role_id, **form.wanted())
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, "The role was changed, for all who have it.")
            return redirect("console:roles", caller.organisation.id)
    return render(request, "console/role.html", {"row": row, "form": form}, status=422 if form.errors else 200)


@require_POST
@owners_page
@proof_asked
def delete(request: HttpRequest, caller: Caller, role_id: str) -> HttpResponse:
    """End a role that nobody has."""
    try:
        custom_roles.custom_role_delete(**_asked(caller), role_id=role_id)
    except Conflict as error:
        messages.error(request, said(error))
    else:
        messages.success(request, "The role was deleted.")
    return redirect("console:roles", caller.organisation.id)


def _asked(caller: Caller) -> dict[str, Any]:
    return {"organisation": caller.organisation, "by": caller.person}


def _known(row: CustomRole) -> dict[str, Any]:
    return {
        "name": row.name,
        "description": row.description,
        "looks": [scope for scope in row.scopes if scope not in WHOLE_OF],
        "changes": [scope for scope, kind in row.scopes.items() if kind == CHANGE],
        "instances": "\n".join(row.instances or ()),
    }


def _words(row: CustomRole) -> str:
    return ", ".join(f"{scope}: {kind}" for scope, kind in row.scopes.items())
