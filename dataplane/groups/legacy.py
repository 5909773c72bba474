"""Offsets in ZooKeeper, where OffsetCommit and OffsetFetch of version 0 keep them: the clients of 0.8.

    /consumers/<group>/offsets/<topic>/<partition> = the offset, as decimal text

The group's name becomes part of a path, so a name that would lead out of its own node is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.doors import NodeExistsError, NoNodeError, ZooKeeperError
from dataplane.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from dataplane.doors import ZooKeeper

NO_OFFSET = -1


def group_problem(group_id: str) -> ErrorCode:
    """INVALID_GROUP_ID for a name that cannot be one node of ZooKeeper."""
    readable = group_id.isprintable() and "/" not in group_id and group_id not in (".", "..")
    return ErrorCode.NONE if group_id and readable else ErrorCode.INVALID_GROUP_ID


def offset_path(group_id: str, topic: str, partition: int) -> str:
    """The node of one offset."""
    return f"/consumers/{group_id}/offsets/{topic}/{partition}"


async def commit(zookeeper: ZooKeeper, group_id: str, topic: str, partition: int, offset: int) -> ErrorCode:
    """Keep one offset."""
    path, data = offset_path(group_id, topic, partition), str(offset).encode()
    try:
        await _write(zookeeper, path, data)
    except ZooKeeperError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return ErrorCode.NONE


async def _write(zookeeper: ZooKeeper, path: str, data: bytes) -> None:
    try:
        await zookeeper.set(path, data)
    except NoNodeError:
        try:
            await zookeeper.create(path, data, parents=True)
        except NodeExistsError:
            await zookeeper.set(path, data)


async def fetch(zookeeper: ZooKeeper, group_id: str, topic: str, partition: int) -> tuple[int, ErrorCode]:
    """One offset; version 0 has an error for "never committed"."""
    try:
        data, _ = await zookeeper.get(offset_path(group_id, topic, partition))
        return int(data), ErrorCode.NONE
    except NoNodeError:
        return NO_OFFSET, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    except (ZooKeeperError, ValueError):
        return NO_OFFSET, ErrorCode.UNKNOWN_SERVER_ERROR
