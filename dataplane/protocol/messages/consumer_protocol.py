"""What consumers say to each other through JoinGroup and SyncGroup.

Declarations only; see `dataplane.protocol.schema`.
"""

from __future__ import annotations

from dataplane.protocol.schema import (
    array,
    binary,
    int32,
    message,
    string,
    struct,
)


@struct
class ConsumerProtocolSubscriptionTopicPartition:
    topic: str = string("1+", entity="topic")
    partitions: tuple[int, ...] = array("int32", "1+")


@message(versions="0-3", flexible="none")
class ConsumerProtocolSubscription:
    topics: tuple[str, ...] = array("string")
    user_data: bytes | None = binary(nullable="0+", default=None)
    owned_partitions: tuple[ConsumerProtocolSubscriptionTopicPartition, ...] = array(
        ConsumerProtocolSubscriptionTopicPartition, "1+"
    )
    generation_id: int = int32("2+", default=-1)
    rack_id: str | None = string("3+", nullable="3+", default=None)


@struct
class ConsumerProtocolAssignmentTopicPartition:
    topic: str = string(entity="topic")
    partitions: tuple[int, ...] = array("int32")


@message(versions="0-3", flexible="none")
class ConsumerProtocolAssignment:
    assigned_partitions: tuple[ConsumerProtocolAssignmentTopicPartition, ...] = array(
        ConsumerProtocolAssignmentTopicPartition
    )
    user_data: bytes | None = binary(nullable="0+", default=None)
