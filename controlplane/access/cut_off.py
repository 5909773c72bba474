"""Which clients ACLs would cut off that use a topic at this moment, told before the ACLs are made.

Brokers say which client moves records of which topic, and by which connections it came; ACLs as they are and as they would
be say who would be refused from then on. A proposal (`proposals.py`) judges what comes in for as long as one likes, and groups
as well: this is the answer at once. It knows nothing of clients that have moved nothing for a minute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.access import records
from controlplane.core.errors import Conflict, Unavailable
from controlplane.instances.selectors import instance_get
from controlplane.kafka import connections
from quota.contracts.acls import AclOperation, ResourceType
from quota.core.acls import AclBook

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from controlplane.kafka.connections import Told
    from controlplane.tenants.models import Organisation
    from quota.contracts.acls import Acl

MOST = 1_000
"""Clients, and connections, that each broker is asked for."""


@dataclass(frozen=True, slots=True)
class ClientsCutOff:
    """Clients that do this to a topic now as one principal, and would be refused."""

    topic: str
    principal: str
    operation: str  # READ or WRITE
    clients: tuple[str, ...]  # ``shop-1 (10.0.0.7)``, sorted


def acls_cut_off(*, organisation: Organisation, instance_id: str, added: Sequence[Acl]) -> list[ClientsCutOff]:
    """By topic, principal and operation; none as well where brokers, or what they go by, cannot be asked. Raises NotFound."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    if not any(acl.resource_type is ResourceType.TOPIC for acl in added):
        return []
    try:
        spec = records.spec_read(instance)
        told = connections.read(instance.cluster.address, instance.id, most_connections=MOST, most_talkers=MOST)
    except (Conflict, Unavailable):
        return []
    present = spec.acls.items if spec.acls is not None else ()
    before, after = (AclBook(acls, spec.authorizer) for acls in (present, (*present, *added)))
    found: dict[tuple[str, str, str], set[str]] = {}
    for principal, address, client, operation, topic in _used(told):
        asked = (principal, address, operation, ResourceType.TOPIC, topic)
        if before.decide(*asked).allowed and not after.decide(*asked).allowed:
            found.setdefault((topic, principal, operation.name), set()).add(f"{client or '-'} ({address})")
    return [ClientsCutOff(*key, tuple(sorted(clients))) for key, clients in sorted(found.items())]


def _used(told: Told) -> Iterator[tuple[str, str, str, AclOperation, str]]:
    """Principal, address, client, what it does, topic. A client that has come as several principals is told as each of them."""
    principals: dict[tuple[str, str], set[str]] = {}
    for answer in told.answers.values():
        for row in answer.connections:
            if row.principal:
                principals.setdefault((row.client_id, row.address), set()).add(row.principal)
    for answer in told.answers.values():
        for talker in answer.talkers:
            moved = ((AclOperation.WRITE, talker.produced_bytes), (AclOperation.READ, talker.consumed_bytes))
            for principal in principals.get((talker.client_id, talker.address), ()):
                for operation in (operation for operation, moved_bytes in moved if moved_bytes):
                    yield principal, talker.address, talker.client_id, operation, talker.topic
