"""FindCoordinator: which broker keeps a group (key type 0) or a transactional id (key type 1).

The coordinator is the leader of the partition of an internal topic that the name hashes to. The topic is created when
somebody first asks. The key is the client's name, which the codec cannot map because its meaning depends on the type;
it is mapped here, and answered as it was asked. Of share groups (key type 2, from v6 on) there are none: as any other type.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dataplane.cluster.metadata import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from dataplane.coordination.placement import partition_of
from dataplane.handlers.awaited_topic import topic_exists
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from dataplane.records.steps import each
from dataplane.tenancy.access import Operation, of_transactional_id, why

if TYPE_CHECKING:
    from dataplane.groups.coordinator import GroupCoordinator
    from dataplane.handlers.context import RequestContext
    from dataplane.handlers.outcome import Reply
    from dataplane.records.steps import Steps
    from dataplane.transactions.coordinator import TransactionCoordinator

    _Coordinator = GroupCoordinator | TransactionCoordinator

GROUP, TRANSACTION = 0, 1
_TOPICS = {GROUP: OFFSETS_TOPIC, TRANSACTION: TRANSACTIONS_TOPIC}

_SENTENCES = {
    ErrorCode.GROUP_AUTHORIZATION_FAILED: why(ErrorCode.GROUP_AUTHORIZATION_FAILED),
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: why(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ErrorCode.INVALID_REQUEST: "there is no coordinator for keys of this type",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "the coordinator is not available",
}

_KEY_US = 16


def handle_find_coordinator(ctx: RequestContext, request: FindCoordinatorRequest) -> Reply:
    """One key, or (v4) several of one type: in steps, each as it is when its turn comes."""
    topic = _TOPICS.get(request.key_type)
    if topic is not None and not ctx.broker.metadata.partitions(topic):
        return _when_created(ctx, topic, request)
    return _answer(ctx, request)


async def _when_created(ctx: RequestContext, topic: str, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    await topic_exists(ctx, topic)
    return await ctx.broker.slices.run(ctx.owner, _answer(ctx, request))


def _answer(ctx: RequestContext, request: FindCoordinatorRequest) -> Steps[FindCoordinatorResponse]:
    if ctx.version >= 4:
        found = yield from each(request.coordinator_keys, partial(_find, ctx, request.key_type), _KEY_US)
        return FindCoordinatorResponse(coordinators=tuple(found))
    only = _find(ctx, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message or "NONE",  # Kafka's word in these versions
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def _find(ctx: RequestContext, key_type: int, key: str) -> Coordinator:
    topic = _TOPICS.get(key_type)
    if topic is None:
        return _nobody(key, ErrorCode.INVALID_REQUEST)
    coordinator: _Coordinator
    if key_type == TRANSACTION:
        physical, coordinator = ctx.session.names.transactional_id_in(key), ctx.broker.transactions
        refusal = ctx.refusal(Operation.DESCRIBE, of_transactional_id(physical))
    else:
        physical, coordinator = ctx.session.names.group_in(key), ctx.broker.groups
        refusal = ctx.group_refusal(Operation.DESCRIBE, physical)
    if refusal:
        return _nobody(key, refusal)
    partitions = ctx.broker.metadata.partitions(topic)
    if not partitions:
        return _nobody(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    index = partition_of(physical, len(partitions))
    leader = partitions[index].leader
    address = ctx.broker_address(leader) if leader in ctx.broker.metadata.brokers else None
    if address is None or coordinator.has_failed(index):
        return _nobody(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return Coordinator(key, leader, address[0], address[1], ErrorCode.NONE, "")


def _nobody(key: str, error: ErrorCode) -> Coordinator:
    return Coordinator(key, -1, "", -1, error, _SENTENCES[error])
