"""Where replicas are and shall be: requests that confluent_kafka has no call for, written here byte by byte.

    AlterPartitionReassignments v0, ListPartitionReassignments v0 (KIP-455), ElectLeaders v1 (KIP-460), of the controller;
    IncrementalAlterConfigs v0 (KIP-339), likewise: confluent_kafka cannot name all brokers at once
    DescribeLogDirs v4 (KIP-827), of each broker

Those of reassignments and log directories are flexible versions (`flexible`). https://kafka.apache.org/protocol
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from controlplane.kafka import leaving
from controlplane.kafka.flexible import NO_TAGS, Reader, array, by_topic, string

if TYPE_CHECKING:
    import socket
    from collections.abc import Collection, Mapping, Sequence

    from controlplane.kafka.flexible import Place

ELECT_LEADERS, DESCRIBE_LOG_DIRS, ALTER_REASSIGNMENTS, LIST_REASSIGNMENTS, ALTER_CONFIGS = 43, 35, 45, 46, 44
TOPIC, BROKER = 2, 4
ALL_BROKERS = ""
SET, DELETE = 0, 1
UNKNOWN_TOPIC = 3
PREFERRED = 0
NO_ERROR, NOT_CONTROLLER, ELECTION_NOT_NEEDED, NO_REASSIGNMENT = 0, 41, 84, 85
CLIENT_ID = "sluice-rebalancing"
"""Not the one by which brokers take what the control plane asks for a tenant's: tenants may not throttle replication."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What became of one partition, where it is not what was asked for."""

    code: int
    text: str


@dataclass(frozen=True, slots=True)
class Ongoing:
    """A reassignment that is under way."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        return tuple(broker for broker in self.replicas if broker not in self.removing)


@dataclass(frozen=True, slots=True)
class Disk:
    """All directories of one broker. A copy that moves between directories counts as well."""

    total_bytes: int | None  # None: the broker does not say
    usable_bytes: int | None
    sizes: Mapping[Place, int] = field(default_factory=dict)


def alter(
    connection: socket.socket, targets: Mapping[Place, Sequence[int] | None], *, timeout_ms: int
) -> tuple[int, dict[Place, Refusal]]:
    """Begin, replace or (None) cancel; Kafka's error code for all of it, and what was refused. Raises OSError, struct.error."""
    topics = by_topic(targets)
    body = struct.pack(">i", timeout_ms) + array(
        string(topic)
        + array(struct.pack(">i", index) + _brokers(targets[topic, index]) + NO_TAGS for index in indexes)
        + NO_TAGS
        for topic, indexes in topics.items()
    )
    answer = _answer(_ask(connection, ALTER_REASSIGNMENTS, 0, NO_TAGS + body + NO_TAGS))
    answer.tags()
    answer.skip(4)  # the throttle time
    code, _ = answer.int16(), answer.string()
    refusals: dict[Place, Refusal] = {}
    for _ in range(answer.count()):
        topic = answer.string()
        for _ in range(answer.count()):
            index, error, text = answer.int32(), answer.int16(), answer.string()
            answer.tags()
            if error:
                refusals[topic, index] = Refusal(error, text)
        answer.tags()
    return code, refusals


def under_way(connection: socket.socket, *, timeout_ms: int) -> tuple[int, dict[Place, Ongoing]]:
    """Every reassignment that has not ended; as `alter`."""
    body = struct.pack(">i", timeout_ms) + b"\0"  # topics: null, all of them
    answer = _answer(_ask(connection, LIST_REASSIGNMENTS, 0, NO_TAGS + body + NO_TAGS))
    answer.tags()
    answer.skip(4)
    code, _ = answer.int16(), answer.string()
    found: dict[Place, Ongoing] = {}
    for _ in range(answer.count()):
        topic = answer.string()
        for _ in range(answer.count()):
            index = answer.int32()
            found[topic, index] = Ongoing(answer.int32s(), answer.int32s(), answer.int32s())
            answer.tags()
        answer.tags()
    return code, found


