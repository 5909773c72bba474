"""The records of a group of the consumer protocol in ``__consumer_offsets``, in Kafka's own formats.

    kind of key                    value
    3   group                      group epoch
    4   group                      its topics: ids, numbers of partitions
    5   group, member              what the member said of itself
    6   group                      epoch of the target assignment
    7   group, member              its target
    8   group, member              what it has, what it has to give up, its epoch
    16  group, regular expression  the topics that it matches

Kafka from 4.1 on keeps a hash in place of 4 and still reads 4. Names of topics are physical; a regular expression is the tenant's
own text. A group of the other protocol that this one follows is ended with a tombstone of its kind (2); where this group
goes over into one of the other protocol, that one's record is the last of the batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from dataplane.coordination import versioned
from dataplane.coordination.versioned import number_of, written
from dataplane.groups.consumer.model import Classic, Matched, Member, MemberState, Topic
from dataplane.protocol.messages.consumer_group_records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicMetadata,
    TopicPartition,
)
from dataplane.protocol.messages.group_records import GroupMetadataKey, GroupMetadataValue
from dataplane.protocol.primitives import DecodeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dataplane.coordination.effects import KeyValue
    from dataplane.groups.consumer.model import Assignment, Group


class Kind(IntEnum):
    """The first two bytes of a key."""

    CLASSIC = 2
    EPOCH = 3
    TOPICS = 4
    MEMBER = 5
    TARGET_EPOCH = 6
    TARGET = 7
    CURRENT = 8
    PATTERN = 16


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a group. `name` is the member's id, or the regular expression. Without a value: it is no more."""

    kind: Kind
    name: str = ""
    value: Any = None


_VALUE_VERSION = 0
_CLASSIC_VALUE_VERSION = 3
_OF_GROUP: Mapping[Kind, tuple[type, int, type | None]] = {
    Kind.CLASSIC: (GroupMetadataKey, 2, None),
    Kind.EPOCH: (ConsumerGroupMetadataKey, 3, ConsumerGroupMetadataValue),
    Kind.TOPICS: (ConsumerGroupPartitionMetadataKey, 4, ConsumerGroupPartitionMetadataValue),
    Kind.TARGET_EPOCH: (ConsumerGroupTargetAssignmentMetadataKey, 6, ConsumerGroupTargetAssignmentMetadataValue),
}
_OF_ONE: Mapping[Kind, tuple[type, int, type | None]] = {
    Kind.MEMBER: (ConsumerGroupMemberMetadataKey, 5, ConsumerGroupMemberMetadataValue),
    Kind.TARGET: (ConsumerGroupTargetAssignmentMemberKey, 7, ConsumerGroupTargetAssignmentMemberValue),
    Kind.CURRENT: (ConsumerGroupCurrentMemberAssignmentKey, 8, ConsumerGroupCurrentMemberAssignmentValue),
    Kind.PATTERN: (ConsumerGroupRegularExpressionKey, 0, ConsumerGroupRegularExpressionValue),
}
_KINDS = {**_OF_GROUP, **_OF_ONE}
KINDS = frozenset(int(kind) for kind in _KINDS if kind is not Kind.CLASSIC)


def write(group_id: str, record: Record) -> KeyValue:
    """Key and value."""
    key_type, version, _ = _KINDS[record.kind]
    key = key_type(group_id) if record.kind in _OF_GROUP else key_type(group_id, record.name)
    data = written(key, record.kind, version)
    version = _CLASSIC_VALUE_VERSION if record.kind is Kind.CLASSIC else _VALUE_VERSION
    return data, None if record.value is None else written(record.value, version)


_BATCH_BYTES, _RECORD_BYTES = 61, 21  # the header; lengths and deltas of one record at most


def size(group_id: str, records: Iterable[Record]) -> int:
    """How many bytes a batch of these has, at most."""
    return _BATCH_BYTES + sum(size_of(group_id, record) for record in records)


def size_of(group_id: str, record: Record) -> int:
    """How many of these are one record's."""
    key, value = write(group_id, record)
    return len(key) + len(value or b"") + _RECORD_BYTES


def read(key: bytes, value: bytes | None) -> tuple[str, Record]:
    """The group and the record. Raises DecodeError or ValueError for what cannot be read."""
    kind = Kind(number_of(key))
    key_type, version, value_type = _KINDS[kind]
    named: Any = versioned.read(key_type, key, version)
    name = ""
    if kind in _OF_ONE:
        name = named.regular_expression if kind is Kind.PATTERN else named.member_id
    if value is None or value_type is None:
        return named.group_id, Record(kind, name)
    if number_of(value) != _VALUE_VERSION:
        raise DecodeError(f"version {number_of(value)} of a value of kind {kind}")
    return named.group_id, Record(kind, name, versioned.read(value_type, value))


