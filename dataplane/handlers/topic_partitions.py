"""DescribeTopicPartitions: metadata of topics in pages, for topics of many partitions (KIP-966).

A page ends after so many partitions, in the middle of a topic if need be; the cursor says where the next one begins.
Topics come in the order of their names, so a page that is asked for later goes on, whatever has come or gone meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator

from dataplane.cluster.metadata import PartitionMetadata
from dataplane.handlers.context import RequestContext
from dataplane.handlers.metadata import is_internal, name_problem, visible_topics
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from dataplane.protocol.schema import NO_UUID

MAX_PARTITIONS = 2_000
"""In a page, as Kafka's max.request.partition.size.limit."""


def handle_describe_topic_partitions(
    ctx: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """No topics named: all that this session sees."""
    named = sorted(dict.fromkeys(topic.name for topic in request.topics))
    names = named or visible_topics(ctx)
    first = 0
    if request.cursor is not None:
        cursor = request.cursor
        names = [name for name in names if name >= cursor.topic_name]
        first = max(0, cursor.partition_index) if names and names[0] == cursor.topic_name else 0
    room = max(1, min(request.response_partition_limit, MAX_PARTITIONS))
    found, rest = _page(ctx, names, first, room)
    return DescribeTopicPartitionsResponse(topics=tuple(found), next_cursor=rest)


def _page(
    ctx: RequestContext, names: list[str], first: int, room: int
) -> tuple[list[DescribeTopicPartitionsResponseTopic], DescribeTopicPartitionsResponseCursor | None]:
    """Topics while there is room, and where to go on."""
    found: list[DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        if room <= 0:
            return found, DescribeTopicPartitionsResponseCursor(name, first)
        code = _refusal(ctx, name)
        if code is not ErrorCode.NONE:
            found.append(DescribeTopicPartitionsResponseTopic(error_code=code, name=name, topic_id=NO_UUID))
            room -= 1  # it takes its place in the answer too
            first = 0
            continue
        known = ctx.broker.metadata.partitions(name)
        left = [index for index in known if index >= first]
        found.append(_topic(ctx, name, [(index, known[index]) for index in left[:room]]))
        if len(left) > room:
            return found, DescribeTopicPartitionsResponseCursor(name, left[room])
        room -= len(left)
        first = 0
    return found, None


def _refusal(ctx: RequestContext, name: str) -> ErrorCode:
    if ctx.topic_denied(name):  # whether it exists or not
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if ctx.broker.metadata.has_topic(name):
        return ErrorCode.NONE
    return ErrorCode.INVALID_TOPIC_EXCEPTION if name_problem(name) is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _topic(
    ctx: RequestContext, name: str, partitions: list[tuple[int, PartitionMetadata]]
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=name,
        topic_id=ctx.broker.metadata.topic_id(name) or NO_UUID,
        is_internal=is_internal(name),
        partitions=tuple(_partitions(ctx, partitions)),
    )


def _partitions(
    ctx: RequestContext, partitions: list[tuple[int, PartitionMetadata]]
) -> Iterator[DescribeTopicPartitionsResponsePartition]:
    for index, partition in partitions:
        yield DescribeTopicPartitionsResponsePartition(
            error_code=ErrorCode.NONE if partition.has_leader else ErrorCode.LEADER_NOT_AVAILABLE,
            partition_index=index,
            leader_id=partition.leader,
            leader_epoch=partition.leader_epoch,
            replica_nodes=tuple(partition.replicas),
            isr_nodes=tuple(partition.isr),
            eligible_leader_replicas=(),  # nobody who is not in sync may lead
            last_known_elr=(),
            offline_replicas=tuple(r for r in partition.replicas if r not in ctx.broker.metadata.brokers),
        )
