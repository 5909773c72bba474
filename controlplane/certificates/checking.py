"""What a tenant brings is looked at before brokers get it: what is wrong comes back as a sentence for the field that has it."""

from __future__ import annotations

import ipaddress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from controlplane.core.errors import Invalid
from quota.contracts.certificates import LARGEST_PEM

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

MOST_IN_A_CHAIN = 10
MOST_AUTHORITIES = 50
RSA_BITS = (2048, 4096)
CURVES = ("secp256r1", "secp384r1", "secp521r1")


def chain_checked(chain: str, key: str, hosts: Sequence[str], now: datetime) -> tuple[str, bytes, datetime]:
    """Chain and key as they are kept, PEM, and when the first of the chain ends. Raises Invalid."""
    certificates = _certificates("chain", chain, MOST_IN_A_CHAIN)
    private = _private_key(key)
    own = certificates[0]
    if _public(own) != _encoded(private.public_key()):
        raise _wrong("key", "the private key is not that of the first certificate")
    for certificate in certificates:
        _check_dates(certificate, now)
    for issued, issuer in pairwise(certificates):
        _check_issued("chain", issued, issuer)
    _check_key_of(own)
    missing = [host for host in hosts if not _names(own, host)]
    if missing:
        raise _wrong("chain", f"the certificate does not name {', '.join(missing)}, where clients of the route connect")
    text = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return _pem(certificates), text, own.not_valid_after_utc


def client_ca_checked(text: str, now: datetime) -> str:
    """The certificates of authorities, PEM; empty as it is. Raises Invalid."""
    if not text.strip():
        return ""
    certificates = _certificates("client_ca", text, MOST_AUTHORITIES)
    for certificate in certificates:
        try:
            is_authority = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        except (x509.ExtensionNotFound, ValueError):
            is_authority = False
        if not is_authority:
            raise _wrong("client_ca", f"{certificate.subject.rfc4514_string()} is not an authority's certificate")
        if certificate.not_valid_after_utc <= now:
            raise _wrong("client_ca", f"the certificate of {certificate.subject.rfc4514_string()} is over")
    return _pem(certificates)


def _wrong(field: str, sentence: str) -> Invalid:
    return Invalid.field(field, sentence)


def _certificates(field: str, text: str, most: int) -> list[x509.Certificate]:
    if len(text) > LARGEST_PEM:
        raise _wrong(field, f"may take {LARGEST_PEM} bytes, not {len(text)}")
    try:
        found = x509.load_pem_x509_certificates(text.encode())
    except (ValueError, x509.InvalidVersion):
        raise _wrong(field, "is not certificates in PEM") from None
    if len(found) > most:
        raise _wrong(field, f"may have {most} certificates, not {len(found)}")
    for at, certificate in enumerate(found, 1):
        _check_legible(field, certificate, at)
    return found


def _check_legible(field: str, certificate: x509.Certificate, at: int) -> None:
    """What is looked at later is read only then, so that it would be found out too late."""
    try:
        _public(certificate)
        certificate.subject.rfc4514_string()
        certificate.issuer.rfc4514_string()
        list(certificate.extensions)
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
        raise _wrong(field, f"certificate {at} has a key, a name or an extension that cannot be read") from None


def _private_key(text: str) -> Any:
    if len(text) > LARGEST_PEM:
        raise _wrong("key", f"may take {LARGEST_PEM} bytes, not {len(text)}")
    try:
        # Whether a key's numbers are primes is asked of one only that is not too large: it would take minutes.
        private = serialization.load_pem_private_key(text.encode(), None, unsafe_skip_rsa_key_validation=True)
        if isinstance(private, rsa.RSAPrivateKey) and private.key_size > RSA_BITS[1]:
            raise _wrong("key", _rsa_text(private.key_size))
        return serialization.load_pem_private_key(text.encode(), None)
    except TypeError:
        raise _wrong("key", "is encrypted: bring it without a password") from None
    except (ValueError, UnsupportedAlgorithm):
        raise _wrong("key", "is not a private key in PEM") from None


def _check_key_of(certificate: x509.Certificate) -> None:
    key = certificate.public_key()
    if isinstance(key, rsa.RSAPublicKey):
        if not RSA_BITS[0] <= key.key_size <= RSA_BITS[1]:
            raise _wrong("chain", _rsa_text(key.key_size))
    elif not isinstance(key, ec.EllipticCurvePublicKey) or key.curve.name not in CURVES:
        raise _wrong("chain", "the key is RSA's, or on one of the curves P-256, P-384 and P-521")


def _rsa_text(bits: int) -> str:
    return f"an RSA key has {RSA_BITS[0]} to {RSA_BITS[1]} bits, not {bits}"


def _check_dates(certificate: x509.Certificate, now: datetime) -> None:
    if certificate.not_valid_after_utc <= now:
        raise _wrong(
            "chain", f"{certificate.subject.rfc4514_string()} is over since {certificate.not_valid_after_utc:%Y-%m-%d}"
        )
    if certificate.not_valid_before_utc > now:
        raise _wrong(
            "chain",
            f"{certificate.subject.rfc4514_string()} begins on {certificate.not_valid_before_utc:%Y-%m-%d} only",
        )


def _check_issued(field: str, issued: x509.Certificate, issuer: x509.Certificate) -> None:
    try:
        issued.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        raise _wrong(
            field,
            f"{issuer.subject.rfc4514_string()} has not issued {issued.subject.rfc4514_string()}, which stands before it",
        ) from None


def _names(certificate: x509.Certificate, host: str) -> bool:
    """Whether its alternative names have the host: clients look nowhere else."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return False
    try:
        return ipaddress.ip_address(host) in names.get_values_for_type(x509.IPAddress)
    except ValueError:
        pass
    wanted = host.lower().rstrip(".")
    return any(_matches(name.lower(), wanted) for name in names.get_values_for_type(x509.DNSName))


def _matches(name: str, host: str) -> bool:
    """RFC 6125: a star is one whole label, the first."""
    if name.startswith("*."):
        _, dot, rest = host.partition(".")
        return bool(dot) and rest == name[2:]
    return name == host


def _public(certificate: x509.Certificate) -> bytes:
    return _encoded(certificate.public_key())


def _encoded(key: Any) -> bytes:
    encoded: bytes = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return encoded


def _pem(certificates: Sequence[x509.Certificate]) -> str:
    return "".join(each.public_bytes(serialization.Encoding.PEM).decode() for each in certificates)
