"""A certificate authority of one cluster, and what it issues to the cluster's own processes. Values in, values out.

Keys are P-256, with which handshakes are quickest. Subjects are ``CN=<identity>``. Certificates of brokers and masters name the
hosts where these are found, for clients that look at that (librdkafka, Java), and may be shown at either end of a connection.
Others may be shown by who connects, and by nobody else: with the metering job's certificate one cannot pass for a broker.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from quota.contracts.identity import Identity, Role

AUTHORITY_FOR = timedelta(days=3650)
ISSUED_FOR = timedelta(days=90)
_BEFORE = timedelta(hours=1)
"""Clocks may be so far behind."""
_SERVERS = (Role.BROKER, Role.MASTER)


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate with its private key, both PEM."""

    certificate: str
    key: str = field(repr=False)


def authority_made(name: str, now: datetime) -> Pair:
    """One that issues certificates, and nothing that issues others."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        _builder(subject, subject, key.public_key(), now, now + AUTHORITY_FOR)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(issues=True), critical=True)
    )
    return _pair(builder.sign(key, hashes.SHA256()), key)


def issued(
    authority: Pair, identity: Identity, hosts: Sequence[str], now: datetime, lasts: timedelta = ISSUED_FOR
) -> Pair:
    """For one process; `hosts`: names and addresses where it is found. It ends with its authority at the latest."""
    issuer = x509.load_pem_x509_certificate(authority.certificate.encode())
    issuer_key = serialization.load_pem_private_key(authority.key.encode(), None)
    assert isinstance(issuer_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, identity.name)])
    uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
    names: list[x509.GeneralName] = [x509.DNSName(identity.name)]
    if identity.role in _SERVERS:
        uses.append(ExtendedKeyUsageOID.SERVER_AUTH)
        names += [_general(host) for host in hosts]
    builder = (
        _builder(subject, issuer.subject, key.public_key(), now, min(now + lasts, issuer.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(issues=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    return _pair(builder.sign(issuer_key, hashes.SHA256()), key)


def hosts_of(certificate: str, identity: Identity) -> list[str]:
    """The hosts that a certificate of `issued` names."""
    extensions = x509.load_pem_x509_certificate(certificate.encode()).extensions
    names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    found = [str(name.value) for name in names if isinstance(name, (x509.DNSName, x509.IPAddress))]
    return [host for host in found if host != identity.name]


def is_due(certificate: str, now: datetime) -> bool:
    """Whether less than a third of its time is left."""
    found = x509.load_pem_x509_certificate(certificate.encode())
    lasts = found.not_valid_after_utc - found.not_valid_before_utc
    return found.not_valid_after_utc - now < lasts / 3


def is_issued_by(certificate: str, authority: Pair) -> bool:
    """Whether this authority has."""
    issuer = x509.load_pem_x509_certificate(authority.certificate.encode())
    try:
        x509.load_pem_x509_certificate(certificate.encode()).verify_directly_issued_by(issuer)
    except (InvalidSignature, ValueError, TypeError):  # another key's; another name; another kind of key
        return False
    return True


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, until: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEFORE)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, issues: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not issues,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=issues,
        crl_sign=issues,
        encipher_only=False,
        decipher_only=False,
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    pem, raw = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return Pair(
        certificate.public_bytes(pem).decode(), key.private_bytes(pem, raw, serialization.NoEncryption()).decode()
    )


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
