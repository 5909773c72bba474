"""Passkeys of one's account: listed, added, removed; and challenges, which the browser fetches first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from controlplane.accounts.identity import passkeys, second_factor, sessions
from controlplane.console import challenges, passkey_tries, signing_in
from controlplane.console.advice import said
from controlplane.console.forms.accounts import PasskeyForm
from controlplane.console.page import SSO, signed_in
from controlplane.console.proof import factor_asked, is_proved, proved
from controlplane.core.errors import Conflict, Forbidden, Invalid, SluiceError

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@require_POST
@never_cache
def challenge(request: HttpRequest) -> HttpResponse:
    """What `navigator.credentials` takes, as JSON; or `problem`, a sentence."""
    try:
        return JsonResponse(_options(request, request.POST.get("purpose", "")))
    except SluiceError as error:
        answer = JsonResponse({"problem": said(error)}, status=error.http_status)
        if getattr(error, "retry_after_s", 0):
            answer.headers["Retry-After"] = str(error.retry_after_s)  # type: ignore[attr-defined]
        return answer


def _options(request: HttpRequest, purpose: str) -> dict[str, Any]:
    value, user = challenges.made(), request.user
    if purpose == challenges.SIGN_IN and not user.is_authenticated:
        passkey_tries.challenge_count(request)
        options = passkeys.asking_options(user=None, challenge=value)
    elif purpose == challenges.SECOND and not user.is_authenticated and (waiting := signing_in.waiting(request)):
        options = passkeys.asking_options(user=waiting[0], challenge=value)
    elif purpose == challenges.PROOF and user.is_authenticated:
        options = passkeys.asking_options(user=user, challenge=value)
    elif purpose == challenges.ADD and user.is_authenticated and SSO not in request.session:
        if not is_proved(request, by_factor=True):
            raise Forbidden("you signed in a while ago: load the page again, and confirm that it is you")
        options = passkeys.adding_options(user=user, challenge=value)
        challenges.keep(request, purpose, value, options["user"]["id"])
        return options
    else:
        raise Invalid("load the page again: you have signed in or out meanwhile")
    challenges.keep(request, purpose, value)
    return options


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
@factor_asked
def listed(request: HttpRequest) -> HttpResponse:
    """All of one's passkeys; which of the forms was sent, its button says."""
    if "remove" in request.POST:
        return _remove(request)
    if "passkey" in request.POST:
        return _add(request)
    return _page(request)


def _add(request: HttpRequest) -> HttpResponse:
    form = PasskeyForm(request.POST)
    if not form.is_valid():
        return _page(request, form=form, status=422)
    try:
        taken = challenges.taken(request, challenges.ADD)
        _, codes = passkeys.passkey_add(
            user=request.user,
            name=form.cleaned_data["name"],
            challenge=taken.value,
            handle=taken.handle,
            text=request.POST["passkey"],
        )
    except SluiceError as error:
        form.refuse(error)
        return _page(request, form=form, status=422 if error.http_status == 400 else error.http_status)
    proved(request, by_factor=True)
    messages.success(request, "The passkey was added.")
    if codes:
        # They began with the password alone: whoever has no more than that is not to stay in by one.
        sessions.sessions_end(user=request.user, but=request.session.session_key)
        return _page(request, codes=codes)
    return redirect("console:passkeys")


def _remove(request: HttpRequest) -> HttpResponse:
    try:
        passkeys.passkey_remove(
            user=request.user, passkey_id=request.POST["remove"], may_be_last=request.POST.get("last") == "1"
        )
    except Conflict as error:
        messages.error(request, said(error))
    else:
        messages.success(request, "The passkey was removed.")
    return redirect("console:passkeys")


def _page(
    request: HttpRequest, *, form: PasskeyForm | None = None, codes: list[str] | None = None, status: int = 200
) -> HttpResponse:
    context = {
        "form": form or PasskeyForm(),
        "codes": codes,
        "passkeys": passkeys.passkey_list(user=request.user),
        "is_only_factor": passkeys.is_only_factor(user=request.user),
        "left": second_factor.recovery_left(user=request.user),
        "passkeys_are_on": passkeys.is_on(),
        "is_adding": is_proved(request, by_factor=True),
    }
    return render(request, "console/passkeys.html", context, status=status)
