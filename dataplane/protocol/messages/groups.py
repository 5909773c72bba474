"""Consumer groups of the classic protocol. Declarations only; see `dataplane.protocol.schema`."""

from __future__ import annotations

from dataplane.protocol.schema import (
    array,
    binary,
    boolean,
    int16,
    int32,
    message,
    string,
    struct,
)


@struct
class JoinGroupRequestProtocol:
    name: str = string()
    metadata: bytes = binary()


@message(api_key=11, versions="0-9", flexible="6+")
class JoinGroupRequest:
    group_id: str = string(entity="group")
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32("1+", default=-1)
    member_id: str = string()
    group_instance_id: str | None = string("5+", nullable="5+", default=None)
    protocol_type: str = string()
    protocols: tuple[JoinGroupRequestProtocol, ...] = array(JoinGroupRequestProtocol)
    reason: str | None = string("8+", nullable="8+", default=None)


@struct
class JoinGroupResponseMember:
    member_id: str = string()
    group_instance_id: str | None = string("5+", nullable="5+", default=None)
    metadata: bytes = binary(spliced=True)


@message(api_key=11, versions="0-9", flexible="6+")
class JoinGroupResponse:
    throttle_time_ms: int = int32("2+")
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string("7+", nullable="7+", default=None)
    protocol_name: str | None = string(nullable="7+")
    leader: str = string()
    skip_assignment: bool = boolean("9+")
    member_id: str = string()
    members: tuple[JoinGroupResponseMember, ...] = array(JoinGroupResponseMember)


@struct
class SyncGroupRequestAssignment:
    member_id: str = string()
    assignment: bytes = binary()


@message(api_key=14, versions="0-5", flexible="4+")
class SyncGroupRequest:
    group_id: str = string(entity="group")
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    protocol_type: str | None = string("5+", nullable="5+", default=None)
    protocol_name: str | None = string("5+", nullable="5+", default=None)
    assignments: tuple[SyncGroupRequestAssignment, ...] = array(SyncGroupRequestAssignment)


@message(api_key=14, versions="0-5", flexible="4+")
class SyncGroupResponse:
    throttle_time_ms: int = int32("1+")
    error_code: int = int16()
    protocol_type: str | None = string("5+", nullable="5+", default=None)
    protocol_name: str | None = string("5+", nullable="5+", default=None)
    assignment: bytes = binary()


@message(api_key=12, versions="0-4", flexible="4+")
class HeartbeatRequest:
    group_id: str = string(entity="group")
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+", default=None)


@message(api_key=12, versions="0-4", flexible="4+")
class HeartbeatResponse:
    throttle_time_ms: int = int32("1+")
    error_code: int = int16()


@struct
class MemberIdentity:
    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    reason: str | None = string("5+", nullable="5+", default=None)


@message(api_key=13, versions="0-5", flexible="4+")
class LeaveGroupRequest:
    group_id: str = string(entity="group")
    member_id: str = string("0-2")
    members: tuple[MemberIdentity, ...] = array(MemberIdentity, "3+")


@struct
class MemberResponse:
    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+")
    error_code: int = int16("3+")


@message(api_key=13, versions="0-5", flexible="4+")
class LeaveGroupResponse:
    throttle_time_ms: int = int32("1+")
    error_code: int = int16()
    members: tuple[MemberResponse, ...] = array(MemberResponse, "3+")


@message(api_key=15, versions="0-6", flexible="5+")
class DescribeGroupsRequest:
    groups: tuple[str, ...] = array("string", entity="group")
    include_authorized_operations: bool = boolean("3+")


@struct
class DescribedGroupMember:
    member_id: str = string()
    group_instance_id: str | None = string("4+", nullable="4+", default=None)
    client_id: str = string()
    client_host: str = string()
    member_metadata: bytes = binary()
    member_assignment: bytes = binary()


@struct
class DescribedGroup:
    error_code: int = int16()
    error_message: str | None = string("6+", nullable="6+", default=None)
    group_id: str = string(entity="group")
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string()
    members: tuple[DescribedGroupMember, ...] = array(DescribedGroupMember)
    authorized_operations: int = int32("3+", default=-2147483648)


@message(api_key=15, versions="0-6", flexible="5+")
class DescribeGroupsResponse:
    throttle_time_ms: int = int32("1+")
    groups: tuple[DescribedGroup, ...] = array(DescribedGroup)


@message(api_key=16, versions="0-5", flexible="3+")
class ListGroupsRequest:
    states_filter: tuple[str, ...] = array("string", "4+")
    types_filter: tuple[str, ...] = array("string", "5+")


@struct
class ListedGroup:
    group_id: str = string(entity="group")
    protocol_type: str = string()
    group_state: str = string("4+")
    group_type: str = string("5+")


@message(api_key=16, versions="0-5", flexible="3+")
class ListGroupsResponse:
    throttle_time_ms: int = int32("1+")
    error_code: int = int16()
    groups: tuple[ListedGroup, ...] = array(ListedGroup)


@message(api_key=42, versions="0-2", flexible="2+")
class DeleteGroupsRequest:
    groups_names: tuple[str, ...] = array("string", entity="group")


@struct
class DeletableGroupResult:
    group_id: str = string(entity="group")
    error_code: int = int16()


@message(api_key=42, versions="0-2", flexible="2+")
class DeleteGroupsResponse:
    throttle_time_ms: int = int32()
    results: tuple[DeletableGroupResult, ...] = array(DeletableGroupResult)
