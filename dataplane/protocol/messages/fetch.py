"""Fetch, and the questions about offsets that go with it. Declarations only; see `dataplane.protocol.schema`."""

from __future__ import annotations

from uuid import UUID

from dataplane.protocol.primitives import Buffer, Splice
from dataplane.protocol.schema import (
    array,
    int8,
    int16,
    int32,
    int64,
    message,
    records,
    string,
    struct,
    structure,
    uuid,
)


@struct
class ReplicaState:
    replica_id: int = int32("15+", default=-1)
    replica_epoch: int = int64("15+", default=-1)


@struct
class FetchPartition:
    partition: int = int32()
    current_leader_epoch: int = int32("9+", default=-1)
    fetch_offset: int = int64()
    last_fetched_epoch: int = int32("12+", default=-1)
    log_start_offset: int = int64("5+", default=-1)
    partition_max_bytes: int = int32()
    replica_directory_id: UUID = uuid("17+", tagged="17+", tag=0)


@struct
class FetchTopic:
    topic: str = string("0-12", entity="topic")
    topic_id: UUID = uuid("13+")
    partitions: tuple[FetchPartition, ...] = array(FetchPartition)


@struct
class ForgottenTopic:
    topic: str = string("7-12", entity="topic")
    topic_id: UUID = uuid("13+")
    partitions: tuple[int, ...] = array("int32", "7+")


@message(api_key=1, versions="0-17", flexible="12+")
class FetchRequest:
    cluster_id: str | None = string("12+", nullable="12+", default=None, tagged="12+", tag=0)
    replica_id: int = int32("0-14", default=-1)
    replica_state: ReplicaState = structure(ReplicaState, "15+", tagged="15+", tag=1)
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32("3+", default=2147483647)
    isolation_level: int = int8("4+")
    session_id: int = int32("7+")
    session_epoch: int = int32("7+", default=-1)
    topics: tuple[FetchTopic, ...] = array(FetchTopic)
    forgotten_topics_data: tuple[ForgottenTopic, ...] = array(ForgottenTopic, "7+")
    rack_id: str = string("11+")


@struct
class FetchResponseEpochEndOffset:
    epoch: int = int32("12+", default=-1)
    end_offset: int = int64("12+", default=-1)


@struct
class FetchResponseLeaderIdAndEpoch:
    leader_id: int = int32("12+", default=-1)
    leader_epoch: int = int32("12+", default=-1)


@struct
class SnapshotId:
    end_offset: int = int64(default=-1)
    epoch: int = int32(default=-1)


@struct
class AbortedTransaction:
    producer_id: int = int64("4+")
    first_offset: int = int64("4+")


@struct
class FetchResponsePartitionData:
    partition_index: int = int32()
    error_code: int = int16()
    high_watermark: int = int64()
    last_stable_offset: int = int64("4+", default=-1)
    log_start_offset: int = int64("5+", default=-1)
    diverging_epoch: FetchResponseEpochEndOffset = structure(FetchResponseEpochEndOffset, "12+", tagged="12+", tag=0)
    current_leader: FetchResponseLeaderIdAndEpoch = structure(FetchResponseLeaderIdAndEpoch, "12+", tagged="12+", tag=1)
    snapshot_id: SnapshotId = structure(SnapshotId, "12+", tagged="12+", tag=2)
    aborted_transactions: tuple[AbortedTransaction, ...] | None = array(AbortedTransaction, "4+", nullable="4+")
    preferred_read_replica: int = int32("11+", default=-1)
    records: Buffer | Splice | None = records(nullable="0+")


@struct
class FetchableTopicResponse:
    topic: str = string("0-12", entity="topic")
    topic_id: UUID = uuid("13+")
    partitions: tuple[FetchResponsePartitionData, ...] = array(FetchResponsePartitionData)


@struct
class FetchResponseNodeEndpoint:
    node_id: int = int32("16+")
    host: str = string("16+")
    port: int = int32("16+")
    rack: str | None = string("16+", nullable="16+", default=None)


