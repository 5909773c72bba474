"""AlterPartitionReassignments and ListPartitionReassignments: for operators, on the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dataplane.handlers.internal.partitions import AT_ONCE, Key, by_topic
from dataplane.handlers.ownership import in_slices, owner
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
from dataplane.protocol.release import released
from dataplane.records.steps import Pace, grouped, taken_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dataplane.controller.context import Partition
    from dataplane.handlers.context import RequestContext
    from dataplane.records.steps import Steps

_LOOKED_AT_US = 3

_OUT_OF_REACH = ApiError(
    ErrorCode.INVALID_REPLICA_ASSIGNMENT, "the topic's instance is not served by all these brokers"
)


async def handle_alter_partition_reassignments(
    ctx: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Each partition by itself. The answer says what has begun, not what is done: that is asked for with the other API.

    The controller is asked for some at a time.
    """
    wanted, outcomes = await in_slices(ctx, _looked_through(ctx, request))
    keys = list(wanted)
    for first in range(0, max(1, len(keys)), AT_ONCE):
        some = keys[first : first + AT_ONCE]
        begun = await ctx.broker.controller.reassign({key: wanted[key] for key in some})
        if begun is None:
            return AlterPartitionReassignmentsResponse(error_code=ErrorCode.NOT_CONTROLLER)
        outcomes |= begun
    responses = await in_slices(ctx, by_topic(outcomes, _response, ReassignableTopicResponse))
    held: list[Any] = [outcomes, wanted, keys]
    del outcomes, wanted, keys
    await in_slices(ctx, released(held))
    return AlterPartitionReassignmentsResponse(responses=responses)


def _looked_through(
    ctx: RequestContext, request: AlterPartitionReassignmentsRequest
) -> Steps[tuple[dict[Key, Sequence[int] | None], dict[Key, ApiError | None]]]:
    """What the controller is to be asked for; and all that is asked for in order, with refusals as far as there are any."""
    pace = Pace()
    wanted: dict[Key, Sequence[int] | None] = {}
    outcomes: dict[Key, ApiError | None] = {}
    for topic in request.topics:
        for row in topic.partitions:
            if pace.over(_LOOKED_AT_US):
                yield None
            key = topic.name, row.partition_index
            outcomes[key] = None if _serves(ctx, topic.name, row.replicas) else _OUT_OF_REACH
            if outcomes[key] is None:
                wanted[key] = row.replicas
            else:
                wanted.pop(key, None)
    return wanted, outcomes


def _response(index: int, refusal: ApiError | None) -> ReassignablePartitionResponse:
    if refusal is None:
        return ReassignablePartitionResponse(index)
    return ReassignablePartitionResponse(index, refusal.code, refusal.message)


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
    return ListPartitionReassignmentsResponse(topics=await in_slices(ctx, _listed(request, ongoing)))


def _listed(
    request: ListPartitionReassignmentsRequest, ongoing: Sequence[Partition]
) -> Steps[tuple[OngoingTopicReassignment, ...]]:
    pace = Pace()
    if request.topics is not None:
        moving = {(partition.topic, partition.index): partition for partition in ongoing}
        named: dict[Key, Partition] = {}
        for topic in request.topics:
            for index in topic.partition_indexes:
                if pace.over(_LOOKED_AT_US):
                    yield None
                found = moving.get((topic.name, index))
                if found is not None:
                    named[topic.name, index] = found
        ongoing = [*named.values()]
    topics: dict[str, list[OngoingPartitionReassignment]] = {}
    for partition in ongoing:
        if pace.over(_LOOKED_AT_US):
            yield None
        assignment = partition.assignment
        topics.setdefault(partition.topic, []).append(
            OngoingPartitionReassignment(partition.index, assignment.replicas, assignment.adding, assignment.removing)
        )
    return (yield from grouped(taken_out(topics), OngoingTopicReassignment, _LOOKED_AT_US, pace))
