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
    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32("6+", default=-1)
    commit_timestamp: int = int64("1", default=-1)
    committed_metadata: str | None = string(nullable="0+")


@struct
class OffsetCommitRequestTopic:
    name: str = string(entity="topic")
    partitions: tuple[OffsetCommitRequestPartition, ...] = array(OffsetCommitRequestPartition)


@message(api_key=8, versions="0-9", flexible="8+")
class OffsetCommitRequest:
    group_id: str = string(entity="group")
    generation_id_or_member_epoch: int = int32("1+", default=-1)
    member_id: str = string("1+")
    group_instance_id: str | None = string("7+", nullable="7+", default=None)
    retention_time_ms: int = int64("2-4", default=-1)
    topics: tuple[OffsetCommitRequestTopic, ...] = array(OffsetCommitRequestTopic)


@struct
class OffsetCommitResponsePartition:
    partition_index: int = int32()
    error_code: int = int16()


@struct
class OffsetCommitResponseTopic:
    name: str = string(entity="topic")
    partitions: tuple[OffsetCommitResponsePartition, ...] = array(OffsetCommitResponsePartition)


@message(api_key=8, versions="0-9", flexible="8+")
class OffsetCommitResponse:
    throttle_time_ms: int = int32("3+")
    topics: tuple[OffsetCommitResponseTopic, ...] = array(OffsetCommitResponseTopic)


@struct
class OffsetFetchRequestTopic:
    name: str = string("0-7", entity="topic")
    partition_indexes: tuple[int, ...] = array("int32", "0-7")


@struct
class OffsetFetchRequestTopics:
    name: str = string("8+", entity="topic")
    partition_indexes: tuple[int, ...] = array("int32", "8+")


@struct
class OffsetFetchRequestGroup:
    group_id: str = string("8+", entity="group")
    member_id: str | None = string("9+", nullable="9+", default=None)
    member_epoch: int = int32("9+", default=-1)
    topics: tuple[OffsetFetchRequestTopics, ...] | None = array(OffsetFetchRequestTopics, "8+", nullable="8+")


@message(api_key=9, versions="0-9", flexible="6+")
class OffsetFetchRequest:
    group_id: str = string("0-7", entity="group")
    topics: tuple[OffsetFetchRequestTopic, ...] | None = array(OffsetFetchRequestTopic, "0-7", nullable="2-7")
    groups: tuple[OffsetFetchRequestGroup, ...] = array(OffsetFetchRequestGroup, "8+")
    require_stable: bool = boolean("7+")


@struct
class OffsetFetchResponsePartition:
    partition_index: int = int32("0-7")
    committed_offset: int = int64("0-7")
    committed_leader_epoch: int = int32("5-7", default=-1)
    metadata: str | None = string("0-7", nullable="0-7")
    error_code: int = int16("0-7")


@struct
class OffsetFetchResponseTopic:
    name: str = string("0-7", entity="topic")
    partitions: tuple[OffsetFetchResponsePartition, ...] = array(OffsetFetchResponsePartition, "0-7")


@struct
class OffsetFetchResponsePartitions:
    partition_index: int = int32("8+")
    committed_offset: int = int64("8+")
    committed_leader_epoch: int = int32("8+", default=-1)
    metadata: str | None = string("8+", nullable="8+")
    error_code: int = int16("8+")


@struct
class OffsetFetchResponseTopics:
    name: str = string("8+", entity="topic")
    partitions: tuple[OffsetFetchResponsePartitions, ...] = array(OffsetFetchResponsePartitions, "8+")


@struct
class OffsetFetchResponseGroup:
    group_id: str = string("8+", entity="group")
    topics: tuple[OffsetFetchResponseTopics, ...] = array(OffsetFetchResponseTopics, "8+")
    error_code: int = int16("8+")


@message(api_key=9, versions="0-9", flexible="6+")
class OffsetFetchResponse:
    throttle_time_ms: int = int32("3+")
    topics: tuple[OffsetFetchResponseTopic, ...] = array(OffsetFetchResponseTopic, "0-7")
    error_code: int = int16("2-7")
    groups: tuple[OffsetFetchResponseGroup, ...] = array(OffsetFetchResponseGroup, "8+")


@struct
class OffsetDeleteRequestPartition:
    partition_index: int = int32()


@struct
class OffsetDeleteRequestTopic:
    name: str = string(entity="topic")
    partitions: tuple[OffsetDeleteRequestPartition, ...] = array(OffsetDeleteRequestPartition)


@message(api_key=47, versions="0", flexible="none")
class OffsetDeleteRequest:
    group_id: str = string(entity="group")
    topics: tuple[OffsetDeleteRequestTopic, ...] = array(OffsetDeleteRequestTopic)


@struct
class OffsetDeleteResponsePartition:
    partition_index: int = int32()
    error_code: int = int16()


@struct
class OffsetDeleteResponseTopic:
    name: str = string(entity="topic")
    partitions: tuple[OffsetDeleteResponsePartition, ...] = array(OffsetDeleteResponsePartition)


@message(api_key=47, versions="0", flexible="none")
class OffsetDeleteResponse:
    error_code: int = int16()
    throttle_time_ms: int = int32()
    topics: tuple[OffsetDeleteResponseTopic, ...] = array(OffsetDeleteResponseTopic)
