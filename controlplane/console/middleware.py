"""Around every answer: security headers. Around every page: our errors as a page, where REST shows them as JSON.

The policy allows nothing but our own files: no inline script, no inline style, no other host, no framing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.console.views.errors import API_PREFIX, error_page
from controlplane.core.errors import SluiceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)


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
