"""Keys and certificates: an instance's authority, and what it issues to its routes. P-256, with which brokers sign fastest."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

AUTHORITY_FOR = timedelta(days=3650)
ISSUED_FOR = timedelta(days=90)
_BEFORE = timedelta(hours=1)
"""Clients' clocks may be so far behind."""
_LONGEST_NAME = 64
"""Of a common name (X.520)."""


@dataclass(frozen=True, slots=True)
class Made:
    """A certificate with its private key, both PEM."""

    certificate: str
    key: bytes
    not_after: datetime


def authority_make(instance_id: str, now: datetime) -> Made:
    """One that may issue certificates, and nothing that issues others."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Sluice CA of {instance_id}")])
    builder = (
        _builder(subject, subject, key.public_key(), now, AUTHORITY_FOR)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=False, issues=True), critical=True)
    )
    return _made(builder.sign(key, hashes.SHA256()), key)


def certificate_make(authority: Made, hosts: Sequence[str], now: datetime) -> Made:
    """Of a server at these names and addresses. It ends with its authority at the latest."""
    issuer = x509.load_pem_x509_certificate(authority.certificate.encode())
    issuer_key = serialization.load_pem_private_key(authority.key, None)
    assert isinstance(issuer_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0][:_LONGEST_NAME])])
    lasts = min(ISSUED_FOR, issuer.not_valid_after_utc - now)
    builder = (
        _builder(subject, issuer.subject, key.public_key(), now, lasts)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=True, issues=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general(host) for host in hosts]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    return _made(builder.sign(issuer_key, hashes.SHA256()), key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, lasts: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEFORE)
        .not_valid_after(now + lasts)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs: bool, issues: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=issues,
        crl_sign=issues,
        encipher_only=False,
        decipher_only=False,
    )


def _made(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Made:
    return Made(
        certificate.public_bytes(serialization.Encoding.PEM).decode(),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        certificate.not_valid_after_utc,
    )


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
