"""Whose tokens let clients in to an instance by SASL/OAUTHBEARER, at ``/sluice/token_issuers/<id>``.

::

    {"version": 3, "items": [{"issuer": "https://login.example.com/", "audiences": ["kafka"], "principal_claim": "sub",
                              "scope": "kafka.connect", "keys": [{"kid": "2026-11", "algorithms": ["RS256"],
                                                                  "key": "<base64 of a SubjectPublicKeyInfo, DER>"}]}]}

The control plane alone writes it, by compare-and-set; `version` counts these writes. It has fetched the keys from the address
that the tenant gave it: brokers connect to nobody, and know neither that address nor anything secret. A key verifies by the
algorithms that are listed with it and by no other. "scope" is null where a token needs none. A key of a kind that a reader does
not know is read all the same: it is bytes until somebody verifies by it.

A missing node is no issuers: then nobody logs in by a token. With one that is not legible nobody gets in at all, as with users.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quota.contracts.users import user_name_problem

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384")
"""By which a token may be signed (RFC 7518). Never "none", and nothing whose key would be a secret of ours (HS256)."""
MOST_ISSUERS = 4
MOST_KEYS = 16
"""Of one issuer: those of now, and those that it is changing to."""
MOST_AUDIENCES = 8
LONGEST_TEXT = 255
"""Characters of an issuer, an audience, a claim's name, a scope, and a key's id."""
LARGEST_KEY = 2_048
"""Bytes: RSA with 8,192 bits takes 1,062."""
LARGEST_ISSUERS = 250_000
"""Bytes of the document: it is a node of ZooKeeper. Four issuers with all that they may have take less."""


@dataclass(frozen=True, slots=True)
class TokenKey:
    """A public key of an issuer."""

    kid: str  # its id, which tokens name; empty: it has none
    algorithms: tuple[str, ...]
    key: bytes  # SubjectPublicKeyInfo, DER

    def document(self) -> dict[str, Any]:
        """For JSON."""
        key = base64.b64encode(self.key).decode()
        return {"kid": self.kid, "algorithms": list(self.algorithms), "key": key}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> TokenKey:
        """Raises KeyError, TypeError, ValueError."""
        key = base64.b64decode(document["key"], validate=True)
        return cls(_text(document["kid"]), _texts(document["algorithms"]), key)


@dataclass(frozen=True, slots=True)
class TokenIssuer:
    """Who signs tokens, and what one of them has to say to let its bearer in."""

    issuer: str  # what "iss" has to be, to the letter
    audiences: tuple[str, ...]  # "aud" has to be, or to hold, one of them
    principal_claim: str = "sub"  # the claim that names the principal
    scope: str | None = None  # what "scope" has to hold; None: nothing
    keys: tuple[TokenKey, ...] = ()

    @property
    def rules(self) -> tuple[object, ...]:
        """All but its keys: who was let in by other rules is not let stay."""
        return self.issuer, self.audiences, self.principal_claim, self.scope

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "issuer": self.issuer,
            "audiences": list(self.audiences),
            "principal_claim": self.principal_claim,
            "scope": self.scope,
            "keys": [key.document() for key in self.keys],
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> TokenIssuer:
        """Raises KeyError, TypeError, ValueError."""
        scope = document["scope"]
        return cls(
            _text(document["issuer"]),
            _texts(document["audiences"]),
            _text(document["principal_claim"]),
            None if scope is None else _text(scope),
            tuple(TokenKey.from_document(key) for key in document["keys"]),
        )


@dataclass(frozen=True, slots=True)
class TokenIssuerSet:
    """All token issuers of an instance."""

    version: int = 0
    items: tuple[TokenIssuer, ...] = ()

    def changed(self, items: Sequence[TokenIssuer]) -> TokenIssuerSet:
        """What to write in place of this one."""
        return TokenIssuerSet(self.version + 1, tuple(sorted(items, key=lambda item: item.issuer)))

    def to_json(self) -> bytes:
        """The document of their node."""
        document = {"version": self.version, "items": [item.document() for item in self.items]}
        return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> TokenIssuerSet:
        """Raises KeyError, TypeError, ValueError."""
        version = document["version"]
        if type(version) is not int:
            raise TypeError("version is a whole number")
        return cls(version, tuple(TokenIssuer.from_document(item) for item in document["items"]))


def issuers_problem(items: Sequence[TokenIssuer]) -> str | None:
    """Why these cannot be an instance's, in a sentence; None: they can."""
    if len(items) > MOST_ISSUERS:
        return f"an instance may have {MOST_ISSUERS} token issuers, not {len(items)}"
    if len({item.issuer for item in items}) < len(items):
        return "an instance trusts an issuer once: give one that has several audiences all of them"
    for item in items:
        problem = _problem(item)
        if problem:
            return problem
    size = len(TokenIssuerSet(2**63, tuple(items)).to_json())
    return (
        f"the token issuers of an instance may take {LARGEST_ISSUERS} bytes, not {size}"
        if size > LARGEST_ISSUERS
        else None
    )


def _problem(item: TokenIssuer) -> str | None:
    if not 0 < len(item.audiences) <= MOST_AUDIENCES:
        return f"a token issuer has 1 to {MOST_AUDIENCES} audiences, not {len(item.audiences)}"
    if len(item.keys) > MOST_KEYS:
        return f"a token issuer may have {MOST_KEYS} keys, not {len(item.keys)}"
    texts = [item.issuer, *item.audiences, item.principal_claim, *(() if item.scope is None else (item.scope,))]
    if any(not 0 < len(text) <= LONGEST_TEXT or not text.isprintable() for text in texts):
        return f"an issuer, an audience, a claim and a scope have 1 to {LONGEST_TEXT} printable characters"
    if item.scope is not None and " " in item.scope:
        return "a token issuer wants one scope or none"
    if any(len(key.key) > LARGEST_KEY or len(key.kid) > LONGEST_TEXT for key in item.keys):
        return f"a key takes at most {LARGEST_KEY} bytes, and its id {LONGEST_TEXT} characters"
    return None


def principal_name_problem(name: object) -> str | None:
    """Why a claim cannot name a principal, in a sentence; None: it can. The rules are those of users' names."""
    return user_name_problem(name) if isinstance(name, str) else "the claim that names the principal is not a text"


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _texts(values: Sequence[object]) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise TypeError(f"{values!r} is not a list")
    return tuple(_text(value) for value in values)