@message(api_key=1, versions="0-17", flexible="12+")
class FetchResponse:
    throttle_time_ms: int = int32("1+")
    error_code: int = int16("7+")
    session_id: int = int32("7+")
    responses: tuple[FetchableTopicResponse, ...] = array(FetchableTopicResponse)
    node_endpoints: tuple[FetchResponseNodeEndpoint, ...] = array(FetchResponseNodeEndpoint, "16+", tagged="16+", tag=0)


@struct
class ListOffsetsPartition:
    partition_index: int = int32()
    current_leader_epoch: int = int32("4+", default=-1)
    timestamp: int = int64()
    max_num_offsets: int = int32("0", default=1)


@struct
class ListOffsetsTopic:
    name: str = string(entity="topic")
    partitions: tuple[ListOffsetsPartition, ...] = array(ListOffsetsPartition)


@message(api_key=2, versions="0-10", flexible="6+")
class ListOffsetsRequest:
    replica_id: int = int32()
    isolation_level: int = int8("2+")
    topics: tuple[ListOffsetsTopic, ...] = array(ListOffsetsTopic)
    timeout_ms: int = int32("10+")


@struct
class ListOffsetsPartitionResponse:
    partition_index: int = int32()
    error_code: int = int16()
    old_style_offsets: tuple[int, ...] = array("int64", "0")
    timestamp: int = int64("1+", default=-1)
    offset: int = int64("1+", default=-1)
    leader_epoch: int = int32("4+", default=-1)


@struct
class ListOffsetsTopicResponse:
    name: str = string(entity="topic")
    partitions: tuple[ListOffsetsPartitionResponse, ...] = array(ListOffsetsPartitionResponse)


@message(api_key=2, versions="0-10", flexible="6+")
class ListOffsetsResponse:
    throttle_time_ms: int = int32("2+")
    topics: tuple[ListOffsetsTopicResponse, ...] = array(ListOffsetsTopicResponse)


@struct
class OffsetForLeaderPartition:
    partition: int = int32()
    current_leader_epoch: int = int32("2+", default=-1)
    leader_epoch: int = int32()


@struct
class OffsetForLeaderTopic:
    topic: str = string(entity="topic")
    partitions: tuple[OffsetForLeaderPartition, ...] = array(OffsetForLeaderPartition)


@message(api_key=23, versions="0-4", flexible="4+")
class OffsetForLeaderEpochRequest:
    replica_id: int = int32("3+", default=-2)
    topics: tuple[OffsetForLeaderTopic, ...] = array(OffsetForLeaderTopic)


@struct
class OffsetForLeaderEpochResponseEpochEndOffset:
    error_code: int = int16()
    partition: int = int32()
    leader_epoch: int = int32("1+", default=-1)
    end_offset: int = int64(default=-1)


@struct
class OffsetForLeaderTopicResult:
    topic: str = string(entity="topic")
    partitions: tuple[OffsetForLeaderEpochResponseEpochEndOffset, ...] = array(
        OffsetForLeaderEpochResponseEpochEndOffset
    )


@message(api_key=23, versions="0-4", flexible="4+")
class OffsetForLeaderEpochResponse:
    throttle_time_ms: int = int32("2+")
    topics: tuple[OffsetForLeaderTopicResult, ...] = array(OffsetForLeaderTopicResult)


@struct
class DeleteRecordsPartition:
    partition_index: int = int32()
    offset: int = int64()


@struct
class DeleteRecordsTopic:
    name: str = string(entity="topic")
    partitions: tuple[DeleteRecordsPartition, ...] = array(DeleteRecordsPartition)


@message(api_key=21, versions="0-2", flexible="2+")
class DeleteRecordsRequest:
    topics: tuple[DeleteRecordsTopic, ...] = array(DeleteRecordsTopic)
    timeout_ms: int = int32()


@struct
class DeleteRecordsPartitionResult:
    partition_index: int = int32()
    low_watermark: int = int64()
    error_code: int = int16()


@struct
class DeleteRecordsTopicResult:
    name: str = string(entity="topic")
    partitions: tuple[DeleteRecordsPartitionResult, ...] = array(DeleteRecordsPartitionResult)


@message(api_key=21, versions="0-2", flexible="2+")
class DeleteRecordsResponse:
    throttle_time_ms: int = int32()
    topics: tuple[DeleteRecordsTopicResult, ...] = array(DeleteRecordsTopicResult)
