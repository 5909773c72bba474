"""Which clients ACLs would cut off or let in that are there at this moment, told before the ACLs are made or deleted.

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
from quota.contracts.acls import ANYTHING, AclOperation, PatternType, ResourceType
from quota.core.acls import AclBook
from quota.core.explain_access import USER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from controlplane.kafka.connections import Told
    from controlplane.tenants.models import Organisation
    from quota.contracts.acls import Acl

MOST = connections.MOST


@dataclass(frozen=True, slots=True)
class ClientsCutOff:
    """Clients that do this to a topic now as one principal, and would be refused; or that are connected, and may do it then."""

    topic: str
    principal: str
    operation: str  # READ or WRITE
    clients: tuple[str, ...]  # ``shop-1 (10.0.0.7)``, sorted
    is_let_in: bool = False


def acls_cut_off(
    *,
    organisation: Organisation,
    instance_id: str,
    added: Sequence[Acl] = (),
    removed: Callable[[Acl], bool] | None = None,
) -> list[ClientsCutOff]:
    """By topic, principal and operation; none as well where brokers, or what they go by, cannot be asked. Raises NotFound.

    `removed` says which ACLs would go. Without them a topic may be open to whom none allowed before: those are told of the topics
    that these ACLs name, and of topics that somebody uses now.
    """
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    if removed is None and not any(acl.resource_type is ResourceType.TOPIC for acl in added):
        return []
    try:
        spec = records.spec_read(instance)
        told = connections.read(instance.cluster.address, instance.id, most_connections=MOST, most_talkers=MOST)
    except (Conflict, Unavailable):
        return []
    present = spec.acls.items if spec.acls is not None else ()
    gone = [acl for acl in present if removed is not None and removed(acl)]
    if not any(acl.resource_type is ResourceType.TOPIC for acl in (*added, *gone)):
        return []
    stays = [acl for acl in present if removed is None or not removed(acl)]
    before, after = (AclBook(acls, spec.authorizer) for acls in (present, (*stays, *added)))
    found: dict[tuple[str, str, str], set[str]] = {}
    for principal, address, client, operation, topic in _used(told):
        asked = (principal, address, operation, ResourceType.TOPIC, topic)
        if before.decide(*asked).allowed and not after.decide(*asked).allowed:
            found.setdefault((topic, principal, operation.name), set()).add(connections.client_text(client, address))
    let_in: dict[tuple[str, str, str], set[str]] = {}
    for principal, address, client, topic in _there(told, gone):
        for operation in (AclOperation.READ, AclOperation.WRITE):
            asked = (principal, address, operation, ResourceType.TOPIC, topic)
            if after.decide(*asked).allowed and not before.decide(*asked).allowed:
                let_in.setdefault((topic, principal, operation.name), set()).add(
                    connections.client_text(client, address)
                )
    return [
        *(ClientsCutOff(*key, tuple(sorted(clients))) for key, clients in sorted(found.items())),
        *(ClientsCutOff(*key, tuple(sorted(clients)), is_let_in=True) for key, clients in sorted(let_in.items())),
    ]


def user_connected(*, organisation: Organisation, instance_id: str, name: str) -> tuple[str, ...]:
    """Clients that are connected as a user; none as well where there is no such user, or no broker answers. Raises NotFound.

    Brokers close the connections of a user who is deleted (`tenancy/instance.py`), not of who has his name by a certificate.
    """
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    try:
        if all(user.name != name for user in records.users_read(instance)):
            return ()
    except (Conflict, Unavailable):
        return ()
    return connections.clients_of(instance.cluster.address, instance.id, lambda row: row.principal == f"{USER}{name}")


def _there(told: Told, gone: Sequence[Acl]) -> Iterator[tuple[str, str, str, str]]:
    """Principal, address, client, topic: whoever is connected, and topics that may be opened: those that `gone` names."""
    of_topics = [acl for acl in gone if acl.resource_type is ResourceType.TOPIC]
    literal = {acl.resource_name for acl in of_topics if acl.pattern_type is PatternType.LITERAL}
    prefixes = tuple({acl.resource_name for acl in of_topics if acl.pattern_type is not PatternType.LITERAL})
    used = {talker.topic for answer in told.answers.values() for talker in answer.talkers}
    topics = (literal - {ANYTHING}) | {topic for topic in used if ANYTHING in literal or topic.startswith(prefixes)}
    if not topics:
        return
    there = {
        (row.principal, row.address, row.client_id)
        for answer in told.answers.values()
        for row in answer.connections
        if row.principal
    }
    for principal, address, client in sorted(there):
        for topic in sorted(topics):
            yield principal, address, client, topic


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
