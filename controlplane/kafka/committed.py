"""OffsetFetch for all of a group's offsets, written here byte by byte: librdkafka's ends the process. And ListGroups.

An admin client of librdkafka that is told NOT_COORDINATOR in answer to OffsetFetch, as while a broker goes or comes, looks the
coordinator up again for the consumer group that it is itself, which it is not: a null pointer in `rd_kafka_cgrp_op`, and a web
server that is gone (confluent-kafka-python issue 1982; seen with 2.16). So it is asked here, of the coordinator that
DescribeGroups has named, in version 3, the last whose answer says no more than is read. https://kafka.apache.org/protocol
Offsets of thousands are asked for in version 8, the first that takes many groups in a request (KIP-709).

A broker's ListGroups names the groups that it coordinates. librdkafka asks for the coordinator of each group and describes each,
two requests a group; who wants the offsets of thousands asks each broker for its list, and there for what it has.
"""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING

from controlplane.core.errors import ClusterUnavailable
from controlplane.core.portions import portions
from controlplane.kafka import leaving
from controlplane.kafka.flexible import NO_TAGS, Reader, array, string

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping, Sequence

    from controlplane.clusters.identification import Identification

OFFSET_FETCH, LIST_GROUPS = 9, 16
EVERY_TOPIC = struct.pack(">i", -1)
EVERY_TOPIC_FLEXIBLE, AS_COMMITTED = b"\0", b"\0"
"""Null instead of names; and offsets of transactions that are open do not make an error."""
GROUPS_AT_ONCE = 100

Place = tuple[str, int]
"""A topic and a partition's number."""


def fetch(
    address: tuple[str, int], who: Identification, groups: Sequence[str], *, timeout_s: float
) -> dict[str, tuple[int, Mapping[Place, int]]]:
    """By group: Kafka's error code (0: none), and the next offset to be read of each partition. Raises ClusterUnavailable."""
    with leaving.signed_in(address, who, timeout_s=timeout_s) as connection:
        return {
            group: offsets_in(leaving.ask(connection, OFFSET_FETCH, 3, leaving.text_of(group) + EVERY_TOPIC))
            for group in groups
        }


def fetch_within(
    address: tuple[str, int], who: Identification, groups: Sequence[str], *, timeout_s: float, within_s: float
) -> dict[str, Mapping[Place, int]]:
    """Offsets of as many as answer in `within_s`, in this order, without those that have an error. Raises ClusterUnavailable.

    It is raised only where nobody's are known. An answer that is too long is asked for again in halves: what a client writes
    beside its offsets is in it, some KiB of each partition, and one tenant's groups must not hide those that are asked for
    together with them. Of a group that alone is too long nothing is known.
    """
    until = time.monotonic() + within_s
    found: dict[str, Mapping[Place, int]] = {}
    left = [list(some) for some in portions(groups, GROUPS_AT_ONCE)]
    while left and time.monotonic() < until:
        try:
            with leaving.signed_in(address, who, timeout_s=timeout_s) as connection:
                while left and time.monotonic() < until:
                    found |= _asked(connection, left[0])
                    del left[0]
        except leaving.TooLong:  # what comes of it is on that connection, which is given up
            some, half = left[0], len(left[0]) // 2
            left[:1] = [part for part in (some[:half], some[half:]) if half]
        except ClusterUnavailable:
            if not found:
                raise
            break
    return found


def _asked(connection: socket.socket, groups: Sequence[str]) -> dict[str, Mapping[Place, int]]:
    wanted = array(string(group) + EVERY_TOPIC_FLEXIBLE + NO_TAGS for group in groups)
    answer = leaving.ask(connection, OFFSET_FETCH, 8, wanted + AS_COMMITTED + NO_TAGS, flexible=True)
    return {group: offsets for group, (error, offsets) in offsets_of_each(answer).items() if not error}


def listed(address: tuple[str, int], who: Identification, *, timeout_s: float) -> tuple[int, dict[str, str]]:
    """The groups that a broker coordinates now, everybody's, with their states; and Kafka's error code, 0: all are there.

    Raises ClusterUnavailable.
    """
    with leaving.signed_in(address, who, timeout_s=timeout_s) as connection:
        return states_in(leaving.ask(connection, LIST_GROUPS, 4, array([]) + NO_TAGS, flexible=True))


def states_in(answer: bytes) -> tuple[int, dict[str, str]]:
    """Of a ListGroups v4 answer. Raises struct.error."""
    reader = Reader(answer, errors="replace")
    reader.int32()  # the throttle time
    error, found = reader.int16(), {}
    for _ in range(reader.count()):
        name = reader.string()
        reader.string()  # the type of its protocol
        found[name] = reader.string()
        reader.tags()
    reader.tags()
    return error, found


def offsets_of_each(answer: bytes) -> dict[str, tuple[int, dict[Place, int]]]:
    """By group, of an OffsetFetch v8 answer, as `offsets_in` has it of one. Raises struct.error."""
    reader, found = Reader(answer, errors="replace"), {}
    reader.int32()  # the throttle time
    for _ in range(reader.count()):
        group, offsets = reader.string(), _offsets(reader)
        found[group] = reader.int16(), offsets
        reader.tags()
    reader.tags()
    return found


def _offsets(reader: Reader) -> dict[Place, int]:
    found: dict[Place, int] = {}
    for _ in range(reader.count()):
        topic = reader.string()
        for _ in range(reader.count()):
            number, offset = reader.int32(), reader.int64()
            reader.int32()  # the leader epoch
            reader.skip(reader.count())  # what the client wrote beside it
            error = reader.int16()
            reader.tags()
            if not error and offset >= 0:
                found[topic, number] = offset
        reader.tags()
    return found


def offsets_in(answer: bytes) -> tuple[int, dict[Place, int]]:
    """Of an OffsetFetch v3 answer; partitions with an error or without an offset are left out. Raises struct.error."""
    (topics,), at = struct.unpack_from(">i", answer, 4), 8  # after the throttle time
    found: dict[Place, int] = {}
    for _ in range(topics):
        (length,) = struct.unpack_from(">h", answer, at)
        topic = answer[at + 2 : at + 2 + length].decode()
        (partitions,) = struct.unpack_from(">i", answer, at + 2 + length)
        at += 6 + length
        for _ in range(partitions):
            number, offset, metadata = struct.unpack_from(">iqh", answer, at)
            at += 14 + max(metadata, 0)
            (error,) = struct.unpack_from(">h", answer, at)
            at += 2
            if not error and offset >= 0:
                found[topic, number] = offset
    (of_group,) = struct.unpack_from(">h", answer, at)
    return of_group, found
