"""Certificates for tests, made by `cryptography` as a certificate authority would: quick keys, a few days."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence

DAY = dt.timedelta(days=1)


def pem_of_key(key: Any) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def name(common_name: str, *more: tuple[x509.ObjectIdentifier, str]) -> x509.Name:
    """A subject, its most general part first as certificates have it."""
    return x509.Name([x509.NameAttribute(oid, value) for oid, value in (*more, (NameOID.COMMON_NAME, common_name))])


@dataclass
class Issued:
    """A certificate with its key."""

    certificate: x509.Certificate
    key: Any

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    @property
    def key_pem(self) -> str:
        return pem_of_key(self.key)

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)


class Authority(Issued):
    """A certificate authority. `issue` makes certificates of servers (with hosts) and of clients (without)."""

    def __init__(self, common_name: str = "Test CA") -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = name(common_name)
        builder = _builder(subject, subject, key.public_key(), 0, 30)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        super().__init__(builder.sign(key, hashes.SHA256()), key)

    def issue(
        self,
        subject: str | x509.Name,
        hosts: Sequence[str] = (),
        *,
        from_days: int = 0,
        to_days: int = 10,
        key: Any = None,
    ) -> Issued:
        """Good from so many days from now until so many."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        subject = name(subject) if isinstance(subject, str) else subject
        builder = _builder(subject, self.certificate.subject, key.public_key(), from_days, to_days)
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_general(host) for host in hosts]), critical=False
            )
        return Issued(builder.sign(self.key, hashes.SHA256()), key)


def rsa_key(bits: int = 2048) -> Any:
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


def _builder(subject: x509.Name, issuer: x509.Name, key: Any, from_days: int, to_days: int) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + from_days * DAY - dt.timedelta(hours=1))
        .not_valid_after(now + to_days * DAY)
    )


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
