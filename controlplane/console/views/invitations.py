"""Invitations: an owner withdraws one, and whoever has its link joins by it."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from django.contrib import messages
from django.contrib.auth import login
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from controlplane.accounts import attempts, joining
from controlplane.accounts.identity import signing_up
from controlplane.console import known_browser, single_sign_on
from controlplane.console.advice import said
from controlplane.console.forms.accounts import JoinForm, NameForm
from controlplane.console.page import owners_page, to_first_page
from controlplane.console.proof import proof_asked
from controlplane.console.views.accounts import BACKEND, SIGN_UP
from controlplane.console.views.sso import ASKED
from controlplane.core.errors import Conflict, Invalid, NotFound, SluiceError, TooManyAttempts
from controlplane.core.origin import address_of
from controlplane.core.wording import of_page
from controlplane.sso.selectors import provider_in_force
from controlplane.tenants import invitations
from controlplane.tenants.models import Role

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.models import User
    from controlplane.accounts.selectors import Caller
    from controlplane.tenants.models import Invitation, Organisation


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_variables("token")
@sensitive_post_parameters("password")
@never_cache
def shown(request: HttpRequest, token: str) -> HttpResponse:
    """What one is invited to. Whoever is signed in joins; a new person chooses a password and is in."""
    invitation = invitations.invitation_find(token=token)
    if request.user.is_authenticated:
        return _join(request, invitation, token)
    if request.method == "POST" and "by_sso" in request.POST:
        return _by_provider(request, invitation)
    return _sign_up(request, invitation, token)


def _by_provider(request: HttpRequest, invitation: Invitation) -> HttpResponse:
    """The way to the provider of the organisation that has invited; what becomes of it is views/sso.py's."""
    provider = provider_in_force(invitation.organisation_id)
    if provider is None:
        raise NotFound("this organisation has no single sign-on")
    way, problem, status = "", "", 200
    try:
        attempts.attempt_begin(email=secrets.token_hex(8), address=address_of(request), what=ASKED)
        way = single_sign_on.way(request, provider, single_sign_on.JOIN, invitation.id)
    except SluiceError as error:
        problem, status = said(error), error.http_status
    context = {"invitation": invitation, "role": Role(invitation.role).label, "way": way, "problem": problem}
    return render(request, "console/invitation.html", context | {"provider": provider}, status=status)


def _join(request: HttpRequest, invitation: Invitation, token: str) -> HttpResponse:
    status, problem = 200, ""
    if request.method == "POST":
        try:
            joined = joining.invitation_accept(token=token, user=request.user)
        except Conflict as error:
            status = error.http_status
            # Of one that is for another address the page says so in any case, and what to do.
            problem = "" if error.code == "another_address" else said(error)
        else:
            return _joined(request, request.user, joined.organisation)
    return _page(request, invitation, None, status, problem=problem)


def _sign_up(request: HttpRequest, invitation: Invitation, token: str) -> HttpResponse:
    if not joining.is_proof(invitation):
        return _ask(request, invitation)
    form = JoinForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            user, organisation = joining.sign_up_invited(token=token, **form.cleaned_data, language=of_page())
        except Invalid as error:
            form.refuse(error)
        else:
            login(request, user, backend=BACKEND)
            return known_browser.remember(request, _joined(request, user, organisation), user)
    return _page(request, invitation, form, 422 if form.errors else 200)


def _ask(request: HttpRequest, invitation: Invitation) -> HttpResponse:
    """Whoever has been shown this link need not read the address: the rest is behind the link of a mail."""
    form = NameForm(request.POST if request.method == "POST" else None)
    sent_to, status = "", 200
    if request.method == "POST" and form.is_valid():
        try:
            attempts.asked(what=SIGN_UP, address=address_of(request))
            signing_up.ask(
                email=invitation.email, name=form.cleaned_data["name"], organisation_name=None, language=of_page()
            )
            sent_to = invitation.email
        except (Invalid, TooManyAttempts) as error:
            form.refuse(error)
            status = error.http_status if isinstance(error, TooManyAttempts) else 422
    return _page(request, invitation, form, status, sent_to)


def _joined(request: HttpRequest, user: User, organisation: Organisation) -> HttpResponse:
    messages.success(request, f"You are a member of {organisation.name} now.")
    return to_first_page(request, user, organisation.id)


def _page(
    request: HttpRequest,
    invitation: Invitation,
    form: JoinForm | NameForm | None,
    status: int,
    sent_to: str = "",
    problem: str = "",
) -> HttpResponse:
    context = {"invitation": invitation, "role": Role(invitation.role).label, "form": form, "sent_to": sent_to}
    context["problem"] = problem
    if form is not None and joining.may_join_by_provider(invitation):
        context["provider"] = provider_in_force(invitation.organisation_id)
    return render(request, "console/invitation.html", context, status=status)


@require_POST
@owners_page
@proof_asked
def withdraw(request: HttpRequest, caller: Caller, invitation_id: str) -> HttpResponse:
    """The link of an invitation leads nowhere from now on."""
    try:
        ended = joining.invitation_withdraw(
            organisation=caller.organisation, by=caller.person, invitation_id=invitation_id
        )
    except Conflict as error:
        messages.error(request, said(error))
    else:
        messages.success(request, f"The invitation for {ended.email} was withdrawn.")
    return redirect("console:members", caller.organisation.id)
