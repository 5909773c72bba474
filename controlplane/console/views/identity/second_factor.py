"""The second factor of one's account: set up, recovery codes, switched off. And what an organisation demands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_http_methods, require_POST

from controlplane.accounts.identity import passkeys, second_factor, sessions, totp
from controlplane.console.advice import said
from controlplane.console.forms.accounts import CodeForm
from controlplane.console.page import owners_page, signed_in
from controlplane.console.proof import factor_asked, proof_asked, proved
from controlplane.core.errors import Conflict, SluiceError, Unavailable
from controlplane.organisations import ownership

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from controlplane.accounts.models import User
    from controlplane.accounts.selectors import Caller


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
@factor_asked
def shown(request: HttpRequest) -> HttpResponse:
    """Which of the forms was sent, its button says. Codes are in the answer to the form, and on no page after it."""
    act = {"begin": _begin, "confirm": _confirm, "renew": _renew, "remove": _remove}.get(request.POST.get("do", ""))
    if act is not None:
        return act(request)
    return _page(request)


def _begin(request: HttpRequest) -> HttpResponse:
    second_factor.enrol_begin(user=request.user)
    return redirect("console:second_factor")


def _confirm(request: HttpRequest) -> HttpResponse:
    form = CodeForm(request.POST)
    if form.is_valid():
        try:
            codes = second_factor.enrol_confirm(user=request.user, code=form.cleaned_data["code"])
        except SluiceError as error:
            form.refuse(error)
        else:
            proved(request, by_factor=True)
            # They began with the password alone: whoever has no more than that is not to stay in by one.
            ended = sessions.sessions_end(user=request.user, but=request.session.session_key)
            if ended:
                said = "Your other session has ended." if ended == 1 else "Your other sessions have ended."
                messages.success(request, said)
            return _page(request, codes=codes)
    return _page(request, form=form, status=422)


def _renew(request: HttpRequest) -> HttpResponse:
    return _page(request, codes=second_factor.recovery_renew(user=request.user))


def _remove(request: HttpRequest) -> HttpResponse:
    second_factor.second_factor_remove(user=request.user)
    messages.success(
        request,
        "The second factor was switched off. You sign in by your password alone."
        if request.user.second_factor_at is None
        else "Your app makes no codes for you any more. Your passkeys are your second factor.",
    )
    return redirect("console:second_factor")


def _page(
    request: HttpRequest, *, form: CodeForm | None = None, codes: list[str] | None = None, status: int = 200
) -> HttpResponse:
    user = request.user
    context: dict[str, Any] = {"form": form or CodeForm(), "codes": codes, "is_on": second_factor.app_is_on(user)}
    context["has_passkeys"] = bool(passkeys.passkey_list(user=user))
    context["left"] = second_factor.recovery_left(user=user)
    if not context["is_on"] and (secret := _set_up(user)) is not None:
        svg = totp.qr_svg(totp.setup_uri(secret, email=user.email))
        context["secret"] = totp.typed_secret(secret)
        context["qr"] = mark_safe(svg)  # noqa: S308  # drawn by us: squares, and no text of anybody
    return render(request, "console/second_factor.html", context, status=status)


def _set_up(user: User) -> str | None:
    """The secret of a second factor that is being set up. One whose key is lost is begun anew."""
    try:
        return second_factor.secret_of(user)
    except Unavailable:
        return None


@require_POST
@owners_page
@proof_asked
def demand(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Every member needs one from now on, or none does any more."""
    demanded = request.POST.get("demanded") == "1"
    try:
        ownership.second_factor_demand(organisation=caller.organisation, by=caller.person, demanded=demanded)
    except Conflict as error:
        messages.error(request, said(error))
    else:
        told = "Members without a second factor have no access to the organisation now, not even by API key."
        messages.success(
            request, told if demanded else "Members choose for themselves now whether to use a second factor."
        )
    return redirect("console:members", caller.organisation.id)
