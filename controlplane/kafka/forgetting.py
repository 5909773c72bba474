"""OffsetDelete for a group: a request that confluent_kafka has no call for, written here byte by byte.

Version 0, which is the only one and has no tagged fields, sent to the group's coordinator by `leaving.ask`.
https://kafka.apache.org/protocol#The_Messages_OffsetDelete; KIP-496.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from controlplane.kafka import leaving
from controlplane.kafka.flexible import Reader, by_topic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from controlplane.clusters.identification import Identification
    from controlplane.kafka.flexible import Place

OFFSET_DELETE = 47


def forget(
    address: tuple[str, int], who: Identification, group: str, places: Iterable[Place], *, timeout_s: float
) -> tuple[int, Mapping[Place, int]]:
    """Delete a group's offsets of these partitions: Kafka's error code of the group, and of each. Raises ClusterUnavailable."""
    with leaving.signed_in(address, who, timeout_s=timeout_s) as connection:
        return errors_in(leaving.ask(connection, OFFSET_DELETE, 0, request(group, places)))


def request(group: str, places: Iterable[Place]) -> bytes:
    """An OffsetDelete v0."""
    topics = by_topic(places)
    rows = [
        leaving.text_of(topic) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
        for topic, numbers in topics.items()
    ]
    return leaving.text_of(group) + struct.pack(">i", len(rows)) + b"".join(rows)


def errors_in(answer: bytes) -> tuple[int, dict[Place, int]]:
    """Of an OffsetDelete v0 answer. Raises struct.error."""
    reader = Reader(answer)
    of_group = reader.int16()
    reader.int32()  # the throttle time
    found: dict[Place, int] = {}
    for _ in range(reader.int32()):
        topic = reader.old_string()
        for _ in range(reader.int32()):
            number = reader.int32()
            found[topic, number] = reader.int16()
    return of_group, found
