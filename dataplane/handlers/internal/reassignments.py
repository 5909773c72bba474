"""AlterPartitionReassignments and ListPartitionReassignments: for operators, on the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.handlers.ownership import owner
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.protocol.messages.reassignment import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dataplane.handlers.context import RequestContext

_OUT_OF_REACH = ApiError(
    ErrorCode.INVALID_REPLICA_ASSIGNMENT, "the topic's instance is not served by all these brokers"
)


async def handle_alter_partition_reassignments(
    ctx: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Each partition by itself. The answer says what has begun, not what is done: that is asked for with the other API."""
    wanted = {(topic.name, row.partition_index): row.replicas for topic in request.topics for row in topic.partitions}
    out_of_reach = {key: _OUT_OF_REACH for key, target in wanted.items() if not _serves(ctx, key[0], target)}
    begun = await ctx.broker.controller.reassign({key: wanted[key] for key in wanted if key not in out_of_reach})
    if begun is None:
        return AlterPartitionReassignmentsResponse(error_code=ErrorCode.NOT_CONTROLLER)
    outcomes = {key: out_of_reach.get(key) or begun[key] for key in wanted}
    topics: dict[str, list[ReassignablePartitionResponse]] = {}
    for (topic, index), refusal in outcomes.items():
        row = (
            ReassignablePartitionResponse(index)
            if refusal is None
            else ReassignablePartitionResponse(index, refusal.code, refusal.message)
        )
        topics.setdefault(topic, []).append(row)
    responses = tuple(ReassignableTopicResponse(topic, tuple(rows)) for topic, rows in topics.items())
    return AlterPartitionReassignmentsResponse(responses=responses)


def _serves(ctx: RequestContext, topic: str, target: Sequence[int] | None) -> bool:
    """Whether the topic's owner has a listener on all of these brokers: its clients could not reach the others."""
    spec = owner(ctx, topic)
    return target is None or spec is None or not spec.brokers or all(broker in spec.brokers for broker in target)


async def handle_list_partition_reassignments(
    ctx: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """What is under way, of all partitions or of those that the request names."""
    ongoing = await ctx.broker.controller.reassigned()
    if ongoing is None:
        return ListPartitionReassignmentsResponse(error_code=ErrorCode.NOT_CONTROLLER)
    named = None
    if request.topics is not None:
        named = {(topic.name, index): None for topic in request.topics for index in topic.partition_indexes}
    topics: dict[str, list[OngoingPartitionReassignment]] = {}
    for partition in ongoing:
        if named is None or (partition.topic, partition.index) in named:
            assignment = partition.assignment
            topics.setdefault(partition.topic, []).append(
                OngoingPartitionReassignment(
                    partition.index, assignment.replicas, assignment.adding, assignment.removing
                )
            )
    return ListPartitionReassignmentsResponse(
        topics=tuple(OngoingTopicReassignment(topic, tuple(rows)) for topic, rows in topics.items())
    )