def elect(connection: socket.socket, places: Collection[Place], *, timeout_ms: int) -> tuple[int, dict[Place, Refusal]]:
    """Have the preferred replicas lead; as `alter`. Where one leads already nothing is refused."""
    topics = by_topic(places)
    body = struct.pack(">bi", PREFERRED, len(topics)) + b"".join(
        leaving.text_of(topic) + struct.pack(f">i{len(indexes)}i", len(indexes), *indexes)
        for topic, indexes in topics.items()
    )
    answer = _answer(_ask(connection, ELECT_LEADERS, 1, body + struct.pack(">i", timeout_ms)))
    answer.skip(4)
    code = answer.int16()
    refusals: dict[Place, Refusal] = {}
    for _ in range(answer.int32()):
        topic = answer.old_string()
        for _ in range(answer.int32()):
            index, error, text = answer.int32(), answer.int16(), answer.old_string()
            if error not in (NO_ERROR, ELECTION_NOT_NEEDED):
                refusals[topic, index] = Refusal(error, text)
    return code, refusals


def configure(
    connection: socket.socket, kind: int, settings: Mapping[str, Mapping[str, str | None]]
) -> dict[str, Refusal]:
    """Set members of topics or brokers, by name; None takes one back. What was refused. Raises OSError, struct.error."""
    body = struct.pack(">i", len(settings))
    for name, members in settings.items():
        body += struct.pack(">b", kind) + leaving.text_of(name) + struct.pack(">i", len(members))
        for key, value in members.items():
            text = struct.pack(">h", -1) if value is None else leaving.text_of(value)
            body += leaving.text_of(key) + struct.pack(">b", DELETE if value is None else SET) + text
    answer = _answer(_ask(connection, ALTER_CONFIGS, 0, body + b"\0"))  # not only to be looked at
    answer.skip(4)
    refusals: dict[str, Refusal] = {}
    for _ in range(answer.int32()):
        error, text_of_it = answer.int16(), answer.old_string()
        answer.skip(1)
        name = answer.old_string()
        if error:
            refusals[name] = Refusal(error, text_of_it)
    return refusals


def log_dirs(connection: socket.socket, places: Collection[Place] | None) -> Disk:
    """What is on a broker's disks, of these partitions or (None) of all. Raises OSError, struct.error."""
    topics = b"\0"
    if places is not None:
        topics = array(
            string(topic) + array(struct.pack(">i", index) for index in indexes) + NO_TAGS
            for topic, indexes in by_topic(places).items()
        )
    answer = _answer(_ask(connection, DESCRIBE_LOG_DIRS, 4, NO_TAGS + topics + NO_TAGS))
    answer.tags()
    answer.skip(4 + 2)  # the throttle time; an error of all, which the control plane has not
    sizes: dict[Place, int] = {}
    spaces = []
    for _ in range(answer.count()):
        _error, _path = answer.int16(), answer.string()
        for _ in range(answer.count()):
            topic = answer.string()
            for _ in range(answer.count()):
                index, size = answer.int32(), answer.int64()
                answer.skip(8 + 1)  # the lag; whether it is a copy that moves between directories
                answer.tags()
                sizes[topic, index] = sizes.get((topic, index), 0) + size
            answer.tags()
        spaces.append((answer.int64(), answer.int64()))
        answer.tags()
    known = [space for space in spaces if min(space) >= 0]
    if not known:
        return Disk(None, None, sizes)
    # Directories on one disk say the same twice: what is the same to the byte is taken for one.
    total, usable = (sum(column) for column in zip(*dict.fromkeys(known), strict=True))
    return Disk(total, usable, sizes)


def _ask(connection: socket.socket, key: int, version: int, body: bytes) -> bytes:
    return leaving.ask(connection, key, version, body, CLIENT_ID)


def _brokers(brokers: Sequence[int] | None) -> bytes:
    return b"\0" if brokers is None else array(struct.pack(">i", broker) for broker in brokers)


def _answer(data: bytes) -> Reader:
    return Reader(data, errors="replace")  # a text says why something was refused
