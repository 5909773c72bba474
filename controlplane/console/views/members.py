"""Organisations and who belongs to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from controlplane.accounts import custom_roles, joining, standing
from controlplane.accounts.listing import INVITATIONS_SORTED
from controlplane.console.advice import said
from controlplane.console.forms.accounts import InvitationForm, OrganisationForm, RoleForm
from controlplane.console.listing import listing, order_asked, ordered
from controlplane.console.page import owners_page, signed_in
from controlplane.console.proof import proof_asked
from controlplane.core.errors import Conflict, Invalid, SluiceError
from controlplane.mail import outbox
from controlplane.tenants import invitations, services
from controlplane.tenants.models import Role
from controlplane.tenants.selectors import member_list

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller

ROLE_WORDS = {
    Role.OWNER: "everything, and decides who belongs here",
    Role.OPERATOR: "runs instances and topics; sees no bills, payments or members",
    Role.BILLING: "sees bills, makes budgets and chooses the price plan; sees no messages",
    Role.MEMBER: "creates, changes and deletes instances and topics, and sees bills",
    Role.VIEWER: "looks, changes nothing",
}


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def organisation_new(request: HttpRequest) -> HttpResponse:
    """One more organisation, owned by the person who asks."""
    form = OrganisationForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            standing.change_check(request.user)
            made = services.organisation_create(name=form.cleaned_data["name"], owner=request.user)
        except SluiceError as error:
            form.refuse(error)
        else:
            messages.success(request, f"{made.name} is yours.")
            return redirect("console:instances", made.id)
    return render(request, "console/organisation_new.html", {"form": form}, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@owners_page
@proof_asked
def listed(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Members; an owner invites more.

    The answer to the form is the page itself, with the link in it where no mail was sent: nothing keeps it for a page after it.
    """
    own_roles = custom_roles.custom_role_list(organisation=caller.organisation).order_by("name")
    choices = [(row.id, row.name) for row in own_roles]
    form, invited, link = InvitationForm(request.POST or None, own_roles=choices), None, ""
    if request.method == "POST" and form.is_valid():
        try:
            invited, token = joining.invite(
                organisation=caller.organisation,
                inviter=caller.person,
                email=form.cleaned_data["email"],
                **custom_roles.role_named(form.cleaned_data["role"]),
            )
            if token:
                link = request.build_absolute_uri(reverse("console:invitation", args=[token]))
            form = InvitationForm(own_roles=choices)
        except SluiceError as error:
            form.refuse(error)
    without_factor = (
        list(member_list(organisation=caller.organisation).filter(user__second_factor_at=None))
        if caller.may_manage
        else []
    )
    order = order_asked(request, INVITATIONS_SORTED)
    still_open = invitations.invitation_list(organisation=caller.organisation) if caller.may_manage else None
    if still_open is not None and order is not None:
        still_open = ordered(still_open, order, INVITATIONS_SORTED)
    context = {
        "form": form,
        "invited": invited,
        "link": link,
        "is_mailing": outbox.is_on(),
        "invitations": still_open,
        "order": order,
        "now": timezone.now(),
        "without_factor": without_factor,
        "listing": listing(request, member_list(organisation=caller.organisation), size=50),
        "roles": Role.choices,
        "own_roles": own_roles,
        "role_words": [(role.label, words) for role, words in ROLE_WORDS.items()],
    }
    return render(request, "console/members.html", context, status=422 if form.errors else 200)


@require_POST
@owners_page
@proof_asked
def role(request: HttpRequest, caller: Caller, membership_id: int) -> HttpResponse:
    """Give a member another role."""
    form = RoleForm(request.POST)
    if form.is_valid():
        try:
            changed = custom_roles.member_role_give(
                organisation=caller.organisation,
                by=caller.person,
                membership_id=membership_id,
                **custom_roles.role_named(form.cleaned_data["role"]),
            )
        except (Conflict, Invalid) as error:
            messages.error(request, said(error))
        else:
            if changed.custom_role is not None:
                messages.success(request, f"{changed.user.email} has the role {changed.custom_role.name} now.")
            else:
                messages.success(request, _is_now(changed.user.email, Role(changed.role)))
    return redirect("console:members", caller.organisation.id)


def _is_now(email: str, role: Role) -> str:
    if role == Role.OWNER:
        return f"{email} is an owner now."
    if role == Role.OPERATOR:
        return f"{email} is an operator now."
    if role == Role.BILLING:
        return f"{email} now has the billing role."
    return f"{email} is a member now." if role == Role.MEMBER else f"{email} is a viewer now."


@require_POST
@owners_page
@proof_asked
def remove(request: HttpRequest, caller: Caller, membership_id: int) -> HttpResponse:
    """End a membership; the person's other organisations stay."""
    try:
        joining.member_remove(organisation=caller.organisation, by=caller.person, membership_id=membership_id)
    except Conflict as error:
        messages.error(request, said(error))
    else:
        messages.success(request, "The member was removed, and their API keys of this organisation with them.")
    return redirect("console:members", caller.organisation.id)
