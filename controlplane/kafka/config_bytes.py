"""DescribeConfigs v3 of one topic, byte by byte: confluent_kafka keeps synonyms by name, which loses all but the last of a name.

What is asked for with it: each configuration with where its value comes from, what holds where the topic says nothing, and a
sentence on it. The version is the last without tagged fields. https://kafka.apache.org/protocol#The_Messages_DescribeConfigs
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from controlplane.kafka.flexible import Reader
from controlplane.kafka.leaving import text_of

DESCRIBE_CONFIGS, VERSION = 32, 3
TOPIC = 2
OF_TOPIC, OF_BROKER, OF_ALL_BROKERS, IN_FILE, KAFKAS = 1, 2, 3, 4, 5
"""Where a value comes from, as Kafka numbers it."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A value, and where it comes from."""

    value: str | None
    source: int


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """One configuration of a topic: what is in force, and what would be if the topic said nothing."""

    name: str
    value: str | None
    source: int
    is_read_only: bool
    inherited: Origin
    documentation: str  # empty: the broker says none


def request(physical: str) -> bytes:
    """Everything about one topic, with synonyms and sentences."""
    return struct.pack(">ib", 1, TOPIC) + text_of(physical) + struct.pack(">i", -1) + b"\x01\x01"


def answer(data: bytes) -> tuple[int, list[ConfigRow]]:
    """Kafka's error code, and the rows by name. Raises struct.error."""
    reader = Reader(data, errors="replace")
    reader.skip(4)  # the throttle time
    if reader.int32() != 1:
        raise struct.error("the answer is about another number of topics")
    code, _ = reader.int16(), reader.old_string()
    reader.skip(1)
    reader.old_string()
    rows = [_row(reader) for _ in range(reader.int32())]
    return code, sorted(rows, key=lambda row: row.name)


def _row(reader: Reader) -> ConfigRow:
    name, value = reader.old_string(), reader.nullable_string()
    is_read_only, source = bool(reader.int8()), reader.int8()
    reader.skip(1)  # whether it is a secret: no topic has one
    synonyms = []
    for _ in range(reader.int32()):
        reader.old_string()
        synonyms.append(Origin(reader.nullable_string(), reader.int8()))
    reader.skip(1)  # the type
    documentation = reader.nullable_string() or ""
    # The one in force comes first; of a default that brokers have no name for there is no synonym.
    behind = [each for each in synonyms if each.source != OF_TOPIC]
    inherited = behind[0] if behind else Origin(None if source == OF_TOPIC else value, KAFKAS)
    return ConfigRow(name, value, source, is_read_only, inherited, documentation)
