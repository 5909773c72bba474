"""The denial matrix: what whoever lacks a right is told, by Apache Kafka 3.9 with its AclAuthorizer and by us.

    python -m tests.differential.denials [--api NAME] [--show-all]

Every API and version x every situation of `SITUATIONS`, each a user of its own with PLAIN: the same ACLs are created on both
sides by CreateAcls, the same requests are asked, and error codes, permitted operations and which elements there are at all
are compared. Each request is asked twice, since the second may be answered by a short cut.

A case says which rights its request needs and what is asked; it is run for each version that both brokers have::

    @case(ApiKey.LIST_OFFSETS, topic("DESCRIBE"))
    def list_offsets(world: World) -> Any: ...          # the request, for world.version
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from quota.contracts.acls import AclOperation, PatternType, ResourceType

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.protocol.api import ApiKey

ORDERS, OTHER, NOWHERE = "orders", "other", "nowhere"
"""Topics: the one that a right is for, one without any, one that does not exist."""
READERS, STRANGERS = "readers", "strangers"
"""Groups: the one that a right is for, and one without any."""
NEW = "new-"
"""In front of what comes into being, or goes."""

SITUATIONS = {
    "none": "no ACL at all",
    "describe": "DESCRIBE of each resource, and nothing more",
    "right": "just the rights that the request needs",
    "all": "ALL on each resource",
    "prefix": "the rights by prefixes of the names",
    "every": "the rights on every resource of the type",
    "elsewhere": "the rights, for another address",
    "host": "the rights, and a DENY for the address",
    "deny": "ALL, and a DENY of the rights",
    "taken": "the rights, which are taken away between the first request and the second",
}
"""By user."""


@dataclass(frozen=True)
class Right:
    """What a request needs of one resource."""

    resource_type: ResourceType
    name: str
    operation: AclOperation
    pattern: PatternType = PatternType.LITERAL


def topic(operation: str, name: str = ORDERS) -> Right:
    return Right(ResourceType.TOPIC, name, AclOperation[operation], _pattern(name))


def group(operation: str, name: str = READERS) -> Right:
    return Right(ResourceType.GROUP, name, AclOperation[operation], _pattern(name))


def transaction(operation: str, name: str = "payments") -> Right:
    return Right(ResourceType.TRANSACTIONAL_ID, name, AclOperation[operation])


def cluster(operation: str) -> Right:
    return Right(ResourceType.CLUSTER, "kafka-cluster", AclOperation[operation])


def _pattern(name: str) -> PatternType:
    return PatternType.PREFIXED if name == NEW else PatternType.LITERAL


@dataclass
class World:
    """What a request may need to know of the side that it is for."""

    version: int
    situation: str
    topic_ids: dict[str, UUID] = field(default_factory=dict)

    def new(self, what: str) -> str:
        """A name that no other version or situation has."""
        return f"{NEW}{what}-{self.version}-{self.situation}"


@dataclass(frozen=True)
class Case:
    """One kind of request."""

    key: ApiKey
    name: str
    rights: tuple[Right, ...]
    make: Callable[[World], Any]
    topics: str | None = None  # topics of this `World.new` have to be there


CASES: list[Case] = []


def case(
    key: ApiKey, *rights: Right, topics: str | None = None
) -> Callable[[Callable[[World], Any]], Callable[[World], Any]]:
    """Registers a request for every version of an API. With several decorators it is asked with other rights as well."""

    def add(make: Callable[[World], Any]) -> Callable[[World], Any]:
        said = " and ".join(f"{right.operation.name} {right.resource_type.name}" for right in rights)
        CASES.append(Case(key, f"{make.__name__} by {said}" if said else make.__name__, rights, make, topics))
        return make

    return add
