"""What is dangerous is done by whoever has shown within 15 minutes that it is them: by the password, a code or a passkey.

Dangerous is what does not come back, and what lets others in: what they have read meanwhile does not come back, either.

Signing in is such a proof. Where it is too long ago, the answer to a form is a page that asks, with what was typed in it. The
proof is sent to where the form was, and the view goes on as if nothing had been asked. It is for people in front of the
console: a key is its own proof.

Whoever has a second factor shows that one where factors are added and removed: whoever sits at a session that was left open and
has guessed the password is not to switch off what the password alone does not get past.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.debug import sensitive_post_parameters

from controlplane.accounts import attempts
from controlplane.accounts.identity import passkeys
from controlplane.accounts.identity.engine import BEGUN
from controlplane.accounts.identity.proving import proof_check, proofs_used_up
from controlplane.console import challenges, passkey_tries
from controlplane.console.advice import said
from controlplane.console.forms.accounts import ProofForm
from controlplane.console.page import SSO
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import Invalid, SluiceError, TooManyAttempts

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.models import User

VALID_FOR = timedelta(minutes=15)
PROVED, PROVED_BY_FACTOR = "proved_at", "proved_by_factor_at"  # in the session
SAFE = ("GET", "HEAD", "OPTIONS")
NOT_CARRIED = ("csrfmiddlewaretoken", "proof", "proof_passkey", "proof_back")


def proof_asked(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Around a view whose forms are dangerous, inside the decorator that says who may open it."""
    return proof_asked_where(lambda _request: True)(view)


def factor_asked(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """The same of a view that adds or removes factors: whoever has a second factor shows that it is them by it."""
    return proof_asked_if(lambda *_args, **_names: True, by_factor=True)(view)


def proof_asked_where(
    is_meant: Callable[[HttpRequest], bool],
) -> Callable[[Callable[..., HttpResponse]], Callable[..., HttpResponse]]:
    """The same, of a view of which some forms alone are dangerous: those of which `is_meant` is true.

    It has to ask exactly what the view asks to tell its forms apart: a request that names two buttons at once must not do
    here the one and there the other. The view's `asks_proof` says that it asks, for the test that knows all pages.
    """
    return proof_asked_if(lambda request, *_args, **_names: is_meant(request))


def proof_asked_if(
    is_meant: Callable[..., bool], *, by_factor: bool = False
) -> Callable[[Callable[..., HttpResponse]], Callable[..., HttpResponse]]:
    """The same where it depends on what there is now: `is_meant` is given all that the view is given."""

    def around(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        @wraps(view)
        @sensitive_post_parameters("proof")
        def page(request: HttpRequest, *args: Any, **names: Any) -> HttpResponse:
            if (
                request.method in SAFE
                or is_proved(request, by_factor=by_factor)
                or not is_meant(request, *args, **names)
            ):
                return view(request, *args, **names)
            return _asked(request, by_factor=by_factor) or view(request, *args, **names)

        page.asks_proof = True  # type: ignore[attr-defined]
        return page

    return around


def is_proved(request: HttpRequest, *, by_factor: bool = False) -> bool:
    """Whether it is not too long ago. A provider may sign in whoever sits at an open browser: that is no proof.

    `by_factor`: by the second factor of whoever has one. A session that began since they have it began with it.
    """
    since = request.user.second_factor_at if by_factor else None
    text = request.session.get(PROVED if since is None else PROVED_BY_FACTOR)
    if text is None and SSO not in request.session:
        text = request.session.get(BEGUN)
        if text and since is not None and datetime.fromisoformat(text) < since:
            return False
    return bool(text) and SYSTEM_CLOCK.now() - datetime.fromisoformat(text) < VALID_FOR


def proved(request: HttpRequest, *, by_factor: bool) -> None:
    """It was shown just now that it is them: the session knows it. What is shown by a factor counts everywhere."""
    for name in (PROVED, PROVED_BY_FACTOR) if by_factor else (PROVED,):
        request.session[name] = SYSTEM_CLOCK.now().isoformat()


def _asked(request: HttpRequest, *, by_factor: bool) -> HttpResponse | None:
    """The page that asks; None: what was typed is right, and the session knows it."""
    by_factor = by_factor and request.user.second_factor_at is not None
    form = ProofForm(request.POST if "proof" in request.POST else None, user=request.user, by_factor=by_factor)
    status, wait_s = 200, 0
    passkey_problem = ""
    if "proof_passkey" in request.POST:
        try:
            passkey_tries.checked(request, challenges.PROOF, request.POST["proof_passkey"], request.user)
        except SluiceError as error:
            passkey_problem, status = said(error), error.http_status
            wait_s = error.retry_after_s if isinstance(error, TooManyAttempts) else 0
        else:
            proved(request, by_factor=True)
            return None
    elif form.is_bound and form.is_valid():
        try:
            is_code = _check(request, form.cleaned_data["proof"], by_factor=by_factor)
        except SluiceError as error:
            form.refuse(error)
            status = error.http_status
            if isinstance(error, TooManyAttempts):
                wait_s = error.retry_after_s
        else:
            proved(request, by_factor=is_code)
            return None
    if form.errors and status in (200, 400):
        status = 422
    carried = [(name, value) for name, values in request.POST.lists() if name not in NOT_CARRIED for value in values]
    context = {
        "form": form,
        "carried": carried,
        "by_factor": by_factor,
        "has_passkeys": bool(passkeys.passkey_list(user=request.user)),
        "has_no_password": SSO in request.session and not _has_a_text(request.user),
        "passkey_problem": passkey_problem,
        "back": _back(request),
    }
    page = render(request, "console/proof.html", context, status=status)
    if wait_s:
        page.headers["Retry-After"] = str(wait_s)
    return page


def _back(request: HttpRequest) -> str:
    """Where the form was, as an address of ours without its host; empty: the browser has not said it.

    While the proof is tried again the page before is the one that asks: then the address that was sent along stays.
    """
    address, ours = request.POST.get("proof_back") or request.headers.get("Referer", ""), {request.get_host()}
    if not url_has_allowed_host_and_scheme(address, ours, require_https=request.is_secure()):
        return ""
    parts = urlsplit(address)
    found = parts.path + (f"?{parts.query}" if parts.query else "")
    # Once more without the host: a path that begins with two slashes would name another one.
    return found if url_has_allowed_host_and_scheme(found, ours, require_https=request.is_secure()) else ""


def _has_a_text(user: User) -> bool:
    """Whether there is anything to type: who has joined by an organisation's provider has chosen no password at first."""
    return user.has_usable_password() or user.second_factor_at is not None


def _check(request: HttpRequest, text: str, *, by_factor: bool) -> bool:
    """Whether it was a code. Tries are counted: a session that was left open is no way to the password."""
    counted, email = passkey_tries.proof_counted(request), request.user.email
    attempts.attempt_begin(**counted)
    by_provider = attempts.by_provider_begin(email=email) if SSO in request.session else 0
    try:
        only_in = passkey_tries.proof_told_in(request)
        is_code = proof_check(user=request.user, text=text, by_factor=by_factor, only_in=only_in)
    except Invalid:
        if by_provider >= attempts.MOST_BY_PROVIDERS:
            proofs_used_up(user=request.user)
        raise
    attempts.attempt_succeeded(**counted, keeps_wrong=not is_code and request.user.second_factor_at is not None)
    if by_provider:
        attempts.by_provider_succeeded(email=email)
    return is_code
