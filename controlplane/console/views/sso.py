"""Single sign-on: what owners set, how members are connected, and the way in by it."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from django.contrib import messages
from django.contrib.auth import login
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods, require_safe

from controlplane.accounts import attempts
from controlplane.accounts.identity.links import address_of as own_address
from controlplane.accounts.selectors import caller_in
from controlplane.console import single_sign_on
from controlplane.console.advice import said
from controlplane.console.forms.sso import OrganisationIdForm, ProviderForm
from controlplane.console.page import LAST_ORGANISATION, own_page, to_first_page
from controlplane.console.proof import proof_asked
from controlplane.console.views.accounts import BACKEND
from controlplane.core.errors import Forbidden, Invalid, NotFound, SluiceError
from controlplane.core.origin import address_of
from controlplane.sso import selectors, services
from controlplane.token_issuers import installed

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.selectors import Caller
    from controlplane.sso.models import SsoProvider

ASKED = "sso"


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def sign_in(request: HttpRequest) -> HttpResponse:
    """By the organisation's id; one sentence for those that there are not, and those that do not sign in so."""
    if request.user.is_authenticated:
        return redirect("console:home")
    form = OrganisationIdForm(request.POST or None, initial={"organisation": request.GET.get("organisation", "")})
    context: dict[str, object] = {"form": form}
    status = 200
    if request.method == "POST" and form.is_valid():
        try:
            attempts.attempt_begin(email=secrets.token_hex(8), address=address_of(request), what=ASKED)
            provider = selectors.provider_in_force(form.cleaned_data["organisation"].strip())
            if provider is None:
                raise Invalid.field("organisation", "there is no organisation with this id that signs in so")
            way = single_sign_on.way(request, provider, single_sign_on.SIGN_IN)
            context |= {"way": way, "label": provider.label}
        except SluiceError as error:
            form.refuse(error)
            status = error.http_status
    if form.errors and status in (200, 400):
        status = 422
    return render(request, "console/sign_in_sso.html", context, status=status)


@require_safe
@never_cache
@sensitive_variables("code")
def back(request: HttpRequest, whose: str) -> HttpResponse:
    """Where the provider of one organisation sends people back to.

    With one address for all, a provider that sends people on to another organisation's would be handed the code that they were
    given there (mix-up): challenge and nonce are what it says, so that neither helps.
    """
    purpose, begun = single_sign_on.back(request, request.GET.get("state", ""))
    if whose != begun.organisation_id or request.GET.get("iss", begun.issuer) != begun.issuer:
        raise Invalid("this answer is of another provider than the one that was asked", code="sso_state")
    if "error" in request.GET or not (code := request.GET.get("code", "")):
        raise Invalid("the provider has not signed you in", code="sso_refused")
    redirect_uri = own_address("console:sso_back", begun.organisation_id)
    if purpose == single_sign_on.CONNECT:
        caller = caller_in(user=request.user, organisation_id=begun.organisation_id)
        caller.admit(changes=True)
        selectors.connect_check(caller, is_by_sso=False)
        provider = selectors.provider_of(caller.organisation)
        if provider is None:
            raise NotFound("this organisation has no single sign-on")
        found = services.identity_found(provider, begun, code=code, redirect_uri=redirect_uri)
        services.member_connect(asked=provider, user=request.user, begun=begun, subject=found.subject)
        messages.success(request, "You are connected.")
        return redirect("console:organisation_sso", caller.organisation.id)
    provider = selectors.provider_in_force(begun.organisation_id)
    if provider is None:
        raise NotFound("this organisation has no single sign-on")
    found = services.identity_found(provider, begun, code=code, redirect_uri=redirect_uri)
    if purpose == single_sign_on.JOIN:
        services.invited_join(asked=provider, begun=begun, identity=found)
        messages.success(request, f"You are a member of {provider.organisation.name} now.")
    link = services.member_signed_in(provider=provider, subject=found.subject)
    attempts.attempt_succeeded(email="", address=address_of(request), what=ASKED)
    request.session.flush()  # what it held was a stranger's
    login(request, link.membership.user, backend=BACKEND)
    request.session[single_sign_on.MARK] = {"link": link.pk, "organisation": link.organisation_id}
    request.session.set_expiry(single_sign_on.LASTS)
    request.session[LAST_ORGANISATION] = link.organisation_id
    return to_first_page(request, link.membership.user, link.organisation_id)


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("client_secret")
@own_page
@proof_asked
def shown(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Owners set it; each member connects their own account. Which of the forms was sent, its button says."""
    does = request.POST.get("do", "")
    is_by_sso = single_sign_on.is_by_sso(request)
    selectors.connect_check(caller, is_by_sso=is_by_sso)
    may_manage = caller.may_manage and selectors.provider_keeping_out(caller, is_by_sso=is_by_sso) is None
    if request.method == "POST" and does not in ("connect", "disconnect") and not may_manage:
        selectors.entry_check(caller, is_by_sso=is_by_sso)
        raise Forbidden("only owners of the organisation decide this")
    provider = selectors.provider_of(caller.organisation)
    known = {} if provider is None else {name: getattr(provider, name) for name in ("issuer", "client_id", "label")}
    form = ProviderForm(request.POST if does == "set" else None, initial=known)
    way, status = "", 200
    place = {"organisation": caller.organisation, "actor": caller.actor}
    try:
        if does == "set" and form.is_valid():
            services.provider_set(**place, **form.cleaned_data)
            messages.success(request, "Saved. Connect your own account now to test it.")
            return redirect("console:organisation_sso", caller.organisation.id)
        if does == "switch":
            is_on = "is_on" in request.POST
            services.provider_switch(**place, is_on=is_on, is_required=is_on and "is_required" in request.POST)
        if does == "remove":
            services.provider_remove(**place)
        if does == "disconnect":
            services.member_disconnect(organisation=caller.organisation, user=caller.person)
        if does == "connect":
            way = _connecting(request, provider)
    except SluiceError as error:
        form.refuse(error) if does == "set" else messages.error(request, said(error))
        status = error.http_status
    if form.errors and status in (200, 400):
        status = 422
    if does in ("switch", "remove", "disconnect"):
        return redirect("console:organisation_sso", caller.organisation.id)
    return _page(request, caller, form, way, status, may_manage=may_manage)


def _connecting(request: HttpRequest, provider: SsoProvider | None) -> str:
    if provider is None:
        raise NotFound("this organisation has no single sign-on")
    if single_sign_on.is_by_sso(request):
        raise Forbidden("sign in by your password to connect another account", code="sso_session")
    return single_sign_on.way(request, provider, single_sign_on.CONNECT)


def _page(
    request: HttpRequest, caller: Caller, form: ProviderForm, way: str, status: int, *, may_manage: bool
) -> HttpResponse:
    provider = selectors.provider_of(caller.organisation)
    context = {
        "may_manage": may_manage,
        "form": form,
        "provider": provider,
        "owners_without": selectors.owners_without(provider) if provider is not None and may_manage else [],
        "link": selectors.link_of(organisation=caller.organisation, user=caller.person),
        "way": way,
        "installed": bool(installed.places()),
        "is_by_sso": single_sign_on.is_by_sso(request),
        "back": own_address("console:sso_back", caller.organisation.id),
        "entry": own_address("console:sign_in_sso") + f"?organisation={caller.organisation.id}",
    }
    return render(request, "console/organisation_sso.html", context, status=status)
