"""Who may do what: the one place that decides it.

``authorize`` is asked for each resource that a request names: the session, what it wants to do, and to what. The answer is
a permit, or the error that the client is told. The words are those of Kafka's ACLs, so that principals and ACLs come to
stand here and nowhere else. Today the rules are

=================  =================================================================================================
resource           permitted
=================  =================================================================================================
topic              where its own whitelist, if it has one, holds the client's address: every operation alike
group              to every session of the instance
cluster            all but CLUSTER_ACTION, which is for brokers among themselves
transactional id   to nobody: there is no coordinator for them
=================  =================================================================================================

The internal listener (no instance) may do everything but use a transactional id. Whether a name belongs to the session's
instance is not decided here: what does not is as unknown as what never existed (`Session.names`). Nor is who may connect:
that is asked once, when a connection is accepted (`Instance.admits`), and a connection ends when the answer changes.

**A permit is good for one generation of its instance.** Whoever asks again for each request needs nothing more of it. Who
wants to keep it (`requests.fastpath`) compares its generation with the instance's present one: one integer, raised by
whatever could change an answer (`Instance.access_changed`):

* the instance's spec: whitelists;
* throttle rules, the storage fence, and buckets that were replaced. None of them refuses anybody here, but they, too,
  decide whether a request may take a short cut, and are looked at when its permit is renewed.

What is true when a request begins need not be when it is answered. A fetch that waits asks again when it is woken; a produce
that waits for acks=all was permitted when it was appended, and is answered as it went.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from dataplane.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from dataplane.tenancy.session import Session


class Operation(IntEnum):
    """What somebody wants to do, with Kafka's codes (`AclOperation`)."""

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


class ResourceKind(IntEnum):
    """What it is done to, with Kafka's codes (`ResourceType`)."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


class Resource(NamedTuple):
    """One of them; topics, groups and transactional ids by their physical names."""

    kind: ResourceKind
    name: str


CLUSTER = Resource(ResourceKind.CLUSTER, "kafka-cluster")
"""There is one, of Kafka's name: the session's own."""


def of_topic(physical: str) -> Resource:
    """A topic, whether it exists or not."""
    return Resource(_TOPIC, physical)


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
_INTERNAL = Permit(0)
_TOPIC = ResourceKind.TOPIC
_WHY = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "the topic's whitelist does not hold this address",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional ids are not served",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "this is for the brokers among themselves",
}


def authorize(session: Session, operation: Operation, resource: Resource) -> Permit | ErrorCode:
    """A permit, or why not: one of Kafka's ``…_AUTHORIZATION_FAILED``. Changes nothing."""
    instance, kind = session.instance, resource.kind
    if kind is ResourceKind.TRANSACTIONAL_ID:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if instance is None:
        return _INTERNAL
    if kind is _TOPIC and instance.topic_denied(resource.name, session.peer):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if operation is Operation.CLUSTER_ACTION:
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return instance.permit


def why(refusal: ErrorCode) -> str:
    """A refusal of `authorize` in a sentence, for answers that have room for one."""
    return _WHY[refusal]
