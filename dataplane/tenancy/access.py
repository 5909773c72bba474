"""Who may do what: the one place that decides it.

``authorize`` is asked for each resource that a request names: the session, what it wants to do, and to what. The answer is
a permit, or the error that the client is told. The words are those of Kafka's ACLs, so that principals and ACLs come to
stand here and nowhere else. Today the rules are

=================  =================================================================================================
resource           permitted
=================  =================================================================================================
topic              where its own whitelist, if it has one, holds the client's address, and by ACLs; one that the service
                   keeps for the instance (`__sluice_audit`) may be read only
group              by ACLs
transactional id   by ACLs
cluster            by ACLs, all but CLUSTER_ACTION, which is for brokers among themselves
=================  =================================================================================================

What ACLs permit is Kafka's rule (`quota.core.acls`), about the session's principal and its address, with the names that the
tenant has for its topics and groups. An instance without ACLs that allows everyone then (the default) is not asked.

On the internal listener (no instance) it is asked what the role of the session's identity may touch (`security.roles`).

Whether a name belongs to the session's instance is not decided here: what does not is as unknown as what never existed
(`Session.names`). Nor is who may connect: that is asked once, when a connection is accepted (`Instance.admits`), and a
connection ends when the answer changes; until it is closed nothing is served on it (`Instance.ends`).

**A permit is good for one generation of its instance.** Whoever asks again for each request needs nothing more of it. Who
wants to keep it (`requests.fastpath`) compares its generation with the instance's present one: one integer, raised by
whatever could change an answer (`Instance.access_changed`):

* the instance's spec: whitelists, ACLs, how ACLs are meant, who may connect; an instance or a route that is closed;
* throttle rules, the storage fence, and buckets that were replaced. None of them refuses anybody here, but they, too,
  decide whether a request may take a short cut, and are looked at when its permit is renewed.

A proposal (`shadow`) decides nothing. Who asks on behalf of a request has what was permitted judged by it (`judge`).

What is true when a request begins need not be when it is answered. A fetch that waits asks again when it is woken, and is
woken when it is refused by then (`Instance.look_again`); a produce that waits for acks=all was permitted when it was
appended, and is answered as it went; a change that has waited for its turn asks again before it is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dataplane.protocol.errors import ErrorCode
from dataplane.security.roles import may_touch
from quota.contracts.acls import CLUSTER_NAME, READING, AclOperation, ResourceType
from quota.contracts.namespace import is_kept_by_the_service

if TYPE_CHECKING:
    from dataplane.tenancy.session import Session
    from dataplane.tenancy.shadow import Shadow


Operation = AclOperation
"""What somebody wants to do."""
ResourceKind = ResourceType
"""What it is done to."""


class Resource(NamedTuple):
    """One of them; topics, groups and transactional ids by their physical names."""

    kind: ResourceKind
    name: str


CLUSTER = Resource(ResourceKind.CLUSTER, CLUSTER_NAME)
"""There is one, of Kafka's name: the session's own."""


def of_topic(physical: str) -> Resource:
    """A topic, whether it exists or not."""
    return Resource(_TOPIC, physical)


def of_group(physical: str) -> Resource:
    """A group, whether it exists or not."""
    return Resource(ResourceKind.GROUP, physical)


def of_transactional_id(physical: str) -> Resource:
    """A transactional id."""
    return Resource(ResourceKind.TRANSACTIONAL_ID, physical)


class Permit:
    """Says yes, for as long as the instance's access is of this generation."""

    __slots__ = ("generation",)

    def __init__(self, generation: int) -> None:
        self.generation = generation


NO_PERMIT = Permit(-1)
"""Of no generation: it has to be renewed before it is used."""
INTERNAL_GENERATION = 0
"""Of permits on the internal listener: what a role may do changes with the broker's release only."""
_INTERNAL = Permit(INTERNAL_GENERATION)
_TOPIC, _CLUSTER = ResourceKind.TOPIC, ResourceKind.CLUSTER
_REFUSALS = {
    _TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceKind.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceKind.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    _CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
}
_WHY = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "the topic's whitelist or the ACLs do not permit this to the client",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "the ACLs do not permit this to the client for the group",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "the ACLs do not permit this to the client for the transactional id",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "the ACLs do not permit this to the client, or it is for brokers among themselves",
}


def authorize(session: Session, operation: Operation, resource: Resource) -> Permit | ErrorCode:
    """A permit, or why not: one of Kafka's ``…_AUTHORIZATION_FAILED``. Changes nothing."""
    instance, (kind, name) = session.instance, resource
    if instance is None:
        return _INTERNAL if may_touch(session.identity, operation, kind, name) else _REFUSALS[kind]
    if kind is _TOPIC and (
        instance.topic_denied(name, session.peer) or (operation not in READING and is_kept_by_the_service(name))
    ):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if operation is Operation.CLUSTER_ACTION:
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    acls = instance.acls
    if acls is None:
        return instance.permit
    decision = acls.decide(session.principal, session.peer, operation, kind, _tenants(session, resource))
    return instance.permit if decision.allowed else _REFUSALS[kind]