# --- values -----------------------------------------------------------------------------------------------------------


def assignment_in(rows: tuple[TopicPartition, ...]) -> Assignment:
    """As we keep it."""
    return {row.topic_id: tuple(sorted(row.partitions)) for row in rows if row.partitions}


def assignment_out(assignment: Assignment) -> tuple[TopicPartition, ...]:
    """As it is written."""
    return tuple(TopicPartition(topic_id, partitions) for topic_id, partitions in assignment.items())


def epoch_record(epoch: int) -> Record:
    """The group's epoch."""
    return Record(Kind.EPOCH, value=ConsumerGroupMetadataValue(epoch))


def topics_record(topics: Mapping[str, Topic]) -> Record:
    """What is known of the topics that are subscribed to. Racks are not: no assignor here looks at them."""
    rows = tuple(TopicMetadata(topic.topic_id, name, topic.partitions) for name, topic in topics.items())
    return Record(Kind.TOPICS, value=ConsumerGroupPartitionMetadataValue(rows))


def member_record(member: Member) -> Record:
    """What a member says of itself."""
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.topics,
        subscribed_topic_regex=member.pattern,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=_classic_out(member.classic),
    )
    return Record(Kind.MEMBER, member.member_id, value)


def _classic_out(classic: Classic | None) -> ClassicMemberMetadata | None:
    if classic is None:
        return None
    protocols = tuple(ClassicProtocol(*protocol) for protocol in classic.protocols)
    return ClassicMemberMetadata(classic.session_timeout_ms, protocols)


def classic_in(value: ClassicMemberMetadata | None) -> Classic | None:
    """As we keep it. Without any protocol it could not be answered: then it is none."""
    if value is None or not value.supported_protocols:
        return None
    return Classic(value.session_timeout_ms, tuple((each.name, each.metadata) for each in value.supported_protocols))


def current_record(member: Member) -> Record:
    """How far a member is."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=int(member.state),
        assigned_partitions=assignment_out(member.assigned),
        partitions_pending_revocation=assignment_out(member.revoking),
    )
    return Record(Kind.CURRENT, member.member_id, value)


def target_record(member_id: str, target: Assignment) -> Record:
    """What a member shall have."""
    value = ConsumerGroupTargetAssignmentMemberValue(assignment_out(target))
    return Record(Kind.TARGET, member_id, value)


def target_epoch_record(epoch: int) -> Record:
    """For which epoch of the group the targets were made."""
    return Record(Kind.TARGET_EPOCH, value=ConsumerGroupTargetAssignmentMetadataValue(epoch))


def pattern_record(pattern: str, matched: Matched) -> Record:
    """What a regular expression matches."""
    value = ConsumerGroupRegularExpressionValue(matched.topics, 0, matched.timestamp_ms)
    return Record(Kind.PATTERN, pattern, value)


def end_of_member(member_id: str) -> tuple[Record, ...]:
    """A member is no more."""
    return tuple(Record(kind, member_id) for kind in (Kind.CURRENT, Kind.TARGET, Kind.MEMBER))


def end_of_group(group: Group) -> tuple[Record, ...]:
    """A group without members is no more."""
    patterns = tuple(Record(Kind.PATTERN, pattern) for pattern in group.matched)
    return (*patterns, *(Record(kind) for kind in (Kind.TARGET_EPOCH, Kind.TOPICS, Kind.EPOCH)))


def as_it_is(group: Group, kind: Kind, name: str, classic: GroupMetadataValue | None = None) -> Record:
    """The record that says of a key what holds: what the log shall say where it is in doubt.

    `classic`: what it shall say of the group of the classic protocol that goes on, as it could not become this one.
    """
    member = group.members.get(name)
    if kind is Kind.CLASSIC:
        return Record(kind, value=classic)
    if kind is Kind.MEMBER and member is not None:
        return member_record(member)
    if kind is Kind.CURRENT and member is not None:
        return current_record(member)
    if kind is Kind.TARGET and name in group.targets:
        return target_record(name, group.targets[name])
    if kind is Kind.PATTERN and name in group.matched:
        return pattern_record(name, group.matched[name])
    if group.epoch and kind is Kind.EPOCH:
        return epoch_record(group.epoch)
    if group.epoch and kind is Kind.TARGET_EPOCH and group.target_epoch:
        return target_epoch_record(group.target_epoch)
    if group.epoch and kind is Kind.TOPICS:
        return topics_record(group.topics)
    return Record(kind, name)


def state_of(number: int) -> MemberState:
    """Of a record. One that we do not know is of a newer broker: nothing is lost by beginning to reconcile."""
    return MemberState(number) if number in (0, 1, 2) else MemberState.UNRELEASED
