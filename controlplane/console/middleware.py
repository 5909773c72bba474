"""Around every answer: its language, and security headers. Around every page: our errors as a page, which REST shows as JSON.

The policy allows nothing but our own files: no inline script, no inline style, no other host, no framing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.middleware.locale import LocaleMiddleware
from django.utils import translation

from controlplane.console.views.errors import API_PREFIX, error_page
from controlplane.core.errors import SluiceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse
    from django.http.response import HttpResponseBase

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)


ENGLISH = (API_PREFIX, "/compat/", "/metrics")
"""Addresses of programs: what they are told depends on no browser and no cookie."""


class LanguageMiddleware(LocaleMiddleware):
    """Pages in the language of the cookie, or of Accept-Language; what programs ask for, in English.

    Stands before everything that may answer: the language belongs to the thread and outlives a request.
    """

    def process_request(self, request: HttpRequest) -> None:
        """Choose."""
        if request.path_info.startswith(ENGLISH):
            translation.activate(settings.LANGUAGE_CODE)
        else:
            super().process_request(request)

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Say which it is, to people and to caches between."""
        if request.path_info.startswith(ENGLISH):
            return response
        return super().process_response(request, response)


class ConsoleMiddleware:
    """Adds the headers, and turns our errors into pages; addresses of REST keep their JSON."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Pass on, and add headers."""
        response = self._get_response(request)
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        response.headers.setdefault("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
        return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """A page for an error that its view did not answer itself."""
        if isinstance(error, SluiceError) and not request.path.startswith(API_PREFIX):
            return error_page(request, error)
        return None
