"""Metadata: brokers, topics and leaders, as this session sees them.

In steps: there may be tens of thousands of topics, or of partitions of one. Each topic is as it was at one moment, and
whether the session may see it is asked then; the topics of one answer need not be of the same moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from dataplane.handlers.authorized import ASKED_US, cluster_operations, topic_operations
from dataplane.handlers.context import RequestContext
from dataplane.handlers.outcome import Reply
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from dataplane.protocol.schema import NO_UUID
from dataplane.records.steps import Pace, each
from dataplane.tasks import either, sleep
from dataplane.tenancy.access import Operation, of_topic
from quota.contracts.namespace import split_physical, topic_name_problem
from quota.contracts.usage import USAGE_TOPIC

if TYPE_CHECKING:
    from dataplane.cluster.metadata import PartitionMetadata
    from dataplane.records.steps import Steps

    _Row = tuple[int, PartitionMetadata]

_PATIENCE_S = 10.0
_IDS_ARE_CARRIED_SINCE, _TOPIC_IDS_SINCE = 10, 12
_ASKS_FOR_CREATION_SINCE = 4  # before, every request wants it to be
_NAME_US, _VISIBLE_US, _REFUSAL_US, _TOPIC_US, _PARTITION_US, _CREATION_US = 1, 3, 2, 12, 4, 40
_PARTITIONS_PER_STEP = 16


def handle_metadata(ctx: RequestContext, request: MetadataRequest) -> Reply:
    """At once, except on a broker that has just started and knows nothing.

    An answer without brokers, controller and topics would be taken for the truth: librdkafka's admin client does not
    ask again for a controller, and a producer gives up a topic that is "unknown".
    """
    return _answer(ctx, request) if ctx.broker.metadata.known().done else _when_known(ctx, request)


async def _when_known(ctx: RequestContext, request: MetadataRequest) -> MetadataResponse:
    await either(ctx.broker.metadata.known(), sleep(ctx.broker.doors.loop, _PATIENCE_S))
    return await ctx.broker.slices.run(ctx.owner, _answer(ctx, request))


def _answer(ctx: RequestContext, request: MetadataRequest) -> Steps[MetadataResponse]:
    """All topics for null (and, in version 0, for an empty list); otherwise the ones asked for, in their order."""
    pace = Pace()
    if _IDS_ARE_CARRIED_SINCE <= ctx.version < _TOPIC_IDS_SINCE:
        for topic in request.topics or ():
            if pace.over(_NAME_US):
                yield None
            if _has_id(topic):
                return (yield from _refused(ctx, request, pace))
    topics: list[MetadataResponseTopic] = []
    if request.topics is None or (ctx.version == 0 and not request.topics):
        for name in candidates(ctx):
            if pace.over(_VISIBLE_US):
                yield None
            if is_visible(ctx, name):
                topics.append(
                    (yield from _with_operations(ctx, request, (yield from _described(ctx, name, pace)), pace))
                )
    else:
        # As in Kafka each is described once, however often it is named: an answer is no larger than what there is.
        wanted: dict[UUID | str | None, MetadataRequestTopic] = {}
        for topic in request.topics:
            if pace.over(_NAME_US):
                yield None
            wanted[topic.topic_id if _has_id(topic) else topic.name] = topic
        for topic in wanted.values():
            described = yield from _asked(ctx, request, topic, pace)
            topics.append((yield from _with_operations(ctx, request, described, pace)))
    return MetadataResponse(
        brokers=tuple(MetadataResponseBroker(*broker) for broker in ctx.live_brokers()),
        cluster_id=ctx.cluster_id,
        controller_id=ctx.broker.metadata.controller_id,
        topics=tuple(topics),
        cluster_authorized_operations=cluster_operations(ctx, is_asked=request.include_cluster_authorized_operations),
    )


def candidates(ctx: RequestContext) -> list[str]:
    """Physical names of what this session may see, sorted, as of now: ask `is_visible` of each. Not to be changed."""
    instance, metadata = ctx.session.instance, ctx.broker.metadata
    return metadata.topics() if instance is None else metadata.topics_of(instance.names.key)


def is_visible(ctx: RequestContext, name: str) -> bool:
    """Whether a topic is still there, this session's, and may be described by it."""
    if not ctx.broker.metadata.has_topic(name):
        return False
    return ctx.owns(name) and ctx.may(Operation.DESCRIBE, of_topic(name))


def _with_operations(
    ctx: RequestContext, request: MetadataRequest, topic: MetadataResponseTopic, pace: Pace
) -> Steps[MetadataResponseTopic]:
    """As Kafka also of a topic that is not there; of one that the session may not describe, nothing is told."""
    code = topic.error_code
    is_asked = request.include_topic_authorized_operations and topic.name is not None
    if not is_asked or code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return topic
    if pace.over(ASKED_US):
        yield None
    assert topic.name is not None  # `is_asked`
    return replace(topic, topic_authorized_operations=topic_operations(ctx, topic.name))


