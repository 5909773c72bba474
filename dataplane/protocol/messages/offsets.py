"""Committed offsets. Declarations only; see `dataplane.protocol.schema`."""

from __future__ import annotations

from dataplane.protocol.schema import (
    array,
    boolean,
    int16,
    int32,
    int64,
    message,
    string,
    struct,
)


@struct
class OffsetCommitRequestPartition:
    """Part of OffsetCommitRequest."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32("6+", default=-1)
    commit_timestamp: int = int64("1", default=-1)
    committed_metadata: str | None = string(nullable="0+")


@struct
class OffsetCommitRequestTopic:
    """Part of OffsetCommitRequest."""

    name: str = string(entity="topic")
    partitions: tuple[OffsetCommitRequestPartition, ...] = array(OffsetCommitRequestPartition)


@message(api_key=8, versions="0-9", flexible="8+")
class OffsetCommitRequest:
    """What OffsetCommit asks."""

    group_id: str = string(entity="group")
    generation_id_or_member_epoch: int = int32("1+", default=-1)
    member_id: str = string("1+")
    group_instance_id: str | None = string("7+", nullable="7+", default=None)
    retention_time_ms: int = int64("2-4", default=-1)
    topics: tuple[OffsetCommitRequestTopic, ...] = array(OffsetCommitRequestTopic)


@struct
class OffsetCommitResponsePartition:
    """Part of OffsetCommitResponse."""

    partition_index: int = int32()
    error_code: int = int16()


@struct
class OffsetCommitResponseTopic:
    """Part of OffsetCommitResponse."""

    name: str = string(entity="topic")
    partitions: tuple[OffsetCommitResponsePartition, ...] = array(OffsetCommitResponsePartition)


@message(api_key=8, versions="0-9", flexible="8+")
class OffsetCommitResponse:
    """What OffsetCommit answers."""

    throttle_time_ms: int = int32("3+")
    topics: tuple[OffsetCommitResponseTopic, ...] = array(OffsetCommitResponseTopic)


@struct
class OffsetFetchRequestTopic:
    """Part of OffsetFetchRequest."""

    name: str = string("0-7", entity="topic")
    partition_indexes: tuple[int, ...] = array("int32", "0-7")


@struct
class OffsetFetchRequestTopics:
    """Part of OffsetFetchRequest."""

    name: str = string("8+", entity="topic")
    partition_indexes: tuple[int, ...] = array("int32", "8+")


@struct
class OffsetFetchRequestGroup:
    """Part of OffsetFetchRequest."""

    group_id: str = string("8+", entity="group")
    member_id: str | None = string("9+", nullable="9+", default=None)
    member_epoch: int = int32("9+", default=-1)
    topics: tuple[OffsetFetchRequestTopics, ...] | None = array(OffsetFetchRequestTopics, "8+", nullable="8+")


@message(api_key=9, versions="0-9", flexible="6+")
class OffsetFetchRequest:
    """What OffsetFetch asks."""

    group_id: str = string("0-7", entity="group")
    topics: tuple[OffsetFetchRequestTopic, ...] | None = array(OffsetFetchRequestTopic, "0-7", nullable="2-7")
    groups: tuple[OffsetFetchRequestGroup, ...] = array(OffsetFetchRequestGroup, "8+")
    require_stable: bool = boolean("7+")


@struct
class OffsetFetchResponsePartition:
    """Part of OffsetFetchResponse."""

    partition_index: int = int32("0-7")
    committed_offset: int = int64("0-7")
    committed_leader_epoch: int = int32("5-7", default=-1)
    metadata: str | None = string("0-7", nullable="0-7")
    error_code: int = int16("0-7")


@struct
class OffsetFetchResponseTopic:
    """Part of OffsetFetchResponse."""

    name: str = string("0-7", entity="topic")
    partitions: tuple[OffsetFetchResponsePartition, ...] = array(OffsetFetchResponsePartition, "0-7")


@struct
class OffsetFetchResponsePartitions:
    """Part of OffsetFetchResponse."""

    partition_index: int = int32("8+")
    committed_offset: int = int64("8+")
    committed_leader_epoch: int = int32("8+", default=-1)
    metadata: str | None = string("8+", nullable="8+")
    error_code: int = int16("8+")


@struct
class OffsetFetchResponseTopics:
    """Part of OffsetFetchResponse."""

    name: str = string("8+", entity="topic")
    partitions: tuple[OffsetFetchResponsePartitions, ...] = array(OffsetFetchResponsePartitions, "8+")


@struct
class OffsetFetchResponseGroup:
    """Part of OffsetFetchResponse."""

    group_id: str = string("8+", entity="group")
    topics: tuple[OffsetFetchResponseTopics, ...] = array(OffsetFetchResponseTopics, "8+")
    error_code: int = int16("8+")


@message(api_key=9, versions="0-9", flexible="6+")
class OffsetFetchResponse:
    """What OffsetFetch answers."""

    throttle_time_ms: int = int32("3+")
    topics: tuple[OffsetFetchResponseTopic, ...] = array(OffsetFetchResponseTopic, "0-7")
    error_code: int = int16("2-7")
    groups: tuple[OffsetFetchResponseGroup, ...] = array(OffsetFetchResponseGroup, "8+")


@struct
class OffsetDeleteRequestPartition:
    """Part of OffsetDeleteRequest."""

    partition_index: int = int32()


@struct
class OffsetDeleteRequestTopic:
    """Part of OffsetDeleteRequest."""

    name: str = string(entity="topic")
    partitions: tuple[OffsetDeleteRequestPartition, ...] = array(OffsetDeleteRequestPartition)


@message(api_key=47, versions="0", flexible="none")
class OffsetDeleteRequest:
    """What OffsetDelete asks."""

    group_id: str = string(entity="group")
    topics: tuple[OffsetDeleteRequestTopic, ...] = array(OffsetDeleteRequestTopic)


@struct
class OffsetDeleteResponsePartition:
    """Part of OffsetDeleteResponse."""

    partition_index: int = int32()
    error_code: int = int16()


@struct
class OffsetDeleteResponseTopic:
    """Part of OffsetDeleteResponse."""

    name: str = string(entity="topic")
    partitions: tuple[OffsetDeleteResponsePartition, ...] = array(OffsetDeleteResponsePartition)


@message(api_key=47, versions="0", flexible="none")
class OffsetDeleteResponse:
    """What OffsetDelete answers."""

    error_code: int = int16()
    throttle_time_ms: int = int32()
    topics: tuple[OffsetDeleteResponseTopic, ...] = array(OffsetDeleteResponseTopic)
