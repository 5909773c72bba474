"""Who the processes of one cluster are to each other, and how each of them says so.

===================  ==============================================================================================
identity             role
===================  ==============================================================================================
``broker-<id>``      a broker: what brokers ask of each other, each as itself
``master-<id>``      a flow master
``controlplane``     the web process, the worker
``metering``         the Spark job that reads the usage records
``operator``         a person with Kafka's own tools
``monitoring``       whoever collects metrics of masters
===================  ==============================================================================================

Each has a credential of its own, ``HMAC-SHA256(cluster secret, "sluice identity " + name)`` in hexadecimal: whoever has one
of them has no other, nor the secret. Who has to know others again (brokers and masters) has the secret. The secrets file of
a process is one JSON object with these members; those of others are ignored::

    {"cluster_secret": "…",                 of brokers and masters; others may have it and need not
     "accepted_cluster_secrets": ["…"],     known as well, while the secret is being replaced
     "credentials": {"metering": "…"}}      of who has no secret: its own

Over HTTP it is said as ``Authorization: Bearer <identity>.<credential>``.

Before there were identities, everybody said the secret itself, by any name. `SharedSecret` is for the change from there.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from quota.contracts.instance import ContractError

_CONTEXT = "sluice identity "
_BEARER = "Bearer "
HIGHEST_ID = 2**31 - 1


class Role(StrEnum):
    """What an identity is, which says what it may do (`dataplane.security.roles`)."""

    BROKER = "broker"
    MASTER = "master"
    CONTROL_PLANE = "controlplane"
    METERING = "metering"
    OPERATOR = "operator"
    MONITORING = "monitoring"
    ANYBODY = "anybody"  # there is no way to tell: the shared secret, or a listener without authentication


_NUMBERED = (Role.BROKER, Role.MASTER)


class SharedSecret(StrEnum):
    """What the cluster secret itself is good for, as a password."""

    REFUSED = "refused"
    ACCEPTED = "accepted"  # others may still say it
    SAID = "said"  # this process says it as well: some of the others know nothing else


@dataclass(frozen=True, slots=True)
class Identity:
    """One process of the cluster. Brokers and masters have numbers."""

    role: Role
    number: int | None = None

    @property
    def name(self) -> str:
        """As it is said."""
        return self.role.value if self.number is None else f"{self.role.value}-{self.number}"


ANYBODY = Identity(Role.ANYBODY)
CONTROL_PLANE = Identity(Role.CONTROL_PLANE)
METERING = Identity(Role.METERING)
OPERATOR = Identity(Role.OPERATOR)
MONITORING = Identity(Role.MONITORING)
_SINGLE = {each.name: each for each in (CONTROL_PLANE, METERING, OPERATOR, MONITORING)}


def broker(number: int) -> Identity:
    """A broker's."""
    return Identity(Role.BROKER, number)


def master(number: int) -> Identity:
    """A master's."""
    return Identity(Role.MASTER, number)


def identity_of(name: str) -> Identity | None:
    """Whose name this is; None: nobody's. There is one way to write each."""
    single = _SINGLE.get(name)
    if single is not None:
        return single
    role, _, digits = name.partition("-")
    if role not in _NUMBERED or not (digits.isascii() and digits.isdigit()) or len(digits) > len(str(HIGHEST_ID)):
        return None
    found = Identity(Role(role), int(digits))
    return found if found.name == name and int(digits) <= HIGHEST_ID else None


def credential(secret: str, name: str) -> str:
    """What `name` proves itself with: 64 hexadecimal digits."""
    return hmac.new(secret.encode(), (_CONTEXT + name).encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class Keys:
    """What a process has of the cluster's secrets. Without any, it knows nobody and can prove nothing."""

    secret: str = field(default="", repr=False)
    accepted: tuple[str, ...] = field(default=(), repr=False)
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    shared: SharedSecret = SharedSecret.REFUSED

    @classmethod
    def from_document(cls, document: Any, shared: str = SharedSecret.REFUSED) -> Keys:
        """Of a secrets file. Raises ContractError, without what is in it."""
        if not isinstance(document, Mapping):
            raise ContractError("secrets: not a JSON object")
        secret, accepted = document.get("cluster_secret", ""), document.get("accepted_cluster_secrets", [])
        credentials = document.get("credentials", {})
        if not isinstance(secret, str):
            raise ContractError("secrets: cluster_secret is not a string")
        if not isinstance(accepted, list) or not all(isinstance(each, str) and each for each in accepted):
            raise ContractError("secrets: accepted_cluster_secrets is not a list of strings")
        if not isinstance(credentials, Mapping) or not all(isinstance(each, str) for each in credentials.values()):
            raise ContractError("secrets: credentials is not an object of strings")
        if shared not in tuple(SharedSecret):
            raise ContractError(f"shared_secret must be one of {', '.join(SharedSecret)}, not {shared!r}")
        return cls(secret, tuple(accepted), dict(credentials), SharedSecret(shared))

    def own(self, identity: Identity) -> str | None:
        """What to say as this identity; None: nothing is known to say."""
        if self.shared == SharedSecret.SAID and self.secret:
            return self.secret
        given = self.credentials.get(identity.name)
        return given or (credential(self.secret, identity.name) if self.secret else None)

    def bearer(self, identity: Identity) -> str | None:
        """The value of an Authorization header; None as of `own`."""
        said = self.own(identity)
        return None if said is None else f"{_BEARER}{identity.name}.{said}"

    def bearer_proven(self, header: str) -> Identity | None:
        """Who says it by this header."""
        scheme, token = header[: len(_BEARER)], header[len(_BEARER) :].strip()
        name, dot, said = token.partition(".")
        return self.proven(name, said) if dot and scheme.lower() == _BEARER.lower() else None

    def proven(self, name: str, said: str) -> Identity | None:
        """Who says this by that name; None: nobody that is known. Each comparison takes the same time."""
        known = [secret for secret in (self.secret, *self.accepted) if secret]
        identity = identity_of(name)
        is_own = is_shared = False
        for secret in known:
            is_own |= identity is not None and _equal(said, credential(secret, name))
            is_shared |= _equal(said, secret)
        if is_own:
            return identity
        return ANYBODY if is_shared and self.shared != SharedSecret.REFUSED else None


def _equal(said: str, expected: str) -> bool:
    return hmac.compare_digest(said.encode(errors="surrogatepass"), expected.encode())
