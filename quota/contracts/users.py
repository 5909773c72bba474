"""The users of an instance, with which clients log in by SASL, at ``/sluice/users/<id>``.

::

    {"version": 3, "items": [{"name": "alice", "credentials": [
        {"mechanism": "SCRAM-SHA-256", "salt": "<base64>", "iterations": 8192, "stored_key": "<base64>",
         "server_key": "<base64>", "until_ms": null}]}]}

The tenant's AdminClient and the control plane both write them, by compare-and-set; `version` counts these writes. No password
stands anywhere, only what verifies one (RFC 5802); PLAIN is verified by the same. A missing node is no users; with one that
is not legible nobody gets in.

**Two passwords for a while.** A user has at most two credentials of a mechanism: the present one, with "until_ms" null, and the
one before it, which is good until then. Both have the same salt and iterations, because a server says these before it can know
which password a client has: a proof that fits either is good, and is answered with that one's server key.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from quota.contracts.items import read_items
from quota.steps import Steps

MOST_USERS = 500
LARGEST_USERS = 900_000
"""Bytes of the document: it is a node of ZooKeeper."""
LONGEST_NAME = 255
RESERVED_NAMES = ("*", "ANONYMOUS")
"""Of the principals that are everybody, and whoever has not logged in."""
LEAST_ITERATIONS = 4_096
MOST_ITERATIONS = 16_384
DEFAULT_ITERATIONS = 8_192
SALT_BYTES = 24


class ScramMechanism(StrEnum):
    """By which hash a credential verifies."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"


@dataclass(frozen=True, slots=True)
class Credential:
    """Verifies one password by one mechanism."""

    mechanism: ScramMechanism
    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes
    until_ms: int | None = None  # of the wall's clock; None: until it is replaced

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "mechanism": self.mechanism.value,
            "salt": _text(self.salt),
            "iterations": self.iterations,
            "stored_key": _text(self.stored_key),
            "server_key": _text(self.server_key),
            "until_ms": self.until_ms,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Credential:
        """Raises KeyError, TypeError, ValueError."""
        until_ms, iterations = document["until_ms"], document["iterations"]
        if type(iterations) is not int or iterations < LEAST_ITERATIONS or type(until_ms) not in (int, type(None)):
            raise ValueError("iterations and until_ms")
        return cls(
            ScramMechanism(document["mechanism"]),
            _bytes(document["salt"]),
            iterations,
            _bytes(document["stored_key"]),
            _bytes(document["server_key"]),
            until_ms,
        )


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who may log in. On a connection he is the principal ``User:<name>``."""

    name: str
    credentials: tuple[Credential, ...]

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {"name": self.name, "credentials": [one.document() for one in self.credentials]}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> User:
        """Raises KeyError, TypeError, ValueError."""
        return cls(document["name"], tuple(Credential.from_document(one) for one in document["credentials"]))

    def of(self, mechanism: ScramMechanism) -> tuple[Credential, ...]:
        """Those of a mechanism, the present one first."""
        return tuple(
            sorted((one for one in self.credentials if one.mechanism is mechanism), key=lambda one: one.until_ms or 0)
        )


@dataclass(frozen=True, slots=True)
class UserSet:
    """All users of an instance, by name."""

    version: int = 0
    items: tuple[User, ...] = ()

    def changed(self, items: Sequence[User]) -> UserSet:
        """What to write in place of this one."""
        return UserSet(self.version + 1, tuple(sorted(items, key=lambda user: user.name)))

    def to_json(self) -> bytes:
        """The document of their node."""
        return _to_bytes({"version": self.version, "items": [user.document() for user in self.items]})

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> UserSet:
        """Raises KeyError, TypeError, ValueError."""
        return cls(document["version"], tuple(User.from_document(item) for item in document["items"]))

    @classmethod
    def reading(cls, data: bytes) -> Steps[UserSet]:
        """The same of bytes, in steps. Raises KeyError, TypeError, ValueError."""
        version, items = yield from read_items(data, User.from_document)
        return cls(version, tuple(items))


def users_problem(items: Sequence[User]) -> str | None:
    """Why these cannot be an instance's, in a sentence; None: they can."""
    if len(items) > MOST_USERS:
        return f"an instance may have {MOST_USERS} users, not {len(items)}"
    for user in items:
        problem = user_name_problem(user.name)
        if problem:
            return problem
    size = len(UserSet(2**63, tuple(items)).to_json())
    return f"the users of an instance may take {LARGEST_USERS} bytes, not {size}" if size > LARGEST_USERS else None


def user_name_problem(name: str) -> str | None:
    """Why nobody can be called so, in a sentence; None: somebody can."""
    if not 0 < len(name) <= LONGEST_NAME:
        return f"a user's name has 1 to {LONGEST_NAME} characters"
    if name in RESERVED_NAMES:
        return f"no user can be called {name}: ACLs mean something else by it"
    return None if name.isprintable() else "a user's name has printable characters only"


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _to_bytes(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
