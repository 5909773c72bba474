"""The records of ``__consumer_offsets``, in Kafka's own formats, so that Kafka's tools can read the topic.

    key:   int16 version, then its fields      value: int16 version, then its fields, or null: a tombstone
    0, 1   group, topic, partition  ->  committed offset        (1 is written)
    2      group                    ->  members and generation  (3 is written)
    3-8,   those of groups of the consumer protocol: `consumer.records`
    16

The topic is compacted: the last record of a key counts. Keys of other versions belong to protocols that this broker
does not speak and are left alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from dataplane.coordination.effects import KeyValue
from dataplane.coordination.versioned import number_of, read, written
from dataplane.groups.consumer import records as consumer
from dataplane.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

T = TypeVar("T")

_OFFSET_KEY, _GROUP_KEY = 1, 2
_OFFSET_VALUE, _OFFSET_VALUE_WITH_EXPIRY, _GROUP_VALUE = 3, 1, 3


@dataclass(frozen=True, slots=True)
class OffsetRecord:
    """A committed offset; without a value, its end."""

    group: str
    topic: str
    partition: int
    value: OffsetCommitValue | None


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """The durable side of a group; without a value, its end."""

    group: str
    value: GroupMetadataValue | None


@dataclass(frozen=True, slots=True)
class ConsumerRecord:
    """One record of a group of the consumer protocol."""

    group: str
    record: consumer.Record


def write_offset(group: str, topic: str, partition: int, value: OffsetCommitValue | None) -> KeyValue:
    """Key and value of a commit. An expiry time of its own (OffsetCommit v2-v4) exists in value version 1 only."""
    key = written(OffsetCommitKey(group, topic, partition), _OFFSET_KEY)
    if value is None:
        return key, None
    return key, written(value, _OFFSET_VALUE if value.expire_timestamp < 0 else _OFFSET_VALUE_WITH_EXPIRY)


def write_group(group: str, value: GroupMetadataValue | None) -> KeyValue:
    """Key and value of a group."""
    return written(GroupMetadataKey(group), _GROUP_KEY), None if value is None else written(value, _GROUP_VALUE)


def read_record(key: bytes, value: bytes | None) -> OffsetRecord | GroupRecord | ConsumerRecord | None:
    """One record; None for a key that is not ours. Raises DecodeError or ValueError for what cannot be read."""
    version = number_of(key)
    if version in (0, 1):
        offset = read(OffsetCommitKey, key)
        return OffsetRecord(offset.group, offset.topic, offset.partition, _read_value(OffsetCommitValue, value))
    if version == _GROUP_KEY:
        return GroupRecord(read(GroupMetadataKey, key).group, _read_value(GroupMetadataValue, value))
    if version in consumer.KINDS:
        return ConsumerRecord(*consumer.read(key, value))
    return None


def _read_value(cls: type[T], data: bytes | None) -> T | None:
    return None if data is None else read(cls, data)
