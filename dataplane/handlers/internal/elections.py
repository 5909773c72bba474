"""ElectLeaders: for operators, on the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dataplane.controller.operators.requested_elections import ElectionType
from dataplane.handlers.internal.partitions import AT_ONCE, Key, by_topic, keys_of
from dataplane.handlers.ownership import in_slices
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.protocol.messages.reassignment import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from dataplane.protocol.release import released

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dataplane.handlers.context import RequestContext

_NOT_CONTROLLER = ApiError(ErrorCode.NOT_CONTROLLER, "this broker is not the controller")


async def handle_elect_leaders(ctx: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Each partition by itself; of all partitions (null) only those are told of that needed an election.

    The controller is asked for some at a time, and has the request's time in all.
    """
    if request.election_type not in tuple(ElectionType):
        return ElectLeadersResponse(error_code=ErrorCode.INVALID_REQUEST)
    kind, clock = ElectionType(request.election_type), ctx.broker.doors.clock
    deadline = clock.monotonic() + request.timeout_ms / 1000
    keys = None
    if request.topic_partitions is not None:
        rows = ((topic.topic, topic.partitions) for topic in request.topic_partitions)
        keys = await in_slices(ctx, keys_of(rows))
    outcomes: dict[Key, ApiError | None] = {}
    for some in [None] if keys is None else [keys[first : first + AT_ONCE] for first in range(0, len(keys), AT_ONCE)]:
        left_s = max(0.0, deadline - clock.monotonic())
        found = await ctx.broker.controller.elect(some, kind, left_s)
        outcomes |= dict.fromkeys(_all(ctx) if some is None else some, _NOT_CONTROLLER) if found is None else found
    results = await in_slices(ctx, by_topic(outcomes, _result, ReplicaElectionResult))
    held: list[Any] = [outcomes, keys or []]
    del outcomes, keys
    await in_slices(ctx, released(held))
    return ElectLeadersResponse(replica_election_results=results)


def _all(ctx: RequestContext) -> Sequence[Key]:
    metadata = ctx.broker.metadata
    return [(topic, index) for topic in metadata.topics() for index in metadata.partitions(topic)]


def _result(index: int, refusal: ApiError | None) -> PartitionResult:
    return PartitionResult(index) if refusal is None else PartitionResult(index, refusal.code, refusal.message)
