"""How a process proves to ZooKeeper which party it is, and how an ACL names a party.

ZooKeeper's scheme `digest`: a connection says ``user:password``; an ACL holds ``user:base64(SHA1(user:password))``, its
*verifier*. The user of a party is ``sluice-<party>``; its password is made of the cluster's secret::

    HMAC-SHA256(cluster secret, "sluice zookeeper " + party), 64 hexadecimal digits

It is no credential of the internal listener or of a master (`quota.contracts.identity` has another context), nor the other way
round: what ZooKeeper or a listener on its network learns lets nobody in elsewhere.

While the secret is being replaced, a process knows two. It says the logins of both, and nodes that it makes are open to both;
so it does not matter which of them another process, or a node, knows (`docs/runbooks/zookeeper-access.md`).

Who shall not have the cluster's secret is given its own login and everybody's verifiers, as member ``zookeeper`` of its secrets
file (`manage.py zookeeper_login --file` prints it)::

    {"zookeeper": {"logins": ["sluice-controlplane:…"], "verifiers": {"brokers": ["sluice-brokers:…="], …}}}
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from quota.contracts.instance import ContractError
from quota.contracts.zookeeper import Party, Right, Row

_CONTEXT = "sluice zookeeper "
_USER = "sluice-"
WORLD = ("world", "anyone")
DIGEST = "digest"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a node's ACL."""

    rights: Right
    scheme: str
    id: str


OPEN = (Entry(Right(31), *WORLD),)
"""Everybody may do everything: ZooKeeper's own default."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Files in PEM: whom to trust; what to show, where the ensemble asks for it."""

    ca: str
    certificate: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class Access:
    """What a client of ZooKeeper says of itself, and for whom the nodes are that it makes.

    `closed`: for those only whom the table names; otherwise they are for everybody, as before there were ACLs. Logins are
    said in either case, so that processes can be closed one after the other.
    """

    logins: tuple[str, ...] = field(default=(), repr=False)
    verifiers: Mapping[Party, tuple[str, ...]] = field(default_factory=dict, repr=False)
    closed: bool = False
    tls: Tls | None = None

    def login_of(self, party: Party) -> str | None:
        """What is said as this party; None: nothing is."""
        return next((said for said in self.logins if said.startswith(f"{_USER}{party}:")), None)

    def entries(self, row: Row) -> tuple[Entry, ...]:
        """The ACL of a node of this row: each party's rights, once for each secret that is known."""
        if not self.closed:
            return OPEN
        return self.closed_entries(row)

    def closed_entries(self, row: Row) -> tuple[Entry, ...]:
        """As `entries`, whether nodes are made so or not."""
        return tuple(
            Entry(rights, DIGEST, verifier)
            for party, rights in row.rights.items()
            for verifier in self.verifiers.get(party, ())
        )


NOBODY = Access()
"""Says nothing, makes nodes that are everybody's."""


def login(secret: str, party: Party) -> str:
    """What a party says to ZooKeeper: ``user:password``."""
    password = hmac.new(secret.encode(), (_CONTEXT + party).encode(), hashlib.sha256).hexdigest()
    return f"{_USER}{party}:{password}"


def verifier(said: str) -> str:
    """How an ACL names whoever says this."""
    # SHA-1 is ZooKeeper's choice; it hides 256 random bits, which nobody finds by trying.
    digest = hashlib.sha1(said.encode(), usedforsecurity=False).digest()
    return f"{said.partition(':')[0]}:{b64encode(digest).decode()}"


def access_by_secret(secrets: Sequence[str], party: Party, *, closed: bool = True, tls: Tls | None = None) -> Access:
    """Of a process that knows the cluster's secret: the one in force first, then others that are accepted."""
    known = [secret for secret in dict.fromkeys(secrets) if secret]
    return Access(
        logins=tuple(login(secret, party) for secret in known),
        verifiers={each: tuple(verifier(login(secret, each)) for secret in known) for each in Party},
        closed=closed,
        tls=tls,
    )


def access_given(document: Mapping[str, Any], *, closed: bool = True, tls: Tls | None = None) -> Access:
    """Of a process that does not, from the member ``zookeeper`` of its secrets file. Raises ContractError, quoting nothing."""
    logins, verifiers = document.get("logins"), document.get("verifiers")
    if not _are_texts(logins) or not isinstance(verifiers, Mapping):
        raise ContractError("secrets: zookeeper has logins, a list, and verifiers, an object of lists")
    if set(verifiers) != set(Party) or not all(_are_texts(each) for each in verifiers.values()):
        raise ContractError(f"secrets: zookeeper.verifiers has to name each of {', '.join(Party)}")
    known = {party: tuple(verifiers[party]) for party in Party}
    return Access(tuple(logins), known, closed, tls)


def document_given(secrets: Sequence[str], party: Party) -> dict[str, Any]:
    """What `access_given` reads: of one party, for a process that shall not have the secret."""
    access = access_by_secret(secrets, party)
    return {"logins": list(access.logins), "verifiers": {each.value: list(access.verifiers[each]) for each in Party}}


def _are_texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and bool(value) and all(isinstance(each, str) and ":" in each for each in value)
