"""An organisation itself: its name, who owns it, and its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from controlplane.accounts import custom_roles
from controlplane.console.advice import said, sentence
from controlplane.console.forms.accounts import OrganisationForm, TransferForm
from controlplane.console.forms.instances import DeletionForm
from controlplane.console.page import end_page, owners_page
from controlplane.console.proof import proof_asked
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import NotFound, SluiceError
from controlplane.organisations import deletion as ends
from controlplane.organisations import ownership
from controlplane.organisations.obstacles import obstacles
from controlplane.sso.selectors import owners_without, rule_of
from controlplane.tenants.models import Organisation, Role
from controlplane.tenants.selectors import member_list

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller

RENAME, TRANSFER, DELETE, RESTORE, RESTORE_WITHOUT_KEYS = "rename", "transfer", "delete", "restore", "restore_revoke"
"""What the button of a form says that it does."""


@require_http_methods(["GET", "HEAD", "POST"])
@owners_page
@proof_asked
def settings(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Its name and its owners; the way to its deletion."""
    does, organisation = request.POST.get("do", ""), caller.organisation
    form = OrganisationForm(request.POST if does == RENAME else None, initial={"name": organisation.name})
    roles = [(row.id, row.name) for row in custom_roles.custom_role_list(organisation=organisation).order_by("name")]
    transfer = TransferForm(request.POST if does == TRANSFER else None, own_roles=roles)
    bound = {RENAME: form, TRANSFER: transfer}.get(does)
    if bound is not None and bound.is_valid():
        try:
            if does == RENAME:
                ownership.organisation_rename(
                    organisation=organisation, by=caller.person, name=form.cleaned_data["name"]
                )
                messages.success(request, "The new name is in force.")
            else:
                _handed_over(request, caller, transfer)
        except SluiceError as error:
            bound.refuse(error)
        else:
            if does == TRANSFER and transfer.wanted():  # who steps down may have a role that does not open this page
                return redirect(reverse("console:home", query={"organisation": organisation.id}))
            return redirect("console:organisation_settings", organisation.id)
    rule = rule_of(organisation) if caller.may_manage else None
    context = {"form": form, "transfer": transfer, "owners": _owners(organisation), "rule": rule}
    context["owners_without"] = owners_without(rule) if rule is not None else []
    status = 422 if bound is not None and bound.errors else 200
    return render(request, "console/organisation_settings.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@end_page
@proof_asked
def deletion(request: HttpRequest, caller: Caller) -> HttpResponse:
    """What is in the way, or the form that deletes it; of one that is being deleted, that it is, and the way back."""
    organisation, does = caller.organisation, request.POST.get("do", "")
    form = DeletionForm(request.POST if does == DELETE else None, name=organisation.name)
    status = 200
    if does in (RESTORE, RESTORE_WITHOUT_KEYS):
        try:
            ends.organisation_restore(
                organisation=organisation, by=caller.person, revokes_keys=does == RESTORE_WITHOUT_KEYS
            )
        except SluiceError as error:
            messages.error(request, said(error))
            return redirect("console:organisation_deletion", organisation.id)
        name = organisation.name
        if does == RESTORE_WITHOUT_KEYS:
            messages.success(request, f"{name} is in use again. All keys of before are revoked.")
        else:
            messages.success(request, f"{name} is in use again.")
        return redirect("console:organisation_settings", organisation.id)
    if does == DELETE and form.is_valid():
        try:
            ends.organisation_delete(
                organisation=organisation, by=caller.person, confirmation=form.cleaned_data["confirmation"]
            )
        except SluiceError as error:
            form.refuse(error)
            status = error.http_status
        else:
            return redirect("console:organisation_deletion", organisation.id)
    now = SYSTEM_CLOCK.now()
    is_due = ends.is_due(organisation, now)
    is_asked = is_due or (organisation.is_in_use and caller.may_manage)
    in_the_way = obstacles(organisation=organisation, now=now) if is_asked else []
    if form.errors and status in (200, 400):
        status = 422
    context = {
        "form": form,
        "obstacles": [sentence(each.detail) for each in in_the_way] if caller.may_manage else [],
        "until": organisation.deletes_at or now + ends.GRACE,
        "is_over": is_due and not in_the_way,
        "is_due": is_due,
    }
    return render(request, "console/organisation_deletion.html", context, status=status)


def _handed_over(request: HttpRequest, caller: Caller, form: TransferForm) -> None:
    """Raises NotFound for whoever is no member, and what the service raises."""
    email = form.cleaned_data["email"].strip()
    found = member_list(organisation=caller.organisation).filter(user__email=email).first()
    if found is None:
        raise NotFound(f"{email} is no member: invite them first")
    ownership.ownership_transfer(
        organisation=caller.organisation, by=caller.person, membership_id=found.pk, **form.wanted()
    )
    if found.role == Role.OWNER:  # before: only the one who asks is something else now
        messages.success(request, f"You have stepped down; {email} is an owner, as before.")
    else:
        messages.success(
            request, f"{email} is an owner now. You have both been told by e-mail, where the service sends any."
        )


def _owners(organisation: Organisation) -> list[str]:
    """Their addresses."""
    return list(member_list(organisation=organisation).filter(role=Role.OWNER).values_list("user__email", flat=True))
