"""Elections and reassignments. Declarations only; see `dataplane.protocol.schema`."""

from __future__ import annotations

from dataplane.protocol.schema import (
    array,
    int8,
    int16,
    int32,
    message,
    string,
    struct,
)


@struct
class TopicPartitions:
    topic: str = string(entity="topic")
    partitions: tuple[int, ...] = array("int32")


@message(api_key=43, versions="0-2", flexible="2+")
class ElectLeadersRequest:
    election_type: int = int8("1+")
    topic_partitions: tuple[TopicPartitions, ...] | None = array(TopicPartitions, nullable="0+")
    timeout_ms: int = int32(default=60000)


@struct
class PartitionResult:
    partition_id: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@struct
class ReplicaElectionResult:
    topic: str = string(entity="topic")
    partition_result: tuple[PartitionResult, ...] = array(PartitionResult)


@message(api_key=43, versions="0-2", flexible="2+")
class ElectLeadersResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16("1+")
    replica_election_results: tuple[ReplicaElectionResult, ...] = array(ReplicaElectionResult)


@struct
class ReassignablePartition:
    partition_index: int = int32()
    replicas: tuple[int, ...] | None = array("int32", nullable="0+", default=None)


@struct
class ReassignableTopic:
    name: str = string(entity="topic")
    partitions: tuple[ReassignablePartition, ...] = array(ReassignablePartition)


@message(api_key=45, versions="0", flexible="0+")
class AlterPartitionReassignmentsRequest:
    timeout_ms: int = int32(default=60000)
    topics: tuple[ReassignableTopic, ...] = array(ReassignableTopic)


@struct
class ReassignablePartitionResponse:
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@struct
class ReassignableTopicResponse:
    name: str = string(entity="topic")
    partitions: tuple[ReassignablePartitionResponse, ...] = array(ReassignablePartitionResponse)


@message(api_key=45, versions="0", flexible="0+")
class AlterPartitionReassignmentsResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    responses: tuple[ReassignableTopicResponse, ...] = array(ReassignableTopicResponse)


@struct
class ListPartitionReassignmentsTopics:
    name: str = string(entity="topic")
    partition_indexes: tuple[int, ...] = array("int32")


@message(api_key=46, versions="0", flexible="0+")
class ListPartitionReassignmentsRequest:
    timeout_ms: int = int32(default=60000)
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None = array(
        ListPartitionReassignmentsTopics, nullable="0+", default=None
    )


@struct
class OngoingPartitionReassignment:
    partition_index: int = int32()
    replicas: tuple[int, ...] = array("int32")
    adding_replicas: tuple[int, ...] = array("int32")
    removing_replicas: tuple[int, ...] = array("int32")


@struct
class OngoingTopicReassignment:
    name: str = string(entity="topic")
    partitions: tuple[OngoingPartitionReassignment, ...] = array(OngoingPartitionReassignment)


@message(api_key=46, versions="0", flexible="0+")
class ListPartitionReassignmentsResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    topics: tuple[OngoingTopicReassignment, ...] = array(OngoingTopicReassignment)
