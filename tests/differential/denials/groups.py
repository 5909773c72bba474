"""Groups and their offsets."""

from __future__ import annotations

from typing import Any

from dataplane.protocol.api import ApiKey
from dataplane.protocol.messages.discovery import FindCoordinatorRequest
from dataplane.protocol.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    MemberIdentity,
    SyncGroupRequest,
)
from dataplane.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.differential.denials import NOWHERE, ORDERS, OTHER, READERS, STRANGERS, World, case, cluster, group, topic
from tests.differential.scenarios.groups import join

NAMES = (ORDERS, OTHER, NOWHERE)
MANY_GROUPS_IN_FETCH, MANY_KEYS = 8, 4
"""First versions of OffsetFetch and FindCoordinator that ask for several."""
UNKNOWN = "nobody"


@case(ApiKey.OFFSET_COMMIT, group("READ"), topic("READ"))
@case(ApiKey.OFFSET_COMMIT, group("READ"))
@case(ApiKey.OFFSET_COMMIT, topic("READ"))
def offset_commit(_: World) -> Any:
    parts = (OffsetCommitRequestPartition(0, 5, committed_metadata=""),)
    return OffsetCommitRequest(READERS, topics=tuple(OffsetCommitRequestTopic(name, parts) for name in NAMES))


def _offsets(world: World, names: tuple[str, ...] | None, groups: tuple[str, ...] = (READERS, STRANGERS)) -> Any:
    if world.version >= MANY_GROUPS_IN_FETCH:
        topics = None if names is None else tuple(OffsetFetchRequestTopics(name, (0,)) for name in names)
        return OffsetFetchRequest(groups=tuple(OffsetFetchRequestGroup(name, topics=topics) for name in groups))
    named = None if names is None else tuple(OffsetFetchRequestTopic(name, (0,)) for name in names)
    return OffsetFetchRequest(groups[0], named)


@case(ApiKey.OFFSET_FETCH, group("DESCRIBE"), topic("DESCRIBE"))
@case(ApiKey.OFFSET_FETCH, group("DESCRIBE"))
@case(ApiKey.OFFSET_FETCH, topic("DESCRIBE"))
def offset_fetch(world: World) -> Any:
    return _offsets(world, NAMES)


@case(ApiKey.OFFSET_FETCH, group("DESCRIBE"), topic("DESCRIBE"))
def offset_fetch_of_all(world: World) -> Any:
    return _offsets(world, None if world.version >= 2 else ())


@case(ApiKey.OFFSET_DELETE, group("DELETE"), topic("READ"))
@case(ApiKey.OFFSET_DELETE, group("DELETE"))
def offset_delete(_: World) -> Any:
    parts = (OffsetDeleteRequestPartition(0),)
    return OffsetDeleteRequest(READERS, tuple(OffsetDeleteRequestTopic(name, parts) for name in NAMES))


@case(ApiKey.FIND_COORDINATOR, group("DESCRIBE"))
def find_coordinator(world: World) -> Any:
    if world.version >= MANY_KEYS:
        return FindCoordinatorRequest(coordinator_keys=(READERS, STRANGERS))
    return FindCoordinatorRequest(READERS)


@case(ApiKey.JOIN_GROUP, group("READ"))
def join_group(_: World) -> Any:
    return join(READERS, UNKNOWN)


@case(ApiKey.HEARTBEAT, group("READ"))
def heartbeat(_: World) -> Any:
    return HeartbeatRequest(READERS, 1, UNKNOWN)


@case(ApiKey.SYNC_GROUP, group("READ"))
def sync_group(_: World) -> Any:
    return SyncGroupRequest(READERS, 1, UNKNOWN, protocol_type="consumer", protocol_name="range")


@case(ApiKey.LEAVE_GROUP, group("READ"))
def leave_group(_: World) -> Any:
    return LeaveGroupRequest(READERS, UNKNOWN, (MemberIdentity(UNKNOWN),))


@case(ApiKey.DESCRIBE_GROUPS, group("DESCRIBE"))
@case(ApiKey.DESCRIBE_GROUPS, group("DELETE"))
def describe_groups(world: World) -> Any:
    return DescribeGroupsRequest((READERS, STRANGERS), include_authorized_operations=world.version >= 3)


@case(ApiKey.LIST_GROUPS, group("DESCRIBE"))
@case(ApiKey.LIST_GROUPS, cluster("DESCRIBE"))
def list_groups(_: World) -> Any:
    return ListGroupsRequest()


@case(ApiKey.DELETE_GROUPS, group("DELETE", "gone"))
def delete_groups(_: World) -> Any:
    return DeleteGroupsRequest(("gone", STRANGERS))
