"""CreatePartitions: on the controller, within the limits of the instance that owns the topic."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from dataplane.cluster.metadata import COORDINATORS_TOPICS
from dataplane.controller.controller import MorePartitions, TopicOutcome
from dataplane.handlers.admin.once_named import asked_and_refused
from dataplane.handlers.admin.tolls import toll_of, turn_came
from dataplane.handlers.context import RequestContext
from dataplane.handlers.ownership import in_slices, owner
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.protocol.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from dataplane.records.steps import Steps
from dataplane.tasks import Future
from dataplane.tenancy.access import Operation

_IS_STRICT_SINCE = 3
"""The version that knows THROTTLING_QUOTA_EXCEEDED."""
_PER_STEP = 30
"""Topics that cost about 100 us."""


async def handle_create_partitions(ctx: RequestContext, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    """Each topic by itself; one that is named twice is answered once, refused."""
    toll = toll_of(ctx, strict_since=_IS_STRICT_SINCE, timeout_ms=request.timeout_ms)

    def judged() -> Future[tuple[dict[str, MorePartitions], dict[str, TopicOutcome]]]:
        return in_slices(ctx, asked_and_refused(request.topics, partial(_more, ctx), _PER_STEP))

    wanted, answers = await judged()
    try:
        if await turn_came(ctx, toll):
            wanted, answers = await judged()
        outcomes = await ctx.broker.controller.create_partitions(
            list(wanted.values()), request.timeout_ms / 1000, validate_only=request.validate_only, toll=toll
        )
    except ApiError as refusal:
        outcomes = [TopicOutcome(name, refusal.code, refusal.message) for name in wanted]
    finally:
        toll.decided()
    answers |= {outcome.name: outcome for outcome in outcomes}
    return CreatePartitionsResponse(
        throttle_time_ms=toll.throttle_time_ms, results=await in_slices(ctx, _results(request, answers))
    )


def _results(
    request: CreatePartitionsRequest, answers: Mapping[str, TopicOutcome]
) -> Steps[tuple[CreatePartitionsTopicResult, ...]]:
    """In the order in which topics are named first."""
    results: list[CreatePartitionsTopicResult] = []
    for place, name in enumerate(dict.fromkeys(topic.name for topic in request.topics), 1):
        if place % _PER_STEP == 0:
            yield None
        results.append(CreatePartitionsTopicResult(name, answers[name].error, answers[name].message))
    return tuple(results)


def _more(ctx: RequestContext, topic: CreatePartitionsTopic) -> MorePartitions:
    ctx.check_topic(Operation.ALTER, topic.name)
    if topic.name in COORDINATORS_TOPICS:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, "coordinators would look for what they keep in other partitions")
    spec = owner(ctx, topic.name)
    assigned = topic.assignments
    return MorePartitions(
        topic.name,
        topic.count,
        None if assigned is None else tuple(tuple(a.broker_ids) for a in assigned),
        spec.brokers if spec is not None else (),
        spec.limits.partitions if spec is not None else None,
        is_tenants=not ctx.session.is_internal,
    )
