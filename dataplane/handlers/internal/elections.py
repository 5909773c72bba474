"""ElectLeaders: for operators, on the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.controller.operators.requested_elections import ElectionType
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.protocol.messages.reassignment import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dataplane.handlers.context import RequestContext

_NOT_CONTROLLER = ApiError(ErrorCode.NOT_CONTROLLER, "this broker is not the controller")


async def handle_elect_leaders(ctx: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Each partition by itself; of all partitions (null) only those are told of that needed an election."""
    if request.election_type not in tuple(ElectionType):
        return ElectLeadersResponse(error_code=ErrorCode.INVALID_REQUEST)
    keys = None
    if request.topic_partitions is not None:
        keys = [(topic.topic, index) for topic in request.topic_partitions for index in topic.partitions]
    outcomes = await ctx.broker.controller.elect(keys, ElectionType(request.election_type), request.timeout_ms / 1000)
    if outcomes is None:
        outcomes = dict.fromkeys(_all(ctx) if keys is None else keys, _NOT_CONTROLLER)
    return ElectLeadersResponse(replica_election_results=_results(outcomes))


def _all(ctx: RequestContext) -> list[tuple[str, int]]:
    metadata = ctx.broker.metadata
    return [(topic, index) for topic in metadata.topics() for index in metadata.partitions(topic)]


def _results(outcomes: Mapping[tuple[str, int], ApiError | None]) -> tuple[ReplicaElectionResult, ...]:
    topics: dict[str, list[PartitionResult]] = {}
    for (topic, index), refusal in outcomes.items():
        row = PartitionResult(index) if refusal is None else PartitionResult(index, refusal.code, refusal.message)
        topics.setdefault(topic, []).append(row)
    return tuple(ReplicaElectionResult(topic, tuple(rows)) for topic, rows in topics.items())
