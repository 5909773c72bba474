"""OffsetFetch for all of a group's offsets, written here byte by byte: librdkafka's ends the process.

An admin client of librdkafka that is told NOT_COORDINATOR in answer to OffsetFetch, as while a broker goes or comes, looks the
coordinator up again for the consumer group that it is itself, which it is not: a null pointer in `rd_kafka_cgrp_op`, and a web
server that is gone (confluent-kafka-python issue 1982; seen with 2.16). So it is asked here, of the coordinator that
DescribeGroups has named, in version 3, the last whose answer says no more than is read. https://kafka.apache.org/protocol
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from controlplane.kafka import leaving

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.clusters.identification import Identification

OFFSET_FETCH = 9
EVERY_TOPIC = struct.pack(">i", -1)

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
