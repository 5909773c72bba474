"""A forgotten password: the link is asked for, and used. What is said is the same whether there is an account or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from controlplane.accounts import attempts
from controlplane.accounts.identity import passwords
from controlplane.console import known_browser
from controlplane.console.forms.accounts import ForgottenForm, ResetForm
from controlplane.core.errors import Invalid, TooManyAttempts
from controlplane.core.origin import address_of
from controlplane.mail import outbox

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def forgotten(request: HttpRequest) -> HttpResponse:
    """Whose password it is."""
    return asked_by_mail(request, "console/password_forgotten.html", what="reset", ask=passwords.reset_ask)


def asked_by_mail(
    request: HttpRequest, template: str, *, what: str, ask: Callable[..., None], **shown: str
) -> HttpResponse:
    """A page that sends a link to the address that is typed, so often from one place; `what`: under which these are counted."""
    form = ForgottenForm(request.POST or None)
    context = {"form": form, "is_mailing": outbox.is_on(), "sent_to": "", **shown}
    status = 200
    if request.method == "POST" and form.is_valid() and context["is_mailing"]:
        try:
            attempts.asked(what=what, address=address_of(request))
            ask(email=form.cleaned_data["email"])
            context["sent_to"] = form.cleaned_data["email"]
        except TooManyAttempts as error:
            form.refuse(error)
            status = error.http_status
    if form.errors and status == 200:
        status = 422
    return render(request, template, context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_variables("token")
@sensitive_post_parameters("password")
@never_cache
def reset(request: HttpRequest, token: str) -> HttpResponse:
    """Choose another one. Nobody is signed in by a link: whoever has a second factor is asked for it as ever."""
    link = passwords.reset_find(token=token)
    form = ResetForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            user = passwords.reset_use(token=token, **form.cleaned_data)
        except Invalid as error:
            form.refuse(error)
        else:
            messages.success(
                request, "Your password was changed, and all sessions have ended. Sign in with the new one."
            )
            return known_browser.remember(request, redirect("console:sign_in"), user)
    return render(
        request, "console/password_reset.html", {"form": form, "link": link}, status=422 if form.errors else 200
    )
