"""Access control lists: who may do what to which topics, groups and so on of an instance, at ``/sluice/acls/<id>``.

::

    {"version": 5, "items": [
        {"resource_type": "TOPIC", "pattern_type": "PREFIXED", "resource_name": "orders.", "principal": "User:alice",
         "host": "*", "operation": "READ", "permission_type": "ALLOW"}]}

The words are those of Kafka's `AclBinding`. The tenant's AdminClient and the control plane both write them, by
compare-and-set; `version` counts these writes, as that of throttle rules does. A node that is missing is no ACLs; with one
that is not legible nobody gets in, until it is (`quota.contracts.apart.UnreadAccessError`).

Names of resources are the tenant's own. A host is ``*``, an address, or a CIDR, which Kafka does not have.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from quota.contracts.items import read_items
from quota.contracts.networks import NO_ZONES, ZONE, network_of, without_zone
from quota.steps import Steps

MOST_ACLS = 5_000
LARGEST_ACLS = 900_000
"""Bytes of the document: it is a node of ZooKeeper."""
LONGEST_NAME = 255
ANYTHING = "*"
"""The host that is everywhere, and the literal resource that is each of its type."""
CLUSTER_NAME = "kafka-cluster"


class ResourceType(IntEnum):
    """What an ACL is about, with Kafka's codes."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How its name is meant, with Kafka's codes."""

    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """What somebody does, with Kafka's codes."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14


READING: Final = frozenset({AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS})
"""All that a tenant may do, whatever ACLs say, with a topic that the service keeps for it."""


class Permission(IntEnum):
    """Whether he may, with Kafka's codes."""

    DENY = 2
    ALLOW = 3


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    """One rule. Two of the same members are one."""

    resource_type: ResourceType
    pattern_type: PatternType
    resource_name: str
    principal: str  # "User:alice", or "User:*": everybody
    host: str
    operation: AclOperation
    permission: Permission

    def document(self) -> dict[str, str]:
        """For JSON."""
        return {
            "resource_type": self.resource_type.name,
            "pattern_type": self.pattern_type.name,
            "resource_name": self.resource_name,
            "principal": self.principal,
            "host": self.host,
            "operation": self.operation.name,
            "permission_type": self.permission.name,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Acl:
        """Raises KeyError, TypeError, ValueError. A host with a zone, which is not taken any more, is the address."""
        host = document["host"]
        acl = cls(
            ResourceType[document["resource_type"]],
            PatternType[document["pattern_type"]],
            document["resource_name"],
            document["principal"],
            without_zone(host) if type(host) is str else host,
            AclOperation[document["operation"]],
            Permission[document["permission_type"]],
        )
        if any(type(text) is not str for text in (acl.resource_name, acl.principal, acl.host)):
            raise TypeError("names, principals and hosts are texts")
        if acl.host != ANYTHING:
            network_of(acl.host)
        return acl


@dataclass(frozen=True, slots=True)
class AclSet:
    """All ACLs of an instance, sorted."""

    version: int = 0
    items: tuple[Acl, ...] = ()

    def changed(self, items: Sequence[Acl]) -> AclSet:
        """What to write in place of this one."""
        return AclSet(self.version + 1, tuple(sorted(set(items))))

    def to_json(self) -> bytes:
        """The document of their node."""
        return _to_bytes({"version": self.version, "items": [acl.document() for acl in self.items]})

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> AclSet:
        """Raises KeyError, TypeError, ValueError. What is not known is not left out: a rule that denies could be."""
        return cls(document["version"], tuple(Acl.from_document(item) for item in document["items"]))

    @classmethod
    def reading(cls, data: bytes) -> Steps[AclSet]:
        """The same of bytes, in steps: thousands take 25 ms. Raises KeyError, TypeError, ValueError."""
        version, items = yield from read_items(data, Acl.from_document)
        return cls(version, tuple(items))


def acls_problem(items: Sequence[Acl]) -> str | None:
    """Why these cannot be an instance's, in a sentence; None: they can."""
    if len(items) > MOST_ACLS:
        return f"an instance may have {MOST_ACLS} ACLs, not {len(items)}"
    for acl in items:
        problem = acl_problem(acl)
        if problem:
            return problem
    size = len(AclSet(2**63, tuple(items)).to_json())
    return f"the ACLs of an instance may take {LARGEST_ACLS} bytes, not {size}" if size > LARGEST_ACLS else None


def acl_problem(acl: Acl) -> str | None:
    """Why there cannot be such an ACL, in a sentence; None: there can."""
    fault = acl_fault(acl)
    return fault[1] if fault else None


def acl_fault(acl: Acl) -> tuple[str, str] | None:
    """`acl_problem` with the member that it is about."""
    if not 0 < len(acl.resource_name) <= LONGEST_NAME:
        return "resource_name", f"a resource's name has 1 to {LONGEST_NAME} characters"
    if acl.resource_type is ResourceType.CLUSTER and acl.resource_name not in (CLUSTER_NAME, ANYTHING):
        return "resource_name", f"the one resource of type CLUSTER is called {CLUSTER_NAME}"
    kind, separator, name = acl.principal.partition(":")
    if kind != "User" or not separator or not 0 < len(name) <= LONGEST_NAME:
        return "principal", f'a principal is "User:" and a name of 1 to {LONGEST_NAME} characters, or "User:*"'
    if acl.host != ANYTHING:
        if ZONE in acl.host:
            return "host", f"a host is *, an address, or a CIDR; {NO_ZONES}"
        try:
            network_of(acl.host)
        except ValueError:
            return "host", "a host is *, an address, or a CIDR such as 10.0.0.0/8"
    return None


def _to_bytes(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
