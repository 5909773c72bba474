"""Tokens that say who their bearer is: JSON Web Tokens (RFC 7519) signed by an issuer that the instance trusts.

Read first, believed later. `read_token` takes a token apart without believing any of it, to learn whom to ask: which issuer,
which key, by which algorithm. `expiry_ms` then verifies the signature and judges what has been signed, and nothing else:

* the algorithm is on our list and on the key's. A key is chosen by the "kid" that the token names; a token that names none has
  to leave no choice.
* "iss" and "aud" are the issuer's, to the letter; "exp" is there and has not come; "nbf" and "iat", where they are there,
  are past, or within `SKEW_S` of now: the clocks of issuers are not ours. The end of a token has no such leeway.
* "scope" (or "scp", as some issuers call it) holds the scope that the issuer's entry wants, where it wants one.
* the principal's name is as users' names are.

A header with "crit" is refused: whatever it lists we do not know (RFC 7515, 4.1.11); so is "b64" (RFC 7797).
"""

from __future__ import annotations

import base64
import json
import re
from binascii import Error as Base64Error
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key
from jwt import PyJWS
from jwt.exceptions import PyJWTError

from dataplane.security.exchange import Wrong
from quota.contracts.token_issuers import ALGORITHMS, TokenIssuer, TokenKey, principal_name_problem

SKEW_S = 30
_FURTHEST_S = 1e12
"""Seconds since 1970, beyond which no time is meant: 1e308 and NaN are numbers to JSON as Python reads it."""
_COMPACT = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)")
_JWS = PyJWS(algorithms=list(ALGORITHMS))


@dataclass(frozen=True, slots=True)
class Token:
    """What a token says of itself: none of it is known to be true."""

    text: str
    algorithm: str
    kid: str | None
    issuer: str
    claims: Mapping[str, Any]


def read_token(text: str) -> Token | None:
    """A token taken apart; None: it is none that could be good."""
    parts = _COMPACT.fullmatch(text)
    if parts is None:
        return None
    header, claims = _document(_decoded(parts[1])), _document(_decoded(parts[2]))
    if header is None or claims is None or "crit" in header or "b64" in header:
        return None
    algorithm, kid, issuer = header.get("alg"), header.get("kid"), claims.get("iss")
    if algorithm not in ALGORITHMS or not isinstance(kid, str | None) or not isinstance(issuer, str):
        return None
    return Token(text, algorithm, kid, issuer, claims)


def principal_of(claims: Mapping[str, Any], issuer: TokenIssuer) -> str | None:
    """Whom the claims name, without "User:"; None: nobody who can be a principal."""
    name = claims.get(issuer.principal_claim)
    return name if isinstance(name, str) and principal_name_problem(name) is None else None


def expiry_ms(token: Token, issuer: TokenIssuer, now_ms: int) -> int | Wrong:
    """Until when it is good, by the wall's clock, or why it is not. Some hundred microseconds of work."""
    keys = _keys(token, issuer)
    for key in keys:
        claims = _signed(token, key)
        if claims is not None:
            problem = claims_problem(claims, issuer, now_ms)
            return int(claims["exp"] * 1000) if problem is None else Wrong(f"the token: {problem}")
    return Wrong("the token's signature is not the issuer's" if keys else "the token names no key of the issuer's")


def claims_problem(claims: Mapping[str, Any], issuer: TokenIssuer, now_ms: int) -> str | None:
    """Why these do not let their bearer in, in a sentence; None: they do, until "exp"."""
    now_s = now_ms / 1000
    if claims.get("iss") != issuer.issuer:
        return "it is of another issuer"
    if not set(_texts(claims.get("aud"))) & set(issuer.audiences):
        return "it is for another audience"
    if not _is_time(claims.get("exp")):
        return "it does not say when it ends"
    if claims["exp"] <= now_s:
        return "it has ended"
    for name in ("nbf", "iat"):
        if name in claims and not (_is_time(claims[name]) and claims[name] <= now_s + SKEW_S):
            return f"{name} has not come yet"
    if issuer.scope is not None and issuer.scope not in _scopes(claims):
        return f"it has no scope {issuer.scope}"
    if principal_of(claims, issuer) is None:
        return f"{issuer.principal_claim} names nobody"
    return None


def _keys(token: Token, issuer: TokenIssuer) -> list[TokenKey]:
    """Those that may have signed it."""
    fit = [key for key in issuer.keys if token.algorithm in key.algorithms]
    if token.kid is None:
        return fit if len(fit) == 1 else []
    return [key for key in fit if key.kid == token.kid]


def _signed(token: Token, key: TokenKey) -> dict[str, Any] | None:
    """The claims, where this key has signed them."""
    try:
        public = load_der_public_key(key.key)
        if not isinstance(public, RSAPublicKey | EllipticCurvePublicKey):
            return None
        found = _JWS.decode_complete(token.text, public, algorithms=[token.algorithm])
    except (PyJWTError, UnsupportedAlgorithm, ValueError, TypeError, RecursionError):
        return None
    return _document(found["payload"])


def _document(data: bytes | None) -> dict[str, Any] | None:
    """A JSON object."""
    try:
        found = None if data is None else json.loads(data.decode())
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _decoded(part: str) -> bytes | None:
    try:
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except Base64Error:
        return None


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -_FURTHEST_S < value < _FURTHEST_S


def _texts(value: object) -> list[str]:
    """A claim that is a text, or a list of them."""
    found = [value] if isinstance(value, str) else value
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _scopes(claims: Mapping[str, Any]) -> set[str]:
    return {scope for name in ("scope", "scp") for text in _texts(claims.get(name)) for scope in text.split(" ")}