def authorize_creation(session: Session, physical: str) -> Permit | ErrorCode:
    """As Kafka, of a topic to come: CREATE on the cluster is enough, and so is CREATE on the topic."""
    found = authorize(session, Operation.CREATE, of_topic(physical))
    if not isinstance(found, ErrorCode) or is_kept_from(session, physical):
        return found
    of_all = authorize(session, Operation.CREATE, CLUSTER)
    return found if isinstance(of_all, ErrorCode) else of_all


def authorize_idempotence(session: Session) -> Permit | ErrorCode:
    """As Kafka, of a producer id: IDEMPOTENT_WRITE on the cluster, or WRITE on any topic (KIP-679)."""
    found = authorize(session, Operation.IDEMPOTENT_WRITE, CLUSTER)
    instance = session.instance
    if not isinstance(found, ErrorCode) or instance is None or instance.acls is None:
        return found
    decision = instance.acls.decide_by_type(session.principal, session.peer, Operation.WRITE, _TOPIC)
    return instance.permit if decision.allowed else found


def refusal_if_shut_out(session: Session) -> ErrorCode:
    """Of a request that has waited: why its client would not be let in any more; NONE: it would. Its connection is ending."""
    instance = session.instance
    is_in = instance is None or (instance.still_lets_in(session) and not instance.ends(session))
    return ErrorCode.NONE if is_in else ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def judge(session: Session, operation: Operation, resource: Resource) -> None:
    """What was permitted, by the instance's proposal: counted, and nobody is refused anything (`shadow`)."""
    shadow = session.instance.shadow if session.instance is not None else None
    if shadow is not None and shadow.book is not None and not _is_passed(session, shadow, operation, resource):
        shadow.refused(
            session.principal, session.peer, session.route, operation, resource.kind, _tenants(session, resource)
        )


def judge_creation(session: Session, physical: str) -> None:
    """`judge` of what `authorize_creation` permitted."""
    shadow = session.instance.shadow if session.instance is not None else None
    if shadow is None or shadow.book is None:
        return
    who = session.principal, session.peer
    if not shadow.permits(*who, Operation.CREATE, _CLUSTER, CLUSTER_NAME):
        judge(session, Operation.CREATE, of_topic(physical))
    else:
        shadow.permitted()


def judge_idempotence(session: Session) -> None:
    """`judge` of what `authorize_idempotence` permitted."""
    shadow = session.instance.shadow if session.instance is not None else None
    if shadow is None or shadow.book is None:
        return
    if not shadow.permits(session.principal, session.peer, Operation.WRITE, _TOPIC, None):
        judge(session, Operation.IDEMPOTENT_WRITE, CLUSTER)
    else:
        shadow.permitted()


def passes(session: Session, operation: Operation, physical: str) -> bool:
    """Whether the proposal permits what a short cut is about to be taken for; then it is judged, and not again."""
    shadow = session.instance.shadow if session.instance is not None else None
    return shadow is None or shadow.book is None or _is_passed(session, shadow, operation, of_topic(physical))


def _is_passed(session: Session, shadow: Shadow, operation: Operation, resource: Resource) -> bool:
    name = _tenants(session, resource)
    if not shadow.permits(session.principal, session.peer, operation, resource.kind, name):
        return False
    shadow.permitted()
    return True


def _tenants(session: Session, resource: Resource) -> str:
    """A name as the tenant has it. Groups and transactional ids are mapped as topics are."""
    return resource.name if resource.kind is _CLUSTER else session.names.topic_out(resource.name)


def is_kept_from(session: Session, physical: str) -> bool:
    """Whether a topic's own whitelist refuses the client, whatever ACLs say: of answers that ACLs permit as a whole."""
    return session.instance is not None and session.instance.topic_denied(physical, session.peer)


def refusal_of_a_change(session: Session, physical: str) -> ErrorCode:
    """Why who has the right on the cluster may not change this topic: its whitelist, or the service keeps it. NONE: nothing."""
    is_kept = session.instance is not None and is_kept_by_the_service(physical)
    is_refused = is_kept or is_kept_from(session, physical)
    return ErrorCode.TOPIC_AUTHORIZATION_FAILED if is_refused else ErrorCode.NONE


def why(refusal: ErrorCode) -> str:
    """A refusal of `authorize` in a sentence, for answers that have room for one."""
    return _WHY[refusal]
