"""ListOffsets and OffsetForLeaderEpoch: where a log begins and ends, in time and in leader epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.handlers.context import RequestContext
    from dataplane.replication.manager import Replicas
    from dataplane.replication.partition import Partition

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
NOT_FOUND = -1
_MAX_TIMESTAMP_SINCE = 7
_OFFSET_NOT_AVAILABLE_SINCE = 5
_Found = tuple[int, int, int]  # offset, timestamp, leader epoch


def handle_list_offsets(ctx: RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Offsets by timestamp, for consumers; for replicas (internal listener only) up to the end of the log."""
    return list_offsets(
        ctx.broker.replicas,
        request,
        ctx.version,
        is_internal=ctx.session.is_internal,
        is_denied=ctx.topic_denied,
    )


def handle_offset_for_leader_epoch(
    ctx: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Where leader epochs ended, for who wants to know whether its position still exists (KIP-320)."""
    return offsets_for_leader_epochs(ctx.broker.replicas, request, is_denied=ctx.topic_denied)


def _nothing_denied(_topic: str) -> bool:
    return False


def list_offsets(
    replicas: Replicas,
    request: ListOffsetsRequest,
    version: int,
    *,
    is_internal: bool,
    is_denied: Callable[[str], bool] = _nothing_denied,
) -> ListOffsetsResponse:
    """The answer, partition by partition."""
    as_replica = is_internal and request.replica_id >= 0
    asked: dict[tuple[str, int], int] = {}
    for topic in request.topics:
        for wanted in topic.partitions:
            key = (topic.name, wanted.partition_index)
            asked[key] = asked.get(key, 0) + 1
    topics = []
    for topic in request.topics:
        denied = is_denied(topic.name)
        rows = []
        for wanted in topic.partitions:
            if denied:
                row = _error(wanted, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            elif asked[topic.name, wanted.partition_index] > 1:
                row = _error(wanted, ErrorCode.INVALID_REQUEST)
            else:
                row = _list_one(replicas, topic.name, wanted, version, as_replica=as_replica)
            rows.append(row)
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=tuple(rows)))
    return ListOffsetsResponse(topics=tuple(topics))


def _list_one(
    replicas: Replicas, topic: str, wanted: ListOffsetsPartition, version: int, *, as_replica: bool
) -> ListOffsetsPartitionResponse:
    timestamp = wanted.timestamp
    if timestamp < MAX_TIMESTAMP or (timestamp == MAX_TIMESTAMP and version < _MAX_TIMESTAMP_SINCE):
        return _error(wanted, ErrorCode.UNSUPPORTED_VERSION)
    partition = replicas.leader(topic, wanted.partition_index, wanted.current_leader_epoch)
    if isinstance(partition, ErrorCode):
        return _error(wanted, partition)
    end = partition.log.end_offset if as_replica else partition.high_watermark
    try:
        offset, time, epoch = _find(partition, timestamp, end)
    except OSError:
        replicas.failed(partition)
        return _error(wanted, ErrorCode.KAFKA_STORAGE_ERROR)
    settled = as_replica or end >= partition.epoch_start_offset
    if not settled and (timestamp == LATEST or (timestamp != EARLIEST and offset == NOT_FOUND)):
        # What the former leader committed may lie above our high watermark: we must not say that it does not exist.
        since = version >= _OFFSET_NOT_AVAILABLE_SINCE
        return _error(wanted, ErrorCode.OFFSET_NOT_AVAILABLE if since else ErrorCode.LEADER_NOT_AVAILABLE)
    return ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index,
        timestamp=time,
        offset=offset,
        leader_epoch=epoch,
        old_style_offsets=_old_style(partition, wanted, end) if version == 0 else (),
    )


def _find(partition: Partition, timestamp: int, end: int) -> _Found:
    log = partition.log
    if timestamp == LATEST:
        return end, -1, log.epochs.latest()
    if timestamp == EARLIEST:
        return log.start_offset, -1, log.epochs.epoch_of(log.start_offset)
    found = log.latest_timestamp(end) if timestamp == MAX_TIMESTAMP else log.offset_for_timestamp(timestamp, end)
    return (NOT_FOUND, -1, -1) if found is None else found


def _old_style(partition: Partition, wanted: ListOffsetsPartition, end: int) -> tuple[int, ...]:
    """Version 0 asks for places where reading may begin, the latest first."""
    start = partition.log.start_offset
    offsets = (end, start) if wanted.timestamp == LATEST and end != start else (start,)
    return offsets[: max(0, wanted.max_num_offsets)]


def _error(wanted: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=wanted.partition_index, error_code=code)


# --- leader epochs ----------------------------------------------------------------------------------------------------


def offsets_for_leader_epochs(
    replicas: Replicas, request: OffsetForLeaderEpochRequest, *, is_denied: Callable[[str], bool] = _nothing_denied
) -> OffsetForLeaderEpochResponse:
    """The largest epoch not above the one asked about, and where it ended; (-1, -1) where we cannot say."""
    results = []
    for topic in request.topics:
        denied = is_denied(topic.topic)
        rows = []
        for wanted in topic.partitions:
            if denied:
                rows.append(_epoch_error(wanted, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            else:
                rows.append(_epoch_end(replicas, topic.topic, wanted))
        results.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=tuple(rows)))
    return OffsetForLeaderEpochResponse(topics=tuple(results))


def _epoch_end(
    replicas: Replicas, topic: str, wanted: OffsetForLeaderPartition
) -> OffsetForLeaderEpochResponseEpochEndOffset:
    partition = replicas.leader(topic, wanted.partition, wanted.current_leader_epoch)
    if isinstance(partition, ErrorCode):
        return _epoch_error(wanted, partition)
    epoch, end_offset = partition.log.epochs.end_offset(wanted.leader_epoch, partition.log.end_offset)
    return OffsetForLeaderEpochResponseEpochEndOffset(
        error_code=ErrorCode.NONE, partition=wanted.partition, leader_epoch=epoch, end_offset=end_offset
    )


def _epoch_error(wanted: OffsetForLeaderPartition, code: ErrorCode) -> OffsetForLeaderEpochResponseEpochEndOffset:
    return OffsetForLeaderEpochResponseEpochEndOffset(error_code=code, partition=wanted.partition)
