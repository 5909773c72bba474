"""The certificate that a caller has shown to the TLS proxy in front of this service, as the proxy tells it.

TLS ends at the proxy, which alone knows that the caller has the certificate's private key: the handshake proves it, whoever has
issued the certificate. So the proxy asks for a certificate, takes any, and tells it in one header; by whom it was issued is
looked at here, where the authorities of all tenants are known. The header is believed from the networks of
SLUICE_CLIENT_CERTIFICATES_FROM alone, by the address of the connection and not by X-Forwarded-For; from anywhere else it is as
if it were not there. The proxy must set it anew, or take it away, in every request: what a caller has written there would be
believed.

How it is written: as RFC 9440 has it (``:base64 of DER:``), which HAProxy can write, or as PEM in percent-encoding, which nginx
and load balancers of clouds write.
"""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING
from urllib.parse import unquote

from cryptography import x509
from django.conf import settings

from controlplane.core.addresses import is_within
from controlplane.core.errors import Unauthenticated

if TYPE_CHECKING:
    from django.http import HttpRequest

LONGEST = 16_384
"""Characters: most certificates take 2,000."""


def presented(request: HttpRequest) -> x509.Certificate | None:
    """What the proxy tells of the caller; None: nothing, or it is no proxy who tells it.

    Raises Unauthenticated: it is told, and is no certificate that can be read.
    """
    environment = settings.ENVIRONMENT
    text = request.headers.get(environment.client_certificate_header, "")
    if not text or not _is_proxy(request.META.get("REMOTE_ADDR", "")):
        return None
    found = certificate_in(text)
    if found is None:
        raise Unauthenticated("the client certificate cannot be read")
    return found


def certificate_in(text: str) -> x509.Certificate | None:
    """What the header says; None: it says no certificate."""
    if len(text) > LONGEST:
        return None
    try:
        if text.startswith(":"):
            found = x509.load_der_x509_certificate(b64decode(text.removeprefix(":").removesuffix(":"), validate=True))
        else:
            found = x509.load_pem_x509_certificate(unquote(text).encode())
        list(found.extensions)
    except (ValueError, x509.InvalidVersion, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
        return None
    return found


def _is_proxy(address: str) -> bool:
    try:
        return is_within(address, settings.ENVIRONMENT.client_certificates_from)
    except ValueError:  # a socket of this machine has none
        return False
