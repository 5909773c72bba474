"""What a client may do, as the sets of bits that answers carry (KIP-430): of each kind of resource, what Kafka asks of it.

A bit's number is Kafka's code of the operation (`tenancy.access.Operation`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.tenancy.access import CLUSTER, Resource, ResourceKind, of_topic
from dataplane.tenancy.access import Operation as Op

if TYPE_CHECKING:
    from dataplane.handlers.context import RequestContext

OPERATIONS_NOT_ASKED = -(2**31)
ASKED_US = 25
"""Microseconds that the operations of one resource cost where there are ACLs."""
OPERATIONS = {
    ResourceKind.TOPIC: (
        Op.READ,
        Op.WRITE,
        Op.CREATE,
        Op.DELETE,
        Op.ALTER,
        Op.DESCRIBE,
        Op.DESCRIBE_CONFIGS,
        Op.ALTER_CONFIGS,
    ),
    ResourceKind.GROUP: (Op.READ, Op.DELETE, Op.DESCRIBE),
    ResourceKind.CLUSTER: (
        Op.CREATE,
        Op.ALTER,
        Op.DESCRIBE,
        Op.CLUSTER_ACTION,
        Op.DESCRIBE_CONFIGS,
        Op.ALTER_CONFIGS,
        Op.IDEMPOTENT_WRITE,
    ),
}
"""By the kind of a resource."""


def operations(ctx: RequestContext, resource: Resource) -> int:
    """Those that the session may do."""
    return sum(1 << operation for operation in OPERATIONS[resource.kind] if ctx.may(operation, resource))


def topic_operations(ctx: RequestContext, physical: str, *, is_asked: bool = True) -> int:
    """The same of a topic, where the client asks for them."""
    return operations(ctx, of_topic(physical)) if is_asked else OPERATIONS_NOT_ASKED


def cluster_operations(ctx: RequestContext, *, is_asked: bool) -> int:
    """The same of the cluster. Who may not describe it is told of none, as in Kafka."""
    if not is_asked:
        return OPERATIONS_NOT_ASKED
    return operations(ctx, CLUSTER) if ctx.may(Op.DESCRIBE, CLUSTER) else 0
