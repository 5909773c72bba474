"""What of REST is going away, and when: said in every answer of it, in the schema, and in the changelog.

A view names its methods that are deprecated::

    deprecations = {"GET": Deprecation(since=datetime(2027, 1, 4, tzinfo=UTC), sunset=datetime(2027, 9, 1, tzinfo=UTC))}

Then answers have ``Deprecation`` (RFC 9745, seconds since 1970 behind an @), ``Sunset`` (RFC 8594) and ``Link`` with the relation
``deprecation``, and the schema says ``deprecated: true``. The policy is in docs/subsystems/rest.md; what is shorter than it
promises is refused here, when the module is imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from django.urls import reverse
from django.utils.http import http_date

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from django.http import HttpRequest, HttpResponse

LEAST = timedelta(days=180)
"""Between the day when something is called deprecated and the one when it is gone."""


@dataclass(frozen=True, slots=True)
class Deprecation:
    """Of one method of an address."""

    since: datetime
    sunset: datetime  # from then on it may be gone

    def __post_init__(self) -> None:
        if self.sunset - self.since < LEAST:
            raise ValueError(f"what is deprecated stays for {LEAST.days} days at least")

    def headers(self) -> Mapping[str, str]:
        """Of every answer, refusals as well."""
        return {
            "Deprecation": f"@{int(self.since.timestamp())}",
            "Sunset": http_date(self.sunset.timestamp()),
            "Link": f'<{reverse("console:api_docs")}>; rel="deprecation"; type="text/html"',
        }


def of(view: object, method: str | None) -> Deprecation | None:
    """Whether this method of a view, or of its class, is deprecated."""
    found: Mapping[str, Deprecation] = getattr(view, "deprecations", {})
    return found.get("GET" if method == "HEAD" else method or "")


class DeprecationMiddleware:
    """Says it, whoever answers."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Pass on, and add to the answer."""
        response = self._get_response(request)
        match = request.resolver_match
        found = of(getattr(match.func, "view_class", None), request.method) if match else None
        for name, value in found.headers().items() if found else ():
            response.headers[name] = value
        return response
