"""What a provider publishes and signs, by OpenID Connect Core 1.0: its document, and ID tokens. Pure.

A token is believed when all of this holds: a key of the provider has signed it, by an algorithm of that key (RSA, P-256, P-384:
never `none`, never a shared secret); `iss` is the issuer to the letter; `aud` holds our client id, and `azp` is it where there
are several or where it is there; it has not expired; its `nonce` is of the sign-in that was begun here.
"""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.serialization import load_der_public_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quota.contracts.token_issuers import TokenKey

LEEWAY_S = 60
OLDEST_S = 600
"""Since it was signed: a token is made for the code that was exchanged a moment ago."""
LONGEST_SUBJECT = 255
LONGEST_TOKEN = 32_000


class ProviderProblem(ValueError):  # noqa: N818  # reads as what it is in the sentence that an owner sees
    """What a provider answers cannot be believed, or used; the text says why."""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where a provider is asked for what."""

    authorization: str
    token: str
    keys: str


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom an ID token names."""

    subject: str
    address: str | None = None
    """In lower case; None: it names none, or does not say that it was verified. What it says decides nothing but whether an
    invitation of this organisation was for this person: a provider says what it likes."""


def document_url(issuer: str) -> str:
    """Where a provider publishes its document."""
    return issuer.rstrip("/") + "/.well-known/openid-configuration"


def endpoints_of(data: bytes, *, issuer: str) -> Endpoints:
    """From the document that is published. Raises ProviderProblem."""
    document = object_of(data)
    if document.get("issuer") != issuer:
        raise ProviderProblem("its document names another issuer")
    found = [document.get(name) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")]
    if not all(isinstance(each, str) and each for each in found):
        raise ProviderProblem("its document lacks authorization_endpoint, token_endpoint or jwks_uri")
    authorization, token, keys = map(str, found)
    try:
        is_url = authorization.isascii() and authorization.isprintable() and not urlsplit(authorization).fragment
    except ValueError:  # such as https://[
        is_url = False
    if not is_url:
        raise ProviderProblem("its authorization_endpoint is no URL")
    return Endpoints(authorization, token, keys)


def object_of(data: bytes) -> dict[str, Any]:
    """Raises ProviderProblem."""
    try:
        document = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise ProviderProblem("what it answers is not JSON") from error
    if not isinstance(document, dict):
        raise ProviderProblem("what it answers is no object")
    return document


def authorization_url(
    endpoints: Endpoints,
    *,
    client_id: str,
    redirect_uri: str,
    state: str,
    nonce: str,
    verifier: str,
    asks_address: bool = False,
) -> str:
    """Where the person is sent. PKCE with S256."""
    challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    asked = {
        "response_type": "code",
        "scope": "openid email" if asks_address else "openid",
        "client_id": client_id,
        "redirect_uri": redirect_uri,
        "state": state,
        "nonce": nonce,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    joint = "&" if urlsplit(endpoints.authorization).query else "?"
    return f"{endpoints.authorization}{joint}{urlencode(asked)}"


def identity_of(
    token: str, *, keys: Sequence[TokenKey], issuer: str, client_id: str, nonce: str, now_s: float
) -> Identity:
    """Whom an ID token names. Raises ProviderProblem."""
    if len(token) > LONGEST_TOKEN:
        raise ProviderProblem("its ID token is too long")
    try:
        kid = jwt.get_unverified_header(token).get("kid")
        fitting = [key for key in keys if kid is None or key.kid == kid]
        if len(fitting) != 1:
            raise ProviderProblem("its ID token is signed by a key that it does not publish")
        claims = jwt.decode(
            token,
            load_der_public_key(fitting[0].key),  # type: ignore[arg-type]  # RSA and EC alone are taken over
            algorithms=list(fitting[0].algorithms),
            audience=client_id,
            issuer=issuer,
            options={
                "require": ["iss", "sub", "aud", "exp", "iat"],
                "verify_exp": False,
                "verify_iat": False,
                "verify_nbf": False,
            },
        )
    except (jwt.PyJWTError, UnicodeEncodeError) as error:  # half a surrogate pair: a text to JSON
        raise ProviderProblem(f"its ID token is not valid: {type(error).__name__}") from error
    _times_check(claims, now_s)
    audiences, party = claims["aud"], claims.get("azp")
    if (isinstance(audiences, list) and len(audiences) > 1 and party is None) or party not in (None, client_id):
        raise ProviderProblem("its ID token is for another client")
    given = claims.get("nonce")
    if not isinstance(given, str) or not hmac.compare_digest(given.encode(errors="replace"), nonce.encode()):
        raise ProviderProblem("its ID token is not of this sign-in")
    subject = claims["sub"]
    if not isinstance(subject, str) or not 0 < len(subject) <= LONGEST_SUBJECT or not subject.isprintable():
        raise ProviderProblem("its ID token names nobody")
    return Identity(subject, _address(claims))


def _address(claims: dict[str, Any]) -> str | None:
    """Letters of ASCII alone: some others are written as ASCII in lower case, and are another's."""
    address = claims.get("email")
    if claims.get("email_verified") is not True or not isinstance(address, str) or not address.isascii():
        return None
    return address.lower()


def _times_check(claims: dict[str, Any], now_s: float) -> None:
    """By the clock that is handed in. Raises ProviderProblem."""
    times = [claims["exp"], claims["iat"], claims.get("nbf", 0)]
    if any(isinstance(each, bool) or not isinstance(each, int | float) for each in times):
        raise ProviderProblem("its ID token has no times")
    expires, issued, begins = times
    if not expires > now_s - LEEWAY_S:
        raise ProviderProblem("its ID token has expired")
    if not (begins <= now_s + LEEWAY_S and now_s - OLDEST_S <= issued <= now_s + LEEWAY_S):
        raise ProviderProblem("its ID token is of another time: look at the clock of the provider")
