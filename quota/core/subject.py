"""The subject of a certificate as a text: RFC 2253, as Java's ``X500Principal.getName()`` writes it, and so Kafka's principals.

The most special part comes first (``CN=writeuser,OU=Unknown,O=Unknown``). Kinds that RFC 2253 does not name are written by their
number, and their values as hexadecimal DER; an e-mail address is one of these.
"""

from __future__ import annotations

from cryptography import x509
from cryptography.x509.oid import NameOID

_KEYWORDS = {
    NameOID.COMMON_NAME: "CN",
    NameOID.COUNTRY_NAME: "C",
    NameOID.LOCALITY_NAME: "L",
    NameOID.STATE_OR_PROVINCE_NAME: "ST",
    NameOID.ORGANIZATION_NAME: "O",
    NameOID.ORGANIZATIONAL_UNIT_NAME: "OU",
    NameOID.STREET_ADDRESS: "STREET",
    NameOID.DOMAIN_COMPONENT: "DC",
    NameOID.USER_ID: "UID",
}
_ESCAPED = frozenset(',=+<>#;"\\')


def subject_of(certificate: bytes) -> str:
    """Of a certificate in DER. Raises ValueError."""
    subject = x509.load_der_x509_certificate(certificate).subject
    return ",".join("+".join(map(_part, rdn)) for rdn in reversed(subject.rdns))


def _part(attribute: x509.NameAttribute[str | bytes]) -> str:
    keyword, value = _KEYWORDS.get(attribute.oid), attribute.value
    if keyword is None or isinstance(value, bytes):
        return f"{attribute.oid.dotted_string}=#{_der_of(attribute).hex()}"
    return f"{keyword}={_escaped(value)}"


def _escaped(value: str) -> str:
    first, last = len(value) - len(value.lstrip(" \r")), len(value.rstrip(" \r"))
    done = []
    for index, character in enumerate(value):
        if character == "\0":
            done.append("\\00")
            continue
        if character in _ESCAPED or index < first or index >= last:
            done.append("\\")
        done.append(character)
    return "".join(done)


def _der_of(attribute: x509.NameAttribute[str | bytes]) -> bytes:
    """Its value as it stands in a name: a sequence of sets of sequences of a kind and a value."""
    inside = x509.Name([attribute]).public_bytes()
    for _ in range(3):
        inside = inside[_head_bytes(inside) :]
    return inside[_head_bytes(inside) + inside[1] :]  # behind the kind, which is short


def _head_bytes(der: bytes) -> int:
    """Of what DER begins with: one byte says what it is, the next how long it is, or how many bytes say that."""
    return 2 + (der[1] & 0x7F if der[1] & 0x80 else 0)
