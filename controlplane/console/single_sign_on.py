"""A session that an organisation's provider has begun acts in that organisation, and nowhere else.

What it may open is a list: pages of that organisation, and a few that are nobody's. Everything else is closed, pages to come
too: the account of the person (password, passkeys, second factor, address), other organisations, operators' pages. The link by
which it came is looked up at each request: with the membership, the link or the provider the session ends.
"""

from __future__ import annotations

import secrets
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.contrib.auth import logout
from django.db import transaction
from django.shortcuts import redirect

from controlplane.accounts.identity.engine import stored_key
from controlplane.accounts.identity.links import address_of as own_address
from controlplane.accounts.key_rules import SSO_LASTS
from controlplane.accounts.models import Session
from controlplane.console.page import SSO
from controlplane.console.views.errors import error_page
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import Forbidden, Invalid, NotFound
from controlplane.sso import services
from controlplane.sso.selectors import link_held, link_standing
from controlplane.sso.services import Begun

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse

    from controlplane.sso.models import SsoProvider

MARK = SSO  # in a session that was begun so: the link, and the organisation
WITHIN = timedelta(minutes=10)
LASTS = timedelta(hours=12)
"""Such a session, whatever is done in it: the provider is asked again, and whoever is out there is out here."""
ANYWHERE = {"home", "prices", "sign_in", "sign_out", "theme", "language", "passkey_challenge"}
SIGN_IN, CONNECT, JOIN = "sign_in", "connect", "join"
_STATE = "sso_begun"
_BYTES = 32


def way(request: HttpRequest, provider: SsoProvider, purpose: str, invitation_id: str = "") -> str:
    """A link of the page, not a redirect: a form may lead nowhere but to this site (Content-Security-Policy)."""
    begun = begin(request, provider, purpose, invitation_id)
    return services.way_to(provider, begun, redirect_uri=own_address("console:sso_back", begun.organisation_id))


def begin(request: HttpRequest, provider: SsoProvider, purpose: str, invitation_id: str = "") -> Begun:
    """Kept in the session until the person is back, for ten minutes, once; one of before is worth nothing.

    `invitation_id`: whose link they have opened, to be accepted.
    """
    begun = Begun(
        organisation_id=provider.organisation_id,
        issuer=provider.issuer,
        client_id=provider.client_id,
        state=secrets.token_urlsafe(_BYTES),
        nonce=secrets.token_urlsafe(_BYTES),
        verifier=secrets.token_urlsafe(_BYTES),
        invitation_id=invitation_id,
    )
    at = SYSTEM_CLOCK.now().isoformat()
    request.session[_STATE] = {"for": purpose, "at": at, "user": request.user.pk, "begun": asdict(begun)}
    return begun


def back(request: HttpRequest, state: str) -> tuple[str, Begun]:
    """For what, and which. Taken out of the session's row under a lock: sent twice, it is found once. Raises Invalid."""
    key = request.session.session_key
    with transaction.atomic():
        row = Session.objects.select_for_update().filter(pk=stored_key(key)).first() if key else None
        kept: dict[str, Any] | None = row.get_decoded().get(_STATE) if row is not None else None
        if kept is not None:
            request.session.pop(_STATE, None)
            request.session.save()
    if (
        kept is None
        or SYSTEM_CLOCK.now() - datetime.fromisoformat(kept["at"]) >= WITHIN
        or kept["user"] != request.user.pk
        or not secrets.compare_digest(kept["begun"]["state"].encode(), state.encode())
    ):
        raise Invalid("this sign-in took too long, or was begun elsewhere: begin anew", code="sso_state")
    return kept["for"], Begun(**kept["begun"])


def is_by_sso(request: HttpRequest) -> bool:
    """Whether a provider has begun this session."""
    return MARK in request.session


def keys_until(request: HttpRequest) -> datetime | None:
    """For how long a key is good at first that this session makes; None: as long as any. Within the caller's transaction.

    The link stays until that has ended, so that whoever ends it misses no key. Raises Forbidden: it has ended meanwhile.
    """
    mark = request.session.get(MARK)
    if mark is None:
        return None
    if link_held(mark["link"], request.user.pk) is None:
        raise Forbidden("single sign-on has ended meanwhile: sign in again", code="sso_session")
    return SYSTEM_CLOCK.now() + SSO_LASTS


class SingleSignOnMiddleware:
    """Behind the one that knows who is signed in."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Pass on."""
        return self._get_response(request)

    def process_view(self, request: HttpRequest, _view: Any, _args: Any, names: dict[str, Any]) -> HttpResponse | None:
        """What is to be answered instead, if anything. Other addresses than the console's know no sessions."""
        match = request.resolver_match
        if match is None or match.app_name != "console":
            return None
        mark = request.session.get(MARK)
        if mark is None or not request.user.is_authenticated:
            return None
        if link_standing(mark["link"], request.user.pk) is None:
            logout(request)
            return redirect("console:sign_in")
        if "organisation_id" in names:
            if names["organisation_id"] == mark["organisation"]:
                return None
            return error_page(request, NotFound(f"no organisation {names['organisation_id']}"))
        if match.url_name in ANYWHERE:
            return None
        return error_page(
            request,
            Forbidden("you are signed in by your organisation: sign in by your password for this", code="sso_session"),
        )
