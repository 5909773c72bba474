"""One page without sign-in: what this is and where its API is."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def landing(request: HttpRequest) -> HttpResponse:
    """/."""
    return render(request, "console/landing.html", {"origin": request.build_absolute_uri("/").rstrip("/")})
