"""What a client asks first: versions, metadata, the cluster, a coordinator.

Declarations only; see `dataplane.protocol.schema`.
"""

from __future__ import annotations

from uuid import UUID

from dataplane.protocol.schema import (
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    message,
    string,
    struct,
    structure,
    uuid,
)


@message(api_key=18, versions="0-4", flexible="3+")
class ApiVersionsRequest:
    client_software_name: str = string("3+")
    client_software_version: str = string("3+")


@struct
class ApiVersion:
    api_key: int = int16()
    min_version: int = int16()
    max_version: int = int16()


@struct
class SupportedFeatureKey:
    name: str = string("3+")
    min_version: int = int16("3+")
    max_version: int = int16("3+")


@struct
class FinalizedFeatureKey:
    name: str = string("3+")
    max_version_level: int = int16("3+")
    min_version_level: int = int16("3+")


@message(api_key=18, versions="0-4", flexible="3+")
class ApiVersionsResponse:
    error_code: int = int16()
    api_keys: tuple[ApiVersion, ...] = array(ApiVersion)
    throttle_time_ms: int = int32("1+")
    supported_features: tuple[SupportedFeatureKey, ...] = array(SupportedFeatureKey, "3+", tagged="3+", tag=0)
    finalized_features_epoch: int = int64("3+", default=-1, tagged="3+", tag=1)
    finalized_features: tuple[FinalizedFeatureKey, ...] = array(FinalizedFeatureKey, "3+", tagged="3+", tag=2)
    zk_migration_ready: bool = boolean("3+", tagged="3+", tag=3)


@struct
class MetadataRequestTopic:
    topic_id: UUID = uuid("10+")
    name: str | None = string(nullable="10+", entity="topic")


@message(api_key=3, versions="0-12", flexible="9+")
class MetadataRequest:
    topics: tuple[MetadataRequestTopic, ...] | None = array(MetadataRequestTopic, nullable="1+")
    allow_auto_topic_creation: bool = boolean("4+", default=True)
    include_cluster_authorized_operations: bool = boolean("8-10")
    include_topic_authorized_operations: bool = boolean("8+")


@struct
class MetadataResponseBroker:
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string("1+", nullable="1+", default=None)


@struct
class MetadataResponsePartition:
    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32("7+", default=-1)
    replica_nodes: tuple[int, ...] = array("int32")
    isr_nodes: tuple[int, ...] = array("int32")
    offline_replicas: tuple[int, ...] = array("int32", "5+")


@struct
class MetadataResponseTopic:
    error_code: int = int16()
    name: str | None = string(nullable="12+", entity="topic")
    topic_id: UUID = uuid("10+")
    is_internal: bool = boolean("1+")
    partitions: tuple[MetadataResponsePartition, ...] = array(MetadataResponsePartition)
    topic_authorized_operations: int = int32("8+", default=-2147483648)


@message(api_key=3, versions="0-12", flexible="9+")
class MetadataResponse:
    throttle_time_ms: int = int32("3+")
    brokers: tuple[MetadataResponseBroker, ...] = array(MetadataResponseBroker)
    cluster_id: str | None = string("2+", nullable="2+", default=None)
    controller_id: int = int32("1+", default=-1)
    topics: tuple[MetadataResponseTopic, ...] = array(MetadataResponseTopic)
    cluster_authorized_operations: int = int32("8-10", default=-2147483648)


@message(api_key=60, versions="0-1", flexible="0+")
class DescribeClusterRequest:
    include_cluster_authorized_operations: bool = boolean()
    endpoint_type: int = int8("1+", default=1)


@struct
class DescribeClusterBroker:
    broker_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)


@message(api_key=60, versions="0-1", flexible="0+")
class DescribeClusterResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    endpoint_type: int = int8("1+", default=1)
    cluster_id: str = string()
    controller_id: int = int32(default=-1)
    brokers: tuple[DescribeClusterBroker, ...] = array(DescribeClusterBroker)
    cluster_authorized_operations: int = int32(default=-2147483648)


@struct
class DescribeTopicPartitionsRequestTopicRequest:
    name: str = string(entity="topic")


@struct
class DescribeTopicPartitionsRequestCursor:
    topic_name: str = string(entity="topic")
    partition_index: int = int32()


@message(api_key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsRequest:
    topics: tuple[DescribeTopicPartitionsRequestTopicRequest, ...] = array(DescribeTopicPartitionsRequestTopicRequest)
    response_partition_limit: int = int32(default=2000)
    cursor: DescribeTopicPartitionsRequestCursor | None = structure(
        DescribeTopicPartitionsRequestCursor, nullable="0+", default=None
    )


@struct
class DescribeTopicPartitionsResponsePartition:
    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(default=-1)
    replica_nodes: tuple[int, ...] = array("int32")
    isr_nodes: tuple[int, ...] = array("int32")
    eligible_leader_replicas: tuple[int, ...] | None = array("int32", nullable="0+", default=None)
    last_known_elr: tuple[int, ...] | None = array("int32", nullable="0+", default=None)
    offline_replicas: tuple[int, ...] = array("int32")


@struct
class DescribeTopicPartitionsResponseTopic:
    error_code: int = int16()
    name: str | None = string(nullable="0+", entity="topic")
    topic_id: UUID = uuid()
    is_internal: bool = boolean()
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...] = array(DescribeTopicPartitionsResponsePartition)
    topic_authorized_operations: int = int32(default=-2147483648)


@struct
class DescribeTopicPartitionsResponseCursor:
    topic_name: str = string(entity="topic")
    partition_index: int = int32()


@message(api_key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsResponse:
    throttle_time_ms: int = int32()
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...] = array(DescribeTopicPartitionsResponseTopic)
    next_cursor: DescribeTopicPartitionsResponseCursor | None = structure(
        DescribeTopicPartitionsResponseCursor, nullable="0+", default=None
    )


@message(api_key=10, versions="0-6", flexible="3+")
class FindCoordinatorRequest:
    key: str = string("0-3")
    key_type: int = int8("1+")
    coordinator_keys: tuple[str, ...] = array("string", "4+")


@struct
class Coordinator:
    key: str = string("4+")
    node_id: int = int32("4+")
    host: str = string("4+")
    port: int = int32("4+")
    error_code: int = int16("4+")
    error_message: str | None = string("4+", nullable="4+")


@message(api_key=10, versions="0-6", flexible="3+")
class FindCoordinatorResponse:
    throttle_time_ms: int = int32("1+")
    error_code: int = int16("0-3")
    error_message: str | None = string("1-3", nullable="1-3")
    node_id: int = int32("0-3")
    host: str = string("0-3")
    port: int = int32("0-3")
    coordinators: tuple[Coordinator, ...] = array(Coordinator, "4+")
