"""CreatePartitions: on the controller, within the limits of the instance that owns the topic."""

from __future__ import annotations

from collections import Counter

from dataplane.controller.controller import MorePartitions, TopicOutcome
from dataplane.groups.log import OFFSETS_TOPIC
from dataplane.handlers.context import RequestContext
from dataplane.handlers.ownership import owner
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.protocol.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


async def handle_create_partitions(ctx: RequestContext, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    """Each topic by itself; one that is named twice is answered once, refused."""
    times = Counter(topic.name for topic in request.topics)
    wanted: dict[str, MorePartitions] = {}
    answers: dict[str, TopicOutcome] = {}
    for topic in request.topics:
        try:
            if times[topic.name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "the request names the topic more than once")
            wanted[topic.name] = _more(ctx, topic)
        except ApiError as refusal:
            answers[topic.name] = TopicOutcome(topic.name, refusal.code, refusal.message)
    outcomes = await ctx.broker.controller.create_partitions(
        list(wanted.values()), request.timeout_ms / 1000, validate_only=request.validate_only
    )
    answers |= {outcome.name: outcome for outcome in outcomes}
    return CreatePartitionsResponse(
        results=tuple(CreatePartitionsTopicResult(name, answers[name].error, answers[name].message) for name in times)
    )


def _more(ctx: RequestContext, topic: CreatePartitionsTopic) -> MorePartitions:
    if ctx.topic_denied(topic.name):
        raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "the topic's whitelist does not hold this address")
    if topic.name == OFFSETS_TOPIC:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, "groups would look for their offsets in other partitions")
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
