"""One's own account: name and password."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from controlplane.accounts import attempts, services
from controlplane.accounts.identity import passwords, sessions
from controlplane.console import known_browser
from controlplane.console.forms.accounts import NameForm, PasswordForm
from controlplane.console.page import signed_in
from controlplane.core.errors import Invalid, SluiceError, TooManyAttempts
from controlplane.core.origin import address_of
from controlplane.mail import outbox

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

NAME, PASSWORD = "name", "password"


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("current", "password")
@signed_in
def shown(request: HttpRequest) -> HttpResponse:
    """What one is called, and how one signs in. Which of the two forms was sent, its button says."""
    sent = request.POST.get("change")
    called = NameForm(request.POST if sent == NAME else None, initial={"name": request.user.name})
    secret = PasswordForm(request.POST if sent == PASSWORD else None)
    change = {NAME: (called, _rename), PASSWORD: (secret, _change_password)}.get(sent or "")
    status, wait_s = 200, 0
    if change is not None:
        form, carry_out = change
        if form.is_valid():
            try:
                carry_out(request, form.cleaned_data)
            except SluiceError as error:
                form.refuse(error)
                status = error.http_status
                if isinstance(error, TooManyAttempts):
                    wait_s = error.retry_after_s
            else:
                answer = redirect("console:account")
                return known_browser.remember(request, answer, request.user) if sent == PASSWORD else answer
        if form.errors and status in (200, 400):
            status = 422
    context = {"called": called, "secret": secret, "is_mailing": outbox.is_on()}
    page = render(request, "console/account.html", context, status=status)
    if wait_s:
        page.headers["Retry-After"] = str(wait_s)
    return page


def _rename(request: HttpRequest, typed: dict[str, str]) -> None:
    services.user_rename(user=request.user, name=typed["name"])
    messages.success(request, "Your name was changed.")


def _change_password(request: HttpRequest, typed: dict[str, str]) -> None:
    """Tries at the password of today are counted as proofs are: a session that was left open is no way to it.

    Not with those of signing in: a stranger who guesses at the door must not keep the person from changing what they guess at.
    """
    user = request.user
    counted = {"email": user.email, "address": address_of(request), "what": attempts.PROOF}
    keeps_wrong = user.second_factor_at is not None  # codes are counted beside it: console/proof.py
    attempts.attempt_begin(**counted)
    try:
        passwords.password_change(user=user, current=typed["current"], new=typed["password"])
    except Invalid as error:
        if "current" not in {problem.field for problem in error.errors}:  # it was right: the new one will not do
            attempts.attempt_succeeded(**counted, keeps_wrong=keeps_wrong)
        raise
    attempts.attempt_succeeded(**counted, keeps_wrong=keeps_wrong)
    update_session_auth_hash(request, user)
    sessions.sessions_end(user=user, but=request.session.session_key)
    messages.success(request, "Your password was changed. All your other sessions have ended; API keys go on working.")
