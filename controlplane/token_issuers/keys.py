"""The key set that an issuer publishes (JWKS, RFC 7517) becomes the keys that brokers verify by. Pure.

Public numbers alone are taken over, whatever else is published. Keys that are not for signatures, or of a kind or size that is
not served, are passed over, since issuers publish keys for others as well: RSA from 2,048 to 8,192 bits, P-256 and P-384.
A key that says by which algorithm it signs verifies by that one only; another by all of its kind.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, SECP384R1, EllipticCurvePublicNumbers
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from quota.contracts.token_issuers import LONGEST_TEXT, MOST_KEYS, TokenKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

LEAST_BITS, MOST_BITS = 2_048, 8_192
_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_CURVES = {"P-256": (SECP256R1, "ES256"), "P-384": (SECP384R1, "ES384")}
_MOST_EXPONENT = 2**32
"""Of RSA: 65537 everywhere. A large one makes verifying slow."""


class KeySetProblem(ValueError):  # noqa: N818  # reads as what it is in the sentence that a tenant sees
    """What was published cannot be used; the text says why."""


def keys_of(data: bytes) -> tuple[TokenKey, ...]:
    """The keys of a published set that tokens can be verified by, one at least. Raises KeySetProblem."""
    try:
        document = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise KeySetProblem("what is published there is not JSON") from error
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise KeySetProblem('what is published there is no key set: it has no list "keys"')
    found = [key for each in listed if isinstance(each, dict) and (key := _key(each)) is not None]
    if not found:
        raise KeySetProblem("the key set has no key that can verify tokens: RSA of 2,048 to 8,192 bits, P-256 or P-384")
    if len(found) > MOST_KEYS:
        raise KeySetProblem(f"the key set has {len(found)} keys; at most {MOST_KEYS} are taken")
    return tuple(found)


def _key(document: Mapping[str, Any]) -> TokenKey | None:
    """One key; None: it is not for us."""
    kid, algorithm = document.get("kid", ""), document.get("alg")
    operations = document.get("key_ops", ["verify"])
    if not isinstance(kid, str) or len(kid) > LONGEST_TEXT or not kid.isprintable():
        return None  # half a surrogate pair, or NUL: texts to JSON, and to no database or answer of ours
    if document.get("use", "sig") != "sig":
        return None
    if not isinstance(operations, list) or "verify" not in operations:
        return None
    try:
        public, algorithms = _public(document)
    except (KeyError, TypeError, ValueError):
        return None
    if algorithm is not None:
        algorithms = tuple(each for each in algorithms if each == algorithm)
    if not algorithms:
        return None
    return TokenKey(kid, algorithms, public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))


def _public(document: Mapping[str, Any]) -> tuple[RSAPublicKey | EllipticCurvePublicKey, tuple[str, ...]]:
    """Raises KeyError, TypeError, ValueError."""
    if document["kty"] == "RSA":
        modulus, exponent = _number(document["n"]), _number(document["e"])
        if not LEAST_BITS <= modulus.bit_length() <= MOST_BITS or not modulus % 2 or not 3 <= exponent < _MOST_EXPONENT:
            raise ValueError("a size that is not served")
        return RSAPublicNumbers(exponent, modulus).public_key(), _RSA
    if document["kty"] == "EC":
        curve, algorithm = _CURVES[document["crv"]]
        numbers = EllipticCurvePublicNumbers(_number(document["x"]), _number(document["y"]), curve())
        return numbers.public_key(), (algorithm,)
    raise ValueError("a kind that is not served")


def _number(text: str) -> int:
    if len(text) > MOST_BITS // 4:
        raise ValueError("a longer number than any that is served")
    return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