def _asked(
    ctx: RequestContext, request: MetadataRequest, topic: MetadataRequestTopic, pace: Pace
) -> Steps[MetadataResponseTopic]:
    if pace.over(_TOPIC_US):
        yield None
    if _has_id(topic):
        return (yield from _by_id(ctx, topic.topic_id, pace))
    assert topic.name is not None  # `_has_id`
    refusal = ctx.topic_refusal(Operation.DESCRIBE, topic.name)
    if refusal:  # whether it exists or not
        return MetadataResponseTopic(error_code=refusal, name=topic.name)
    if ctx.broker.metadata.partitions(topic.name):
        return (yield from _described(ctx, topic.name, pace))
    return (yield from _missing(ctx, request, topic.name, pace))


def _has_id(topic: MetadataRequestTopic) -> bool:
    """An id comes before a name, as in Kafka: its own admin client sends an empty name beside the id."""
    return topic.name is None or topic.topic_id != NO_UUID


def _refused(ctx: RequestContext, request: MetadataRequest, pace: Pace) -> Steps[MetadataResponse]:
    """Versions 10 and 11 can carry an id; that it can be asked by came later. As Kafka's: nothing is told of any topic."""
    nameless = ctx.session.names.topic_in("")

    def refused(topic: MetadataRequestTopic) -> MetadataResponseTopic:
        name = nameless if topic.name is None else topic.name
        return MetadataResponseTopic(ErrorCode.INVALID_REQUEST, name, topic.topic_id)

    topics = yield from each(request.topics or (), refused, _REFUSAL_US, pace)
    return MetadataResponse(topics=tuple(topics))


def _by_id(ctx: RequestContext, topic_id: UUID, pace: Pace) -> Steps[MetadataResponseTopic]:
    """An id is no secret, as in Kafka: who knows it is told that it is refused, and no name."""
    name = ctx.broker.metadata.topic_of_id(topic_id)
    if name is None or not ctx.owns(name):
        return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
    refusal = ctx.topic_refusal(Operation.DESCRIBE, name)
    if refusal:
        return MetadataResponseTopic(error_code=refusal, name=None, topic_id=topic_id)
    return (yield from _described(ctx, name, pace))


def _missing(ctx: RequestContext, request: MetadataRequest, name: str, pace: Pace) -> Steps[MetadataResponseTopic]:
    """Asked for once more, a topic that may come into being is there: the first answer only says that it is not yet."""
    is_wanted = ctx.version < _ASKS_FOR_CREATION_SINCE or request.allow_auto_topic_creation
    comes = is_wanted and _may_come_into_being(ctx, name)
    refusal = ctx.creation_refusal(name) if comes else ErrorCode.NONE
    if refusal:
        return MetadataResponseTopic(error_code=refusal, name=name)
    if name_problem(name) is not None:
        return MetadataResponseTopic(error_code=ErrorCode.INVALID_TOPIC_EXCEPTION, name=name)
    if comes:
        ctx.broker.create_topic_automatically(name)
        if pace.over(_CREATION_US):
            yield None
        return MetadataResponseTopic(error_code=ErrorCode.LEADER_NOT_AVAILABLE, name=name)
    return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name)


def _may_come_into_being(ctx: RequestContext, name: str) -> bool:
    """A tenant's topic where its instance says so; one without an owner where the brokers' setting does.

    A tenant's topic that is named on the internal listener is not: the control plane looks for topics that may have gone.
    """
    instance = ctx.session.instance
    if instance is not None:
        return instance.spec.auto_create_topics
    return split_physical(name) is None and ctx.broker.config.settings.auto_create_topics_enable


def _described(ctx: RequestContext, name: str, pace: Pace) -> Steps[MetadataResponseTopic]:
    """A topic as it is now, even if it takes several steps: `partitions` is replaced when it changes, never edited."""
    metadata = ctx.broker.metadata
    known, topic_id = metadata.partitions(name), metadata.topic_id(name) or NO_UUID
    if pace.over(_TOPIC_US):
        yield None
    partitions: list[MetadataResponsePartition] = []
    for some in _in_portions(sorted(known.items()), _PARTITIONS_PER_STEP):
        partitions += [_partition(ctx, index, partition) for index, partition in some]
        if pace.over(_PARTITION_US * len(some)):
            yield None
    return MetadataResponseTopic(
        name=name,
        topic_id=topic_id,
        is_internal=is_internal(name),
        partitions=tuple(partitions),
    )


def _in_portions(rows: list[_Row], size: int) -> Iterator[list[_Row]]:
    for first in range(0, len(rows), size):
        yield rows[first : first + size]


def _partition(ctx: RequestContext, index: int, partition: PartitionMetadata) -> MetadataResponsePartition:
    brokers = ctx.broker.metadata.brokers
    return MetadataResponsePartition(
        error_code=ErrorCode.NONE if partition.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=tuple(partition.replicas),
        isr_nodes=tuple(partition.isr),
        offline_replicas=tuple(r for r in partition.replicas if r not in brokers),
    )


def is_internal(name: str) -> bool:
    """Whether it is a topic of the cluster's own. Not the usage records: Spark's source leaves internal topics out."""
    return name.startswith("__") and name != USAGE_TOPIC


def name_problem(physical: str) -> str | None:
    """Why no topic can have this name; None where one can."""
    parsed = split_physical(physical)
    return topic_name_problem(parsed[1] if parsed is not None else physical.removeprefix("__"))
