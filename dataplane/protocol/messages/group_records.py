"""Records of the topic __consumer_offsets. Declarations only; see `dataplane.protocol.schema`."""

from __future__ import annotations

from dataplane.protocol.schema import (
    array,
    binary,
    int32,
    int64,
    message,
    string,
    struct,
)


@message(versions="0-1", flexible="none")
class OffsetCommitKey:
    group: str = string("0-1")
    topic: str = string("0-1")
    partition: int = int32("0-1")


@message(versions="0-4", flexible="4+")
class OffsetCommitValue:
    offset: int = int64()
    leader_epoch: int = int32("3+", default=-1)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64("1", default=-1)


@message(versions="2", flexible="none")
class GroupMetadataKey:
    group: str = string("2")


@struct
class MemberMetadata:
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout: int = int32("1+", default=-1)
    session_timeout: int = int32()
    subscription: bytes = binary()
    assignment: bytes = binary()


@message(versions="0-4", flexible="4+")
class GroupMetadataValue:
    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(nullable="0+")
    leader: str | None = string(nullable="0+")
    current_state_timestamp: int = int64("2+", default=-1)
    members: tuple[MemberMetadata, ...] = array(MemberMetadata)
