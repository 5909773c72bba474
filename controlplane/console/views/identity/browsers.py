"""Kept out by tries of others: the link that lets this browser try is asked for, and used.

What is said is the same whether there is an account or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.contrib import messages
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods

from controlplane.accounts.identity import browsers
from controlplane.console import known_browser
from controlplane.console.views.accounts import own_address
from controlplane.console.views.identity.passwords import asked_by_mail

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

ASKED = "browser"
"""What is counted by address."""
NEXT = "sign_in_link_next"
"""In the session: where somebody was going when they asked. The link may be opened in another browser, which does not know."""


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def asked(request: HttpRequest) -> HttpResponse:
    """Whose account it is."""
    following = own_address(request, request.POST.get("next") or request.GET.get("next"))

    def ask(email: str) -> None:
        browsers.browser_ask(email=email)
        if following != reverse("console:home"):
            request.session[NEXT] = following

    return asked_by_mail(request, "console/sign_in_link.html", what=ASKED, ask=ask, next=following)


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_variables("token")
@never_cache
def used(request: HttpRequest, token: str) -> HttpResponse:
    """Looking does nothing: programs that look into mails follow links, too. Nobody is signed in by it."""
    link = browsers.browser_find(token=token)
    if request.method == "POST":
        user = browsers.browser_use(token=token)
        messages.success(request, "This browser has tries of its own now. Sign in with your password.")
        following, address = request.session.pop(NEXT, ""), reverse("console:sign_in")
        there = f"{address}?{urlencode({'next': following})}" if following else address
        return known_browser.remember(request, redirect(there), user)
    return render(request, "console/sign_in_browser.html", {"link": link})
