"""CreatePartitions: on the controller, within the limits of the instance that owns the topic."""

from __future__ import annotations

from functools import partial

from dataplane.cluster.metadata import COORDINATORS_TOPICS
from dataplane.controller.controller import MorePartitions
from dataplane.handlers.admin.once_named import ASSIGNED_US, Asked, answered
from dataplane.handlers.admin.tolls import toll_of
from dataplane.handlers.context import RequestContext
from dataplane.handlers.ownership import owner
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.protocol.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from dataplane.records.steps import Pace, Steps, each
from dataplane.tenancy.access import Operation

_IS_STRICT_SINCE = 3
"""The version that knows THROTTLING_QUOTA_EXCEEDED."""
_TOPIC_US = 4


async def handle_create_partitions(ctx: RequestContext, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    """Each topic by itself; one that is named twice is answered once, refused."""
    toll = toll_of(ctx, strict_since=_IS_STRICT_SINCE, timeout_ms=request.timeout_ms)
    results = await answered(
        ctx,
        toll,
        lambda: Asked.of(request.topics, partial(_more, ctx), _TOPIC_US),
        lambda asked: ctx.broker.controller.create_partitions(
            list(asked.wanted.values()), request.timeout_ms / 1000, validate_only=request.validate_only, toll=toll
        ),
        partial(_results, request),
    )
    return CreatePartitionsResponse(throttle_time_ms=toll.throttle_time_ms, results=results)


def _results(
    request: CreatePartitionsRequest, asked: Asked[MorePartitions]
) -> Steps[tuple[CreatePartitionsTopicResult, ...]]:
    """In the order in which topics are named first."""
    pace, outcomes = Pace(), iter(asked.outcomes)
    results: list[CreatePartitionsTopicResult] = []
    for topic in request.topics:
        if pace.over(_TOPIC_US):
            yield None
        outcome = next(outcomes) if topic.name in asked.wanted else asked.refused.pop(topic.name, None)
        if outcome is not None:  # it is where a name is repeated
            results.append(CreatePartitionsTopicResult(topic.name, outcome.error, outcome.message))
    return tuple(results)


def _more(ctx: RequestContext, topic: CreatePartitionsTopic) -> Steps[MorePartitions]:
    ctx.check_topic(Operation.ALTER, topic.name)
    if topic.name in COORDINATORS_TOPICS:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, "coordinators would look for what they keep in other partitions")
    spec = owner(ctx, topic.name)
    assigned = topic.assignments
    return MorePartitions(
        topic.name,
        topic.count,
        None if assigned is None else tuple((yield from each(assigned, lambda a: tuple(a.broker_ids), ASSIGNED_US))),
        spec.brokers if spec is not None else (),
        spec.limits.partitions if spec is not None else None,
        is_tenants=not ctx.session.is_internal,
    )
