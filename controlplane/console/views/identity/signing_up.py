"""The link of a mail to whoever has signed up: the password is chosen here, and there is an account."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.contrib.auth import login
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from controlplane.accounts import joining
from controlplane.accounts.identity import signing_up
from controlplane.console import known_browser
from controlplane.console.forms.accounts import SignUpConfirmForm
from controlplane.console.views.accounts import BACKEND
from controlplane.core.errors import AlreadyExists, Invalid
from controlplane.core.wording import of_page

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_variables("token")
@sensitive_post_parameters("password")
@never_cache
def confirm(request: HttpRequest, token: str) -> HttpResponse:
    """Looking does nothing: programs that look into mails follow links, too, and fill in no form."""
    asked = signing_up.find(token=token)
    form = SignUpConfirmForm(request.POST or None, asked=asked)
    if request.method == "POST" and form.is_valid():
        try:
            user, organisation = joining.sign_up_confirm(token=token, **form.cleaned_data, language=of_page())
        except (AlreadyExists, Invalid) as error:
            form.refuse(error)
        else:
            login(request, user, backend=BACKEND)
            if organisation is not None:
                return known_browser.remember(request, redirect("console:instances", organisation.id), user)
            messages.success(
                request, "You have an account now. Open the link of the invitation once more to join by it."
            )
            return known_browser.remember(request, redirect("console:account"), user)
    context = {"form": form, "asked": asked}
    return render(request, "console/sign_up_confirm.html", context, status=422 if form.errors else 200)
