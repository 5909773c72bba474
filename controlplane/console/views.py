"""One page without sign-in: what this is and where its API is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.shortcuts import render

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


def landing(request: HttpRequest) -> HttpResponse:
    """/."""
    return render(request, "console/landing.html", {"origin": request.build_absolute_uri("/").rstrip("/")})
