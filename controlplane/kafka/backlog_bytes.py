"""What brokers are asked about bytes that lie from an offset on, as bytes: an API of our own, version 0, flexible. Pure.

Brokers declare it in `dataplane/protocol/messages/backlogs.py`; a test has both read the same bytes. An answer that ends early
raises struct.error.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from controlplane.kafka.flexible import NO_TAGS, Reader, array, by_topic, string

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.kafka.flexible import Place

DESCRIBE_BACKLOGS = 20_002


class Told(NamedTuple):
    """Of one partition: bytes in the order of the offsets, up to where its leader's high watermark is."""

    sizes: tuple[int, ...]
    high_watermark: int


def request(offsets: Mapping[Place, Sequence[int]]) -> bytes:
    """By partition, with physical names."""
    topics = array(
        string(topic)
        + array(
            struct.pack(">i", index) + array(struct.pack(">q", each) for each in offsets[topic, index]) + NO_TAGS
            for index in indexes
        )
        + NO_TAGS
        for topic, indexes in by_topic(offsets).items()
    )
    return topics + NO_TAGS


def answer(data: bytes) -> dict[Place, Told]:
    """Of partitions that the broker leads."""
    reader = Reader(data, errors="replace")
    found: dict[Place, Told] = {}
    for _ in range(reader.count()):
        topic = reader.string()
        for _ in range(reader.count()):
            index, error = reader.int32(), reader.int16()
            told = Told(tuple(reader.int64() for _ in range(reader.count())), reader.int64())
            reader.tags()
            if not error:
                found[topic, index] = told
        reader.tags()
    return found
