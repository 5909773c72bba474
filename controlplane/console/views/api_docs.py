"""The reference of REST, from the published schema, to be read and tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.shortcuts import render
from django.views.decorators.http import require_safe

from controlplane.console.middleware import CONTENT_SECURITY_POLICY

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

POLICY = CONTENT_SECURITY_POLICY.replace("img-src 'self'", "img-src 'self' data:")
"""The arrows of Swagger UI are images within its stylesheet."""


@require_safe
def shown(request: HttpRequest) -> HttpResponse:
    """Swagger UI over /api/v1/schema. Anybody may read it, as the schema itself."""
    page = render(request, "console/api_docs.html")
    page.headers["Content-Security-Policy"] = POLICY
    return page
