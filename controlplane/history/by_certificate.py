"""A client certificate in place of an API key, for reading an instance's figures and nothing else (certificates/readers.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rest_framework.authentication import BaseAuthentication

from controlplane.accounts.scopes import READ, Limits
from controlplane.accounts.selectors import Caller
from controlplane.api import rates
from controlplane.certificates.readers import reader_of
from controlplane.core.client_certificate import presented
from controlplane.tenants.models import Role

if TYPE_CHECKING:
    from rest_framework.request import Request

    from controlplane.certificates.readers import Reader

_FINGERPRINT_LETTERS = 16
"""As the audit trail has fingerprints of certificates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedCaller(Caller):
    """A program with a certificate of one instance: it looks at that one, and changes nothing."""

    reader: Reader

    @property
    def limits(self) -> Limits:
        """As of an API key with the scope read, for one instance."""
        return Limits(frozenset({READ}), frozenset({self.reader.instance_id}), is_bound=True, is_of_person=False)

    @property
    def actor(self) -> str:
        """The name in the audit trail, where it is refused something."""
        return f"client certificate {self.reader.fingerprint[:_FINGERPRINT_LETTERS]}"


class CertificateAuthentication(BaseAuthentication):
    """For views that name it, behind the one of API keys: who shows a key is who the key says, whatever else they show."""

    def authenticate(self, request: Request) -> tuple[Caller, None] | None:
        """The caller whose certificate the proxy tells, counted as a key is. Raises Unauthenticated, TooManyRequests."""
        certificate = presented(request)
        if certificate is None:
            return None
        reader = reader_of(certificate, asked=str(request.parser_context["kwargs"]["instance_id"]))
        rates.admit(
            getattr(request, "_request", request),
            key=f"certificate:{reader.fingerprint}",
            organisation=reader.organisation.id,
        )
        return CertifiedCaller(None, reader.organisation, Role.VIEWER, reader=reader), None
