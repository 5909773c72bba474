"""What consumers say to each other through JoinGroup and SyncGroup, read and written by the coordinator.

In a group of the classic protocol these bytes are the members' own affair. Where such a group becomes one of the
consumer protocol, the coordinator assigns, so it has to know what members subscribe to and own, and to say what they
are assigned in their own words.
Topics have the tenant's names in them; here they become physical with the key that the group's name begins with, so that nobody
can name another instance's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from dataplane.groups.consumer.model import Assignment, Topic
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from dataplane.protocol.primitives import DecodeError
from quota.contracts.namespace import KEY_LENGTH, split_physical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from uuid import UUID

T = TypeVar("T")

PROTOCOL_TYPE = "consumer"
"""Of groups of the classic protocol whose members speak so."""
STREAMS = "stream"
"""Kafka Streams' strategy: what it assigns are tasks, which only its own user data names."""
MAX_TOPICS = 2_000
MAX_OWNED = 20_000
"""Of a member of either protocol, in one request: each step of a group that is changing looks at them."""
_MAX_BYTES = 2**20
_MAX_NAME = 249
_NEWEST = 3


class Subscription(NamedTuple):
    """What a member wants, and what it has at the moment: physical names."""

    topics: tuple[str, ...]
    owned: tuple[tuple[str, tuple[int, ...]], ...] = ()
    rack_id: str | None = None


def prefix_of(group_id: str) -> str:
    """What stands before the tenant's names of topics; an operator's group has physical ones."""
    return group_id[: KEY_LENGTH + 1] if split_physical(group_id) else ""


def read_subscription(metadata: bytes, prefix: str) -> Subscription | None:
    """None: it is none, or larger than one may be. Before version 1 nobody says what it owns: it gave up everything."""
    said = _read(ConsumerProtocolSubscription, metadata)
    if said is None or len(said.topics) > MAX_TOPICS or any(len(name) > _MAX_NAME for name in said.topics):
        return None
    if len(said.owned_partitions) > MAX_TOPICS or sum(len(row.partitions) for row in said.owned_partitions) > MAX_OWNED:
        return None
    owned = tuple((prefix + row.topic, row.partitions) for row in said.owned_partitions)
    return Subscription(tuple(sorted({prefix + name for name in said.topics})), owned, said.rack_id or None)


def read_assignment(data: bytes, prefix: str, find_topic: Callable[[str], Topic | None]) -> Assignment | None:
    """What a leader assigned, as far as it exists. Whom the leader forgot has nothing.

    None: it is none, or has user data in it, which no coordinator could make anew; its member would not do without (as Kafka).
    """
    if not data:
        return {}
    said = _read(ConsumerProtocolAssignment, data)
    if said is None or said.user_data:
        return None
    return that_exist(((prefix + row.topic, row.partitions) for row in said.assigned_partitions), find_topic)


def that_exist(rows: Iterable[tuple[str, tuple[int, ...]]], find_topic: Callable[[str], Topic | None]) -> Assignment:
    """Of partitions by name, those that there are."""
    found: dict[UUID, set[int]] = {}
    for name, partitions in rows:
        topic = find_topic(name)
        if topic is not None:
            found.setdefault(topic.topic_id, set()).update(p for p in partitions if 0 <= p < topic.partitions)
    return {topic_id: tuple(sorted(some)) for topic_id, some in found.items() if some}


def write_assignment(assignment: Assignment, topics: Mapping[str, Topic], prefix: str, metadata: bytes) -> bytes:
    """For a member that speaks as its subscription does. Topics that are deleted have no name, and are left out."""
    version = _version(metadata)
    names = {topic.topic_id: name for name, topic in topics.items() if topic.topic_id in assignment}
    rows = tuple(
        ConsumerProtocolAssignmentTopicPartition(names[topic_id].removeprefix(prefix), partitions)
        for topic_id, partitions in assignment.items()
        if topic_id in names
    )
    return version.to_bytes(2) + encode(ConsumerProtocolAssignment(rows), version)


def _version(metadata: bytes) -> int:
    """Newer versions begin as the newest that we know."""
    return max(0, min(int.from_bytes(metadata[:2], signed=True), _NEWEST))


def _read(cls: type[T], data: bytes) -> T | None:
    if not 2 <= len(data) <= _MAX_BYTES:
        return None
    try:
        return decode(cls, _version(data), data, 2)
    except (DecodeError, ValueError):
        return None
