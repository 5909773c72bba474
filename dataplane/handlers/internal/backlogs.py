"""DescribeBacklogs: about how many bytes a reader at some offset has still to read, of the partitions that are led here.

An API of our own, for the control plane, which is told of lag in records by Kafka and of none in bytes. Bytes are those of whole
batches as they lie on the disk, up to the high watermark, which is told with them: after a change of leaders it may be before the
end that the asker has heard of. Nothing waits for the disk (`storage.log.reading.backlog_bytes`): what is in memory is exact, the
rest is estimated. It goes on in steps, so each partition is true by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.protocol.arrays import as_array
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.backlogs import (
    BacklogPartitionResult,
    BacklogTopicResult,
    DescribeBacklogsRequest,
    DescribeBacklogsResponse,
)
from dataplane.records.steps import Pace
from dataplane.storage.log.reading import backlog_bytes

if TYPE_CHECKING:
    from dataplane.handlers.context import RequestContext
    from dataplane.protocol.messages.backlogs import BacklogPartition
    from dataplane.records.steps import Steps

_LOOK_US, _OFFSET_US = 2, 60


def handle_describe_backlogs(ctx: RequestContext, request: DescribeBacklogsRequest) -> Steps[DescribeBacklogsResponse]:
    """Of a partition that is led elsewhere, its error."""
    pace = Pace()
    topics = []
    for topic in request.topics:
        rows = []
        for asked in topic.partitions:
            rows.append((yield from _row(ctx, topic.topic, asked, pace)))  # noqa: PERF401  # no comprehension can pause
        topics.append(BacklogTopicResult(topic.topic, as_array(rows)))
    return DescribeBacklogsResponse(tuple(topics))


def _row(ctx: RequestContext, topic: str, asked: BacklogPartition, pace: Pace) -> Steps[BacklogPartitionResult]:
    if pace.over(_LOOK_US):
        yield None
    found = ctx.broker.replicas.registry.leader(topic, asked.partition)
    if isinstance(found, ErrorCode):
        return BacklogPartitionResult(asked.partition, found)
    sizes, end = [], found.state.high_watermark
    for offset in asked.offsets:
        if pace.over(_OFFSET_US):
            yield None
        sizes.append(backlog_bytes(found.log, offset, end))
    return BacklogPartitionResult(asked.partition, ErrorCode.NONE, tuple(sizes), end)
