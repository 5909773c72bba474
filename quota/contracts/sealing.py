"""Private keys that stand where others can read: sealed with a secret, for one purpose.

AES-256-GCM; its key is derived from the secret by HKDF-SHA256 (RFC 5869), with the purpose. A sealed text is opened with the
same secret and purpose only, and any change of it is noticed: 1 byte of version, 12 of nonce, then what AES-GCM makes.
"""

from __future__ import annotations

from collections.abc import Iterable

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

NONCE_BYTES = 12
_VERSION = b"\x01"


def sealed(text: bytes, *, secret: str, purpose: str, nonce: bytes) -> bytes:
    """`nonce`: 12 bytes, by chance and never again."""
    if len(nonce) != NONCE_BYTES:
        raise ValueError(f"a nonce has {NONCE_BYTES} bytes")
    return _VERSION + nonce + _cipher(secret, purpose).encrypt(nonce, text, purpose.encode())


def unsealed(data: bytes, *, secret: str, purpose: str) -> bytes:
    """Raises ValueError: it was sealed with another secret, for another purpose, or changed."""
    head = len(_VERSION) + NONCE_BYTES
    if data[:1] != _VERSION or len(data) < head:
        raise ValueError("not sealed")
    try:
        return _cipher(secret, purpose).decrypt(data[1:head], data[head:], purpose.encode())
    except InvalidTag:
        raise ValueError("sealed with another secret, or for something else") from None


def opened_by_any(data: bytes, *, secrets: Iterable[str], purpose: str) -> bytes:
    """By whichever of these sealed it: the present one and, while it is being replaced, the one before. Raises ValueError."""
    problem = ValueError("there is no secret to open it with")
    for secret in secrets:
        try:
            return unsealed(data, secret=secret, purpose=purpose)
        except ValueError as error:
            problem = error
    raise problem


def route_key_purpose(instance: str, route: str) -> str:
    """What the private key of a route is sealed for."""
    return f"sluice route key {instance}/{route}"


def _cipher(secret: str, purpose: str) -> AESGCM:
    if not secret:
        raise ValueError("there is no secret to seal with")
    return AESGCM(HKDF(SHA256(), 32, salt=None, info=purpose.encode()).derive(secret.encode()))
