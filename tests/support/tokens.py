"""Token issuers for tests: keys of their own, tokens signed by PyJWT, and what they publish (JWKS)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from quota.contracts.instance import OAUTHBEARER
from quota.contracts.token_issuers import TokenIssuer, TokenIssuerSet, TokenKey

RSA_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
BY_TOKEN = {"security": "sasl_plaintext", "mechanisms": (OAUTHBEARER,), "allow_plain_in_clear": True}
"""Members of a route in the clear on which everybody logs in by a token."""


@cache
def private_key(kind: str) -> Any:
    """One of each name for the whole run: making RSA keys takes a while. A name begins with "RSA", "P-256" or "P-384"."""
    if kind.startswith("RSA"):
        return rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    return ec.generate_private_key(ec.SECP256R1() if kind.startswith("P-256") else ec.SECP384R1())


def algorithms_of(kind: str) -> tuple[str, ...]:
    return RSA_ALGORITHMS if kind.startswith("RSA") else ("ES256",) if kind.startswith("P-256") else ("ES384",)


def public_der(kind: str) -> bytes:
    return private_key(kind).public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


@dataclass
class Issuer:
    """`keys`: names of keys by their ids."""

    name: str = "https://login.example.com/"
    keys: dict[str, str] = field(default_factory=lambda: {"one": "RSA"})
    audiences: tuple[str, ...] = ("kafka",)
    principal_claim: str = "sub"
    scope: str | None = None

    @property
    def trusted(self) -> TokenIssuer:
        """As an instance has it."""
        keys = tuple(TokenKey(kid, algorithms_of(kind), public_der(kind)) for kid, kind in self.keys.items())
        return TokenIssuer(self.name, self.audiences, self.principal_claim, self.scope, keys)

    def trusted_set(self, version: int = 1) -> TokenIssuerSet:
        return TokenIssuerSet(version, (self.trusted,))

    def claims(self, subject: str, now_s: float, lifetime_s: float, **others: Any) -> dict[str, Any]:
        """Good ones; those that are None among `others` are left out."""
        found = {"iss": self.name, "aud": self.audiences[0], "sub": subject, "iat": now_s, "exp": now_s + lifetime_s}
        return {name: value for name, value in {**found, **others}.items() if value is not None}

    def token(
        self,
        subject: str = "alice",
        now_s: float = 0.0,
        lifetime_s: float = 60.0,
        *,
        kid: str | None = "one",
        algorithm: str = "RS256",
        headers: dict[str, Any] | None = None,
        **others: Any,
    ) -> str:
        """Signed by the key of this id (None: by the first, and the token does not say by which)."""
        kind = self.keys[kid] if kid is not None else next(iter(self.keys.values()))
        named = {} if kid is None else {"kid": kid}
        claims = self.claims(subject, now_s, lifetime_s, **others)
        return jwt.encode(claims, private_key(kind), algorithm, {**named, **(headers or {})})

    def jwks(self) -> dict[str, Any]:
        """What it publishes."""
        found = []
        for kid, kind in self.keys.items():
            algorithm = RSAAlgorithm if kind.startswith("RSA") else ECAlgorithm
            members = json.loads(algorithm.to_jwk(private_key(kind).public_key()))
            members.pop("key_ops", None)
            found.append({**members, "kid": kid, "use": "sig"})
        return {"keys": found}


def message(token: str, header: str = "n,,", **extensions: str) -> bytes:
    """What a client sends."""
    pairs = {"auth": f"Bearer {token}", **extensions}
    return (header + "\x01" + "".join(f"{key}={value}\x01" for key, value in pairs.items()) + "\x01").encode()
