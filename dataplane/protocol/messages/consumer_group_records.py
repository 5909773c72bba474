"""Records of __consumer_offsets for the consumer protocol (KIP-848). Declarations only; see `dataplane.protocol.schema`.

The versions of keys are their kinds. That of regular expressions came later, with Kafka 4, which counts versions of keys from 0.
"""

from __future__ import annotations

from uuid import UUID

from dataplane.protocol.schema import (
    array,
    binary,
    int8,
    int32,
    int64,
    message,
    string,
    struct,
    structure,
    uuid,
)


@message(versions="3", flexible="none")
class ConsumerGroupMetadataKey:
    group_id: str = string("3")


@message(versions="0", flexible="0+")
class ConsumerGroupMetadataValue:
    epoch: int = int32()


@message(versions="4", flexible="none")
class ConsumerGroupPartitionMetadataKey:
    group_id: str = string("4")


@struct
class PartitionMetadata:
    partition: int = int32()
    racks: tuple[str, ...] = array("string")


@struct
class TopicMetadata:
    topic_id: UUID = uuid()
    topic_name: str = string()
    num_partitions: int = int32()
    partition_metadata: tuple[PartitionMetadata, ...] = array(PartitionMetadata)


@message(versions="0", flexible="0+")
class ConsumerGroupPartitionMetadataValue:
    topics: tuple[TopicMetadata, ...] = array(TopicMetadata)


@message(versions="5", flexible="none")
class ConsumerGroupMemberMetadataKey:
    group_id: str = string("5")
    member_id: str = string("5")


@struct
class ClassicProtocol:
    name: str = string()
    metadata: bytes = binary()


@struct
class ClassicMemberMetadata:
    session_timeout_ms: int = int32()
    supported_protocols: tuple[ClassicProtocol, ...] = array(ClassicProtocol)


@message(versions="0", flexible="0+")
class ConsumerGroupMemberMetadataValue:
    instance_id: str | None = string(nullable="0+")
    rack_id: str | None = string(nullable="0+")
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: tuple[str, ...] = array("string")
    subscribed_topic_regex: str | None = string(nullable="0+")
    rebalance_timeout_ms: int = int32(default=-1)
    server_assignor: str | None = string(nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = structure(
        ClassicMemberMetadata, nullable="0+", default=None, tagged="0+", tag=0
    )


@message(versions="6", flexible="none")
class ConsumerGroupTargetAssignmentMetadataKey:
    group_id: str = string("6")


@message(versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMetadataValue:
    assignment_epoch: int = int32()


@struct
class TopicPartition:
    topic_id: UUID = uuid()
    partitions: tuple[int, ...] = array("int32")


@message(versions="7", flexible="none")
class ConsumerGroupTargetAssignmentMemberKey:
    group_id: str = string("7")
    member_id: str = string("7")


@message(versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMemberValue:
    topic_partitions: tuple[TopicPartition, ...] = array(TopicPartition)


@message(versions="8", flexible="none")
class ConsumerGroupCurrentMemberAssignmentKey:
    group_id: str = string("8")
    member_id: str = string("8")


@message(versions="0", flexible="0+")
class ConsumerGroupCurrentMemberAssignmentValue:
    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: tuple[TopicPartition, ...] = array(TopicPartition)
    partitions_pending_revocation: tuple[TopicPartition, ...] = array(TopicPartition)


@message(versions="0", flexible="none")
class ConsumerGroupRegularExpressionKey:
    group_id: str = string()
    regular_expression: str = string()


@message(versions="0", flexible="0+")
class ConsumerGroupRegularExpressionValue:
    topics: tuple[str, ...] = array("string")
    version: int = int64()
    timestamp: int = int64()
