"""Where one is signed in, and the end of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from controlplane.accounts.identity import sessions
from controlplane.console.page import signed_in

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def listed(request: HttpRequest) -> HttpResponse:
    """All of one's sessions; one or all others are ended by a button."""
    if request.method == "POST":
        return _ended(request)
    context = {"sessions": sessions.session_list(user=request.user, key=request.session.session_key or "")}
    return render(request, "console/sessions.html", context)


def _ended(request: HttpRequest) -> HttpResponse:
    if "others" in request.POST:
        ended = sessions.sessions_end(user=request.user, but=request.session.session_key)
        told = (
            ("1 other session has ended." if ended == 1 else f"{ended} other sessions have ended.")
            if ended
            else "There was no other session."
        )
    else:
        sessions.session_end(user=request.user, session=request.POST.get("session", ""))
        told = "The session has ended."
    messages.success(request, told)
    return redirect("console:sessions")
