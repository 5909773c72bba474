"""OAUTHBEARER (RFC 7628): a token in one message, good for as long as the token says.

::

    C: n,,^Aauth=Bearer eyJhbGciOi…^A^A          ^A is the byte 1; "a=<name>" may stand between the commas
    S: nothing: the client is in                  or {"status":"invalid_token"}
    C:                                            ^A, and then it is told that it has failed

As in Kafka: the name, where one is asked for, has to be the token's own, and other pairs (KIP-342's extensions, "host", "port")
are read and mean nothing. What is no such message at all fails at once, without the answer in JSON. A client that answers the
refusal with anything has had its turn: unlike Kafka we take no second token on the same connection.

Why a token is refused its bearer is not told: an issuer that is not known, a signature and a time that is over look the same.
The instance's audit has it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from dataplane.security.exchange import OTHER_AUTHZID, Judged, Proof, SaslError, Verified, Wrong, text_of
from dataplane.security.tokens import Token, expiry_ms, principal_of, read_token
from quota.contracts.instance import OAUTHBEARER
from quota.contracts.token_issuers import TokenIssuer

LONGEST_MESSAGE = 16_384
"""Bytes. A token with the groups of its bearer may well have 4,000."""
REFUSED = b'{"status":"invalid_token"}'
_MESSAGE = re.compile(
    r"[ny],(?:a=(?P<authzid>(?:[^,=\0\x01]|=2C|=3D)+))?,\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]*\x01)*)\x01"
)
_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +(?P<token>[A-Za-z0-9._~+/-]+=*)")


@dataclass(frozen=True, slots=True)
class ClientMessage:
    """What a client sends."""

    authzid: str  # empty: it asks for none
    token: str
    extensions: Mapping[str, str]


def parsed(data: bytes) -> ClientMessage:
    """A client's message. Raises SaslError."""
    found = _MESSAGE.fullmatch(text_of(data, LONGEST_MESSAGE))
    if found is None:
        raise SaslError("not an OAUTHBEARER message")
    pairs: dict[str, str] = {}
    for pair in found["pairs"].split("\x01")[:-1]:
        key, _, value = pair.partition("=")
        if key in pairs:
            raise SaslError("a key that is there twice")
        pairs[key] = value
    bearer = _BEARER.fullmatch(pairs.pop("auth", ""))
    if bearer is None:
        raise SaslError("no bearer token")
    authzid = (found["authzid"] or "").replace("=2C", ",").replace("=3D", "=")
    return ClientMessage(authzid, bearer["token"], pairs)


class OauthBearer:
    """One message, and one more where it was refused. `issuers`: by what they call themselves."""

    mechanism: ClassVar[str] = OAUTHBEARER

    def __init__(self, issuers: Mapping[str, TokenIssuer]) -> None:
        self._issuers = issuers
        self._has_said = False

    def take(self, token: bytes) -> Proof:
        """As `exchange.Exchange`."""
        if self._has_said:
            raise SaslError("the token was refused", REFUSED.decode())
        self._has_said = True
        message = parsed(token)
        said = read_token(message.token)
        issuer = self._issuers.get(said.issuer) if said is not None else None
        user = principal_of(said.claims, issuer) if said is not None and issuer is not None else None
        if said is None or issuer is None or user is None:
            wrong = Wrong(_why_nobody(said, issuer))
            return Proof("", lambda _now_ms: wrong, takes_long=False, refusal=REFUSED)
        if message.authzid not in ("", user):
            raise SaslError("another authorization id", OTHER_AUTHZID)
        return _proof(user, said, issuer)


def _proof(user: str, said: Token, issuer: TokenIssuer) -> Proof:
    def verify(now_ms: int) -> Judged:
        expires_ms = expiry_ms(said, issuer, now_ms)
        return expires_ms if isinstance(expires_ms, Wrong) else Verified(b"", expires_ms=expires_ms, issuer=issuer)

    return Proof(user, verify, takes_long=True, refusal=REFUSED)


def _why_nobody(said: Token | None, issuer: TokenIssuer | None) -> str:
    if said is None:
        return "no token that could be good: not a JWT, or signed by an algorithm that is not served"
    if issuer is None:
        return "the token is of an issuer that the instance does not trust"
    return f"the token has no claim {issuer.principal_claim} that names a principal"
