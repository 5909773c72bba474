"""ListOffsets and OffsetForLeaderEpoch: where a log begins and ends, in time and in leader epochs.

In steps, for there may be thousands of partitions, and looking for a time opens batches. Each partition is as it was when
its turn came. One that is named more than once is refused, as in Kafka; before version 1 Kafka answers each mention, with
as many offsets as the log has segments: we refuse it there too, and nobody's client does it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dataplane.protocol.arrays import as_array
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.fetch import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderEpochResponseEpochEndOffset,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from dataplane.protocol.release import released
from dataplane.records.steps import Pace, each, run_through
from dataplane.storage.log import lookup
from dataplane.tenancy.access import Operation

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.handlers.context import RequestContext
    from dataplane.records.steps import Steps
    from dataplane.replication.manager import Replicas
    from dataplane.replication.replica.partition import Partition
    from dataplane.storage.log import Log

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
NOT_FOUND = -1
_NO_EPOCH = -1
_MAX_TIMESTAMP_SINCE = 7
_OFFSET_NOT_AVAILABLE_SINCE = 5
_READ_UNCOMMITTED = 0
_NAME_US, _PARTITION_US, _SEGMENT_US = 1, 14, 1
_Found = tuple[int, int, int]  # offset, timestamp, leader epoch


def handle_list_offsets(ctx: RequestContext, request: ListOffsetsRequest) -> Steps[ListOffsetsResponse]:
    """Offsets by timestamp, for consumers; for replicas (internal listener only) up to the end of the log."""
    return _list_all(
        ctx.broker.replicas,
        request,
        ctx.version,
        is_internal=ctx.session.is_internal,
        refusal=partial(ctx.topic_refusal, Operation.DESCRIBE),
        now_ms=ctx.broker.doors.clock.now_ms(),
    )


def handle_offset_for_leader_epoch(
    ctx: RequestContext, request: OffsetForLeaderEpochRequest
) -> Steps[OffsetForLeaderEpochResponse]:
    """Where leader epochs ended, for a client that wants to know whether its position still exists (KIP-320)."""
    return _epochs(ctx.broker.replicas, request, refusal=partial(ctx.topic_refusal, Operation.DESCRIBE))


def _nothing_refused(_topic: str) -> ErrorCode:
    return ErrorCode.NONE


def list_offsets(
    replicas: Replicas,
    request: ListOffsetsRequest,
    version: int,
    *,
    is_internal: bool,
    refusal: Callable[[str], ErrorCode] = _nothing_refused,
    now_ms: int = 0,
) -> ListOffsetsResponse:
    """The answer, at once."""
    steps = _list_all(replicas, request, version, is_internal=is_internal, refusal=refusal, now_ms=now_ms)
    return run_through(steps)


def _list_all(
    replicas: Replicas,
    request: ListOffsetsRequest,
    version: int,
    *,
    is_internal: bool,
    refusal: Callable[[str], ErrorCode],
    now_ms: int,
) -> Steps[ListOffsetsResponse]:
    """The answer, partition by partition."""
    as_replica = is_internal and request.replica_id >= 0
    stable_only = request.isolation_level != _READ_UNCOMMITTED
    pace = Pace()
    asked: dict[tuple[str, int], int] = {}
    for topic in request.topics:
        for wanted in topic.partitions:
            if pace.over(_NAME_US):
                yield None
            key = (topic.name, wanted.partition_index)
            asked[key] = asked.get(key, 0) + 1
    topics = []
    for topic in request.topics:
        rows = []
        if pace.over(_NAME_US):
            yield None
        for wanted in topic.partitions:
            if pace.over(_PARTITION_US):
                yield None
            refused = refusal(topic.name)
            if refused:
                row = _error(wanted, refused)
            elif asked[topic.name, wanted.partition_index] > 1:
                row = _error(wanted, ErrorCode.INVALID_REQUEST)
            else:
                row = yield from _list_one(
                    replicas, topic.name, wanted, version, now_ms, as_replica=as_replica, stable_only=stable_only
                )
            rows.append(row)
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=as_array(rows)))
    held = [asked]
    del asked
    yield from released(held)
    return ListOffsetsResponse(topics=tuple(topics))


def _list_one(
    replicas: Replicas,
    topic: str,
    wanted: ListOffsetsPartition,
    version: int,
    now_ms: int,
    *,
    as_replica: bool,
    stable_only: bool,
) -> Steps[ListOffsetsPartitionResponse]:
    timestamp = wanted.timestamp
    if timestamp < (EARLIEST if version < _MAX_TIMESTAMP_SINCE else MAX_TIMESTAMP):
        return _error(wanted, ErrorCode.UNSUPPORTED_VERSION)
    partition = replicas.registry.leader(topic, wanted.partition_index, wanted.current_leader_epoch)
    if isinstance(partition, ErrorCode):
        return _error(wanted, partition)
    if wanted.current_leader_epoch < _NO_EPOCH:
        return _error(wanted, ErrorCode.FENCED_LEADER_EPOCH)
    try:
        end = partition.log.end_offset if as_replica else partition.readable_end(stable_only=stable_only)
        if version == 0:
            if Pace().over(_SEGMENT_US * len(partition.log.segments)):
                yield None
            offsets = offsets_before(partition.log, timestamp, wanted.max_num_offsets, end, now_ms)
            return ListOffsetsPartitionResponse(partition_index=wanted.partition_index, old_style_offsets=offsets)
        offset, time, epoch = yield from _find(partition, timestamp, end)
    except OSError:
        replicas.roles.failed(partition)
        return _error(wanted, ErrorCode.KAFKA_STORAGE_ERROR)
    settled = as_replica or partition.state.high_watermark >= partition.state.epoch_start_offset
    if not settled and (timestamp == LATEST or (timestamp != EARLIEST and offset == NOT_FOUND)):
        # What the former leader committed may lie above our high watermark: we must not say that it does not exist.
        since = version >= _OFFSET_NOT_AVAILABLE_SINCE
        return _error(wanted, ErrorCode.OFFSET_NOT_AVAILABLE if since else ErrorCode.LEADER_NOT_AVAILABLE)
    return ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index, timestamp=time, offset=offset, leader_epoch=epoch
    )


def _find(partition: Partition, timestamp: int, end: int) -> Steps[_Found]:
    log = partition.log
    if timestamp == LATEST:
        return end, -1, log.epochs.latest()
    if timestamp == EARLIEST:
        return log.start_offset, -1, log.epochs.epoch_of(log.start_offset)
    latest = timestamp == MAX_TIMESTAMP
    search = lookup.find_latest_timestamp(log, end) if latest else lookup.find_timestamp(log, timestamp, end)
    found = yield from search
    return (NOT_FOUND, -1, -1) if found is None else found


def offsets_before(log: Log, timestamp: int, most: int, end: int, now_ms: int) -> tuple[int, ...]:
    """Version 0, "getOffsetsBefore": places where reading may begin, newest first, at most `most`.

    They are the bases of the segments, and the end of the log where the last segment has something in it. By a time:
    those that begin no later than the last segment changed before it, the end having changed now. When a segment was
    last changed is told by its youngest record, as near as a log can say (Kafka asks the file system). Nothing above
    `end`, which stands in for what is.
    """
    segments = log.segments
    places = [
        (max(segment.base_offset, log.start_offset), segment.max_timestamp if segment.size else now_ms)
        for segment in segments
    ]
    if segments[-1].size:
        places.append((log.end_offset, now_ms))
    if timestamp == EARLIEST:
        places = places[:1]
    elif timestamp != LATEST:
        while places and places[-1][1] > timestamp:
            places.pop()
    offsets = [offset for offset, _ in reversed(places)][: max(0, most)]
    if offsets and offsets[0] > end:
        return (end, *(offset for offset in offsets if offset <= end))
    return tuple(offsets)


def _error(wanted: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=wanted.partition_index, error_code=code)


# --- leader epochs ----------------------------------------------------------------------------------------------------


def offsets_for_leader_epochs(
    replicas: Replicas, request: OffsetForLeaderEpochRequest, *, refusal: Callable[[str], ErrorCode] = _nothing_refused
) -> OffsetForLeaderEpochResponse:
    """The answer, at once."""
    return run_through(_epochs(replicas, request, refusal=refusal))


def _epochs(
    replicas: Replicas, request: OffsetForLeaderEpochRequest, *, refusal: Callable[[str], ErrorCode]
) -> Steps[OffsetForLeaderEpochResponse]:
    """The largest epoch not above the one asked about, and where it ended; (-1, -1) where we cannot say."""

    def row(topic: str, wanted: OffsetForLeaderPartition) -> OffsetForLeaderEpochResponseEpochEndOffset:
        refused = refusal(topic)
        if refused:
            return _epoch_error(wanted, refused)
        return _epoch_end(replicas, topic, wanted)

    pace = Pace()
    results = []
    for topic in request.topics:
        if pace.over(_NAME_US):
            yield None
        rows = yield from each(topic.partitions, partial(row, topic.topic), _PARTITION_US, pace)
        results.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=as_array(rows)))
    return OffsetForLeaderEpochResponse(topics=tuple(results))


def _epoch_end(
    replicas: Replicas, topic: str, wanted: OffsetForLeaderPartition
) -> OffsetForLeaderEpochResponseEpochEndOffset:
    partition = replicas.registry.leader(topic, wanted.partition, wanted.current_leader_epoch)
    if isinstance(partition, ErrorCode):
        return _epoch_error(wanted, partition)
    epoch, end_offset = partition.log.epochs.end_offset(wanted.leader_epoch, partition.log.end_offset)
    return OffsetForLeaderEpochResponseEpochEndOffset(
        error_code=ErrorCode.NONE, partition=wanted.partition, leader_epoch=epoch, end_offset=end_offset
    )


def _epoch_error(wanted: OffsetForLeaderPartition, code: ErrorCode) -> OffsetForLeaderEpochResponseEpochEndOffset:
    return OffsetForLeaderEpochResponseEpochEndOffset(error_code=code, partition=wanted.partition)
