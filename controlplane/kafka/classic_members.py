"""ConsumerGroupDescribe, for which protocol each member of a group speaks: confluent_kafka describes groups without saying it.

Version 1, the first that says it, sent to the group's coordinator by `leaving.ask`. What is read of the answer is that alone.
https://kafka.apache.org/protocol#The_Messages_ConsumerGroupDescribe; KIP-848.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from controlplane.kafka import leaving
from controlplane.kafka.flexible import NO_TAGS, Reader, array, string

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controlplane.clusters.identification import Identification

CONSUMER_GROUP_DESCRIBE = 69
CLASSIC = 0
"""The type of a member that joined by the classic protocol; 1: by the consumer protocol."""
WITHOUT_OPERATIONS = b"\0"
THROTTLE_TIME_BYTES, UUID_BYTES = 4, 16


def fetch(address: tuple[str, int], who: Identification, group: str, *, timeout_s: float) -> tuple[int, frozenset[str]]:
    """Kafka's error code (0: none), and the ids of members of the classic protocol. Raises ClusterUnavailable."""
    with leaving.signed_in(address, who, timeout_s=timeout_s) as connection:
        return members_in(leaving.ask(connection, CONSUMER_GROUP_DESCRIBE, 1, request(group), flexible=True))


def request(*groups: str) -> bytes:
    """A ConsumerGroupDescribe v1."""
    return array(map(string, groups)) + WITHOUT_OPERATIONS + NO_TAGS


def groups_in(answer: bytes) -> Iterator[tuple[int, str, str, int]]:
    """Of each group of a ConsumerGroupDescribe v1 answer: Kafka's error code, name, state and epoch. Raises struct.error."""
    reader = Reader(answer, THROTTLE_TIME_BYTES, errors="replace")
    for _ in range(reader.count()):
        error = reader.int16()
        reader.string()  # why
        name, state, epoch = reader.string(), reader.string(), reader.int32()
        reader.int32()  # the epoch of its assignment
        reader.string()  # the assignor
        for _ in range(reader.count()):
            _member(reader)
        reader.int32()  # operations, which nobody asked for
        reader.tags()
        yield error, name, state, epoch


def members_in(answer: bytes) -> tuple[int, frozenset[str]]:
    """Of the first group of a ConsumerGroupDescribe v1 answer. Raises struct.error."""
    reader = Reader(answer, THROTTLE_TIME_BYTES, errors="replace")
    if not reader.count():
        raise struct.error("the answer names no group")
    error = reader.int16()
    for _ in range(3):  # why, the group's name, its state
        reader.string()
    for _ in range(2):  # its epoch, and that of its assignment
        reader.int32()
    reader.string()  # the assignor
    members = [_member(reader) for _ in range(reader.count())]
    return error, frozenset(name for name, kind in members if kind == CLASSIC)


def _member(reader: Reader) -> tuple[str, int]:
    """The id, and which protocol it speaks."""
    name = reader.string()
    for _ in range(2):  # of its instance, and its rack
        reader.string()
    reader.int32()  # the epoch
    for _ in range(2):  # client id and host
        reader.string()
    for _ in range(reader.count()):  # topics by name
        reader.string()
    reader.string()  # and by regular expression
    for _ in range(2):  # what it has, and what it shall have
        _pass_assignment(reader)
    kind = reader.int8()
    reader.tags()
    return name, kind


def _pass_assignment(reader: Reader) -> None:
    for _ in range(reader.count()):
        reader.skip(UUID_BYTES)
        reader.string()
        reader.int32s()
        reader.tags()
    reader.tags()
