"""Who may open a page: one decorator for tenants' pages, one for operators'.

A tenant's view is called as ``view(request, caller, **ids)``; the caller is the signed-in person in the organisation that
the address names. Another organisation's address is not found, by anyone. Viewers may look, but not change anything; pages that
decide on people are their owners' to change. What a role of the organisation's own opens is asked of the same table as REST
(places.py).
"""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.cache import never_cache

from controlplane.accounts.denials import denial_note
from controlplane.accounts.selectors import Caller, caller_in
from controlplane.accounts.standing import member_check
from controlplane.console.advice import said
from controlplane.console.places import deletes, first_page, rest_of, scope_of_page
from controlplane.core.errors import Forbidden, NotFound, SluiceError
from controlplane.core.origin import current, without_sums
from controlplane.core.staff_views import view_note
from controlplane.sso.selectors import entry_check, link_of, provider_keeping_out
from controlplane.tenants import in_use

if TYPE_CHECKING:
    from collections.abc import Callable

    from controlplane.accounts.models import User
    from controlplane.core.scope import Tenant

SAFE = ("GET", "HEAD", "OPTIONS")
SSO = "sso"  # in the session: a provider has begun it (single_sign_on.py)
LAST_ORGANISATION = "organisation"  # in the session: where "/" leads


def tenant_page(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Everyone in the organisation may look; all but viewers may change things."""
    return _tenant_page(view, lambda caller: caller.may_change, "viewers may look, but not change anything")


def own_page(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """What each member does for themselves, whatever their role, and before single sign-on lets them in.

    The view asks for itself who does anything else.
    """
    return _tenant_page(view, lambda _caller: True, "", is_own=True)


def end_page(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """The one page of an organisation that is marked for deletion: all members are shown that, whatever their role; owners act.

    Of one that is in use it is a page as `owners_page` makes them.
    """
    return _tenant_page(
        view, lambda caller: caller.may_manage, "only owners of the organisation decide this", is_end=True
    )


def owners_page(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Everyone in the organisation looks; owners change."""
    return _tenant_page(view, lambda caller: caller.may_manage, "only owners of the organisation decide this")


def billing_page(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Everyone looks who may; owners and billing change."""
    refusal = "only owners of the organisation and its billing role decide this"
    return _tenant_page(view, lambda caller: caller.may_manage_billing, refusal)


def staff_page(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Operators of the service. Nobody else learns that there is such a page."""

    @never_cache
    @wraps(view)
    def page(request: HttpRequest, **names: Any) -> HttpResponse:
        if not request.user.is_authenticated:
            return to_sign_in(request)
        if not request.user.is_staff:
            raise NotFound("there is nothing at this address")
        return view(request, **names)

    return page


def staff_looks(request: HttpRequest, organisation: Tenant, looked_at: str) -> None:
    """An operator's page shows something of one organisation, which is told so. What the page changes has entries of its own."""
    if request.method in SAFE:
        by: str = request.user.email  # type: ignore[union-attr]  # staff_page has looked
        view_note(organisation=organisation, by=by, looked_at=looked_at, place=request.path)


def signed_in(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """A page for whoever has signed in, in whichever organisation."""

    @never_cache
    @wraps(view)
    def page(request: HttpRequest, **names: Any) -> HttpResponse:
        return view(request, **names) if request.user.is_authenticated else to_sign_in(request)

    return page


def to_sign_in(request: HttpRequest) -> HttpResponse:
    """The way to the sign-in page and back. A part of a page that polls takes the whole page there."""
    here = request.get_full_path() if request.method in SAFE else "/"
    if getattr(request, "htmx", False):
        here = request.htmx.current_url_abs_path or "/"  # type: ignore[attr-defined]
    address = f"{reverse('console:sign_in')}?{urlencode({'next': here})}"
    if getattr(request, "htmx", False):
        return HttpResponse(status=204, headers={"HX-Redirect": address})
    return HttpResponseRedirect(address)


def to_first_page(request: HttpRequest, user: User, organisation_id: str) -> HttpResponse:
    """The way into an organisation for a member who has named no page of it: to one that is open to them.

    Where they lack the second factor that it requires, that is the page on which they set one up; where they are not connected
    to the single sign-on that it requires, the one on which they connect. Raises NotFound.
    """
    caller = caller_in(user=user, organisation_id=organisation_id)
    if not caller.organisation.is_in_use:
        return redirect("console:organisation_deletion", organisation_id)
    is_by_sso = SSO in request.session
    try:
        member_check(user, caller.organisation)
    except Forbidden as error:
        if not is_by_sso:  # whose session opens no page of the account
            messages.info(request, said(error))
            return redirect("console:second_factor")
    is_kept_out = provider_keeping_out(caller, is_by_sso=is_by_sso) is not None
    if is_kept_out and link_of(organisation=caller.organisation, user=user) is None:
        return redirect("console:organisation_sso", organisation_id)
    return redirect(f"console:{first_page(caller.limits)}", organisation_id)


def to_end(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Where all pages of an organisation that is marked for deletion lead. Raises Conflict for what would change something."""
    address = reverse("console:organisation_deletion", args=[caller.organisation.id])
    if getattr(request, "htmx", False):
        return HttpResponse(status=204, headers={"HX-Redirect": address})
    if request.method not in SAFE:
        in_use.check(caller.organisation)
    return HttpResponseRedirect(address)


def _tenant_page(
    view: Callable[..., HttpResponse],
    may_change: Callable[[Caller], bool],
    refusal: str,
    *,
    is_own: bool = False,
    is_end: bool = False,
) -> Callable[..., HttpResponse]:
    @never_cache
    @wraps(view)
    def page(request: HttpRequest, organisation_id: str, **names: Any) -> HttpResponse:
        if not request.user.is_authenticated:
            return to_sign_in(request)
        caller = caller_in(user=request.user, organisation_id=organisation_id)
        try:
            answer = admitted(request, caller, organisation_id, names)
        except SluiceError as error:
            denial_note(caller, error, way=str(request.method), target=request.path)
            raise
        refusal = current().refusal
        if refusal is not None:
            denial_note(caller, refusal, way=str(request.method), target=request.path)
        return answer

    def admitted(request: HttpRequest, caller: Caller, organisation_id: str, names: dict[str, Any]) -> HttpResponse:
        """Whoever is refused finds no page. Raises Forbidden, NotFound."""
        changes = request.method not in SAFE
        route = request.resolver_match.route if request.resolver_match else ""
        caller = replace(caller, page=scope_of_page(route))
        is_over = not caller.organisation.is_in_use
        if is_over and not is_end:
            return to_end(request, caller)
        if not (is_own or is_over):  # who is marked for deletion signs nobody in, and has one page
            entry_check(caller, is_by_sso=SSO in request.session)
        caller.admit(changes=changes)
        request.caller = caller  # type: ignore[attr-defined]  # shell.py draws the frame from it
        if not is_over and request.session.get(LAST_ORGANISATION) != organisation_id:
            request.session[LAST_ORGANISATION] = organisation_id
        if not caller.limits.sees_sums:
            without_sums()
        if not (is_own or is_over):
            caller.limits.admit(rest_of(route, changes=changes), names, changes=changes, deletes=deletes(route))
        if changes and not may_change(caller):
            raise Forbidden(refusal)
        return view(request, caller, **names)

    return page
