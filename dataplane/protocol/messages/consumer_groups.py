"""Consumer groups of the consumer protocol (KIP-848). Declarations only; see `dataplane.protocol.schema`."""

from __future__ import annotations

from uuid import UUID

from dataplane.protocol.schema import (
    array,
    boolean,
    int8,
    int16,
    int32,
    message,
    string,
    struct,
    structure,
    uuid,
)


@struct
class ConsumerGroupHeartbeatTopicPartitions:
    topic_id: UUID = uuid()
    partitions: tuple[int, ...] = array("int32")


@message(api_key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatRequest:
    group_id: str = string(entity="group")
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    subscribed_topic_names: tuple[str, ...] | None = array("string", nullable="0+", default=None, entity="topic")
    subscribed_topic_regex: str | None = string("1+", nullable="1+", default=None)
    server_assignor: str | None = string(nullable="0+", default=None)
    topic_partitions: tuple[ConsumerGroupHeartbeatTopicPartitions, ...] | None = array(
        ConsumerGroupHeartbeatTopicPartitions, nullable="0+", default=None
    )


@struct
class ConsumerGroupHeartbeatAssignment:
    topic_partitions: tuple[ConsumerGroupHeartbeatTopicPartitions, ...] = array(ConsumerGroupHeartbeatTopicPartitions)


@message(api_key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: ConsumerGroupHeartbeatAssignment | None = structure(
        ConsumerGroupHeartbeatAssignment, nullable="0+", default=None
    )


@message(api_key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeRequest:
    group_ids: tuple[str, ...] = array("string", entity="group")
    include_authorized_operations: bool = boolean()


@struct
class ConsumerGroupDescribeTopicPartitions:
    topic_id: UUID = uuid()
    topic_name: str = string(entity="topic")
    partitions: tuple[int, ...] = array("int32")


@struct
class ConsumerGroupDescribeAssignment:
    topic_partitions: tuple[ConsumerGroupDescribeTopicPartitions, ...] = array(ConsumerGroupDescribeTopicPartitions)


@struct
class ConsumerGroupDescribeMember:
    member_id: str = string()
    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: tuple[str, ...] = array("string", entity="topic")
    subscribed_topic_regex: str | None = string(nullable="0+", default=None)
    assignment: ConsumerGroupDescribeAssignment = structure(ConsumerGroupDescribeAssignment)
    target_assignment: ConsumerGroupDescribeAssignment = structure(ConsumerGroupDescribeAssignment)
    member_type: int = int8("1+", default=-1)


@struct
class ConsumerGroupDescribeGroup:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    group_id: str = string(entity="group")
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: tuple[ConsumerGroupDescribeMember, ...] = array(ConsumerGroupDescribeMember)
    authorized_operations: int = int32(default=-2147483648)


@message(api_key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse:
    throttle_time_ms: int = int32()
    groups: tuple[ConsumerGroupDescribeGroup, ...] = array(ConsumerGroupDescribeGroup)
