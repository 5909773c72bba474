"""What brokers are asked about an instance's connections, as bytes: an API of our own, version 0, flexible. Pure.

Brokers declare it in `dataplane/protocol/messages/connections.py`; a test has both read the same bytes. An answer that ends early
raises struct.error.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from controlplane.kafka.flexible import NO_TAGS, Reader, string

if TYPE_CHECKING:
    from collections.abc import Callable

    Row = TypeVar("Row")

DESCRIBE_CONNECTIONS = 20_001
NONE, RESOURCE_NOT_FOUND = 0, 91


class ConnectionRow(NamedTuple):
    """One connection; what came and went did so in the last `window_ms`."""

    client_id: str
    software_name: str
    software_version: str
    address: str
    principal: str
    route_id: str
    opened_ms: int
    window_ms: int
    received_bytes: int
    sent_bytes: int
    requests: int


class RefusedRow(NamedTuple):
    """Connections from one address to one route that were not taken, for one reason."""

    address: str
    route_id: str
    reason: str
    count: int  # type: ignore[assignment]  # not tuple's method
    last_ms: int
    user: str = ""  # that the last of them tried to log in as; empty: not known, as of a broker of an earlier release
    client_id: str = ""  # that it said; likewise


class TalkerRow(NamedTuple):
    """What a client has moved of a topic, by its physical name, in the last `window_ms`: bytes of records."""

    client_id: str
    address: str
    topic: str
    window_ms: int
    produced_bytes: int
    consumed_bytes: int


class Rest(NamedTuple):
    """Rows that are not told: how many, and what they move a second."""

    count: int  # type: ignore[assignment]  # likewise
    in_bytes_per_s: int
    out_bytes_per_s: int
    requests_per_s: int


class Answer(NamedTuple):
    """What one broker says."""

    connections: tuple[ConnectionRow, ...]
    other_connections: Rest
    refused: tuple[RefusedRow, ...]
    other_refused: int
    talkers: tuple[TalkerRow, ...]
    other_talkers: Rest


NOTHING = Answer((), Rest(0, 0, 0, 0), (), 0, (), Rest(0, 0, 0, 0))


def request(instance_id: str, topic: str | None, most_connections: int, most_talkers: int) -> bytes:
    """`topic` is a physical name; None: of all. Nothing is told of what there may be 0 rows of."""
    named = b"\0" if topic is None else string(topic)
    return string(instance_id) + named + struct.pack(">ii", most_connections, most_talkers) + NO_TAGS


def answer(data: bytes) -> tuple[int, Answer]:
    """Kafka's error code, and what is said. What is no UTF-8 is replaced: a client may say anything of itself."""
    reader = Reader(data, errors="replace")
    error = reader.int16()
    connections = _rows(reader, lambda: ConnectionRow(*_texts(reader, 6), *_numbers(reader, 5)))  # type: ignore[arg-type]
    others = _rest(reader)
    refused = tuple(_refused(reader) for _ in range(reader.count()))
    other_refused = reader.int64()
    talkers = _rows(reader, lambda: TalkerRow(*_texts(reader, 3), *_numbers(reader, 3)))  # type: ignore[arg-type]
    return error, Answer(connections, others, refused, other_refused, talkers, _rest(reader))


def _rows(reader: Reader, read: Callable[[], Row]) -> tuple[Row, ...]:
    rows = []
    for _ in range(reader.count()):
        rows.append(read())
        reader.tags()
    return tuple(rows)


def _refused(reader: Reader) -> RefusedRow:
    return RefusedRow(*_texts(reader, 3), *_numbers(reader, 2), *reader.tagged_strings(2))  # type: ignore[arg-type]


def _rest(reader: Reader) -> Rest:
    rest = Rest(*_numbers(reader, 4))
    reader.tags()
    return rest


def _texts(reader: Reader, count: int) -> tuple[str, ...]:
    return tuple(reader.string() for _ in range(count))


def _numbers(reader: Reader, count: int) -> tuple[int, ...]:
    return tuple(reader.int64() for _ in range(count))
