"""DescribeTopicPartitions: metadata of topics in pages, for topics of many partitions (KIP-966).

A page ends after so many partitions, in the middle of a topic if need be; the cursor says where the next one begins.
Topics come in the order of their names, so a page that is asked for later goes on, whatever has come or gone meanwhile.
The same holds within a page, which is made in steps: each topic is as it was when its turn came.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from dataplane.cluster.metadata import PartitionMetadata
from dataplane.handlers.authorized import ASKED_US, topic_operations
from dataplane.handlers.context import RequestContext
from dataplane.handlers.discovery.metadata import (
    candidates,
    is_internal,
    is_visible,
    name_problem,
)
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from dataplane.protocol.schema import NO_UUID
from dataplane.records.steps import Pace, each
from dataplane.tenancy.access import Operation

if TYPE_CHECKING:
    from dataplane.records.steps import Steps

_NAME_US, _TOPIC_US, _PARTITION_US = 1, 12, 6
_NAMES_PER_STEP = 256
MAX_PARTITIONS = 2_000
"""In a page, as Kafka's max.request.partition.size.limit."""


_Page = tuple[list[DescribeTopicPartitionsResponseTopic], DescribeTopicPartitionsResponseCursor | None]


def handle_describe_topic_partitions(
    ctx: RequestContext, request: DescribeTopicPartitionsRequest
) -> Steps[DescribeTopicPartitionsResponse]:
    """No topics named: all that this session sees."""
    pace = Pace()
    room = max(1, min(request.response_partition_limit, MAX_PARTITIONS))
    cursor, begin, first = request.cursor, 0, 0
    named = yield from each(request.topics, lambda topic: topic.name, _NAME_US, pace)
    names = (yield from _least(named, "" if cursor is None else cursor.topic_name, room)) if named else candidates(ctx)
    if cursor is not None:
        begin = bisect_left(names, cursor.topic_name)
        first = max(0, cursor.partition_index) if names[begin : begin + 1] == [cursor.topic_name] else 0
    found, rest = yield from _page(ctx, names, begin, first, room, pace, is_listing=not named)
    return DescribeTopicPartitionsResponse(topics=tuple(found), next_cursor=rest)


def _least(named: list[str], since: str, room: int) -> Steps[list[str]]:
    """The first of these names from `since` on, in order and each once: as many as a page may have, and the next.

    All of them are not sorted: twenty thousand would take five milliseconds at once.
    """
    most = room + 2  # of the topic that the page before ended in, nothing may be left
    found: list[str] = []
    for begin in range(0, len(named), _NAMES_PER_STEP):
        if begin:
            yield None
        some = [name for name in named[begin : begin + _NAMES_PER_STEP] if name >= since]
        if len(found) == most:
            some = [name for name in some if name < found[-1]]
        if some:
            found = sorted(dict.fromkeys(found + some))[:most]
    return found


def _page(
    ctx: RequestContext, names: list[str], begin: int, first: int, room: int, pace: Pace, *, is_listing: bool
) -> Steps[_Page]:
    """Topics while there is room, and where to go on."""
    found: list[DescribeTopicPartitionsResponseTopic] = []
    for place in range(begin, len(names)):
        name = names[place]
        if pace.over(_TOPIC_US):
            yield None
        if is_listing and not is_visible(ctx, name):
            first = 0
            continue
        if room <= 0:
            return found, DescribeTopicPartitionsResponseCursor(name, first)
        code = _refusal(ctx, name)
        if code is not ErrorCode.NONE:
            found.append(_told_no_more(ctx, name, code))
            room -= 1  # it takes its place in the answer too
            first = 0
            continue
        known = ctx.broker.metadata.partitions(name)
        left = [index for index in known if index >= first]
        topic = yield from _topic(ctx, name, [(index, known[index]) for index in left[:room]], pace)
        found.append(topic)
        if len(left) > room:
            return found, DescribeTopicPartitionsResponseCursor(name, left[room])
        room -= len(left)
        first = 0
    return found, None


def _told_no_more(ctx: RequestContext, name: str, code: ErrorCode) -> DescribeTopicPartitionsResponseTopic:
    """As Kafka: of a topic that is not there, what may be done with it; of one that must not be described, nothing."""
    is_refused = code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return DescribeTopicPartitionsResponseTopic(
        error_code=code,
        name=name,
        topic_id=NO_UUID,
        topic_authorized_operations=topic_operations(ctx, name, is_asked=not is_refused),
    )


def _refusal(ctx: RequestContext, name: str) -> ErrorCode:
    refusal = ctx.topic_refusal(Operation.DESCRIBE, name)
    if refusal:  # whether it exists or not
        return refusal
    if ctx.broker.metadata.has_topic(name):
        return ErrorCode.NONE
    return ErrorCode.INVALID_TOPIC_EXCEPTION if name_problem(name) is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _topic(
    ctx: RequestContext, name: str, partitions: list[tuple[int, PartitionMetadata]], pace: Pace
) -> Steps[DescribeTopicPartitionsResponseTopic]:
    topic_id = ctx.broker.metadata.topic_id(name) or NO_UUID
    rows = yield from each(partitions, lambda row: _partition(ctx, *row), _PARTITION_US, pace)
    if pace.over(ASKED_US):
        yield None
    return DescribeTopicPartitionsResponseTopic(
        name=name,
        topic_id=topic_id,
        is_internal=is_internal(name),
        partitions=tuple(rows),
        topic_authorized_operations=topic_operations(ctx, name),
    )


def _partition(
    ctx: RequestContext, index: int, partition: PartitionMetadata
) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE if partition.has_leader else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=tuple(partition.replicas),
        isr_nodes=tuple(partition.isr),
        eligible_leader_replicas=(),  # no replica that is not in sync may lead
        last_known_elr=(),
        offline_replicas=tuple(r for r in partition.replicas if r not in ctx.broker.metadata.brokers),
    )
