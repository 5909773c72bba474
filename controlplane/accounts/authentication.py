"""``Authorization: Bearer <API key>`` for DRF. `request.user` is then a Caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication

from controlplane.accounts.selectors import Caller, caller_of_key
from controlplane.api import rates
from controlplane.core.errors import Unauthenticated

if TYPE_CHECKING:
    from rest_framework.request import Request


class ApiKeyAuthentication(BaseAuthentication):
    """No header: nobody, whom the permission refuses. A header that is not right: refused here."""

    def authenticate(self, request: Request) -> tuple[Caller, None] | None:
        """The caller of the presented key, whose request is counted. Raises Unauthenticated, Forbidden, TooManyRequests."""
        header = request.headers.get("Authorization")
        if header is None:
            return None
        scheme, _, text = header.partition(" ")
        if scheme.lower() != "bearer" or not text.strip():
            raise Unauthenticated("Authorization must be: Bearer <API key>")
        caller = caller_of_key(text.strip())
        if caller.key is not None and not caller.is_operator:
            rates.admit(getattr(request, "_request", request), key=caller.key.id, organisation=caller.organisation.id)
        return caller, None

    def authenticate_header(self, request: Request) -> str:
        """What a 401 says in WWW-Authenticate."""
        del request
        return 'Bearer realm="sluice"'


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the published schema names it."""

    target_class = ApiKeyAuthentication
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        del auto_schema
        return {"type": "http", "scheme": "bearer", "bearerFormat": "slc_…"}
