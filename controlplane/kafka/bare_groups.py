"""DescribeGroups without what members were assigned: for groups whose assignments librdkafka does not read.

What members of a group say to each other is theirs: a broker keeps it, whatever it is. librdkafka reads each assignment as a
consumer's, and has no answer for a group of another kind (workers of Kafka Connect), for an assignment that is cut, or for a
topic's name that is not UTF-8. Of such a group the rest is read here: FindCoordinator v1, DescribeGroups v1, the last with
nothing that is not needed. https://kafka.apache.org/protocol
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.kafka import leaving
from controlplane.kafka.flexible import Reader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.clusters.identification import Identification

FIND_COORDINATOR, DESCRIBE_GROUPS = 10, 15
OF_A_GROUP = b"\0"

Address = tuple[str, int]
"""Host and port of a broker."""


@dataclass(frozen=True, slots=True)
class BareMember:
    """One member of a group."""

    id: str
    client_id: str
    host: str


@dataclass(frozen=True, slots=True)
class BareGroup:
    """A group as its coordinator knows it. `kind`: the type of its protocol, such as connect; empty: no member ever was."""

    state: str
    kind: str
    protocol: str
    members: tuple[BareMember, ...]


def coordinators(
    address: Address, who: Identification, groups: Sequence[str], *, timeout_s: float
) -> dict[str, tuple[int, Address]]:
    """By group Kafka's error code (0: none) and its coordinator, as any broker knows it. Raises ClusterUnavailable."""
    with leaving.signed_in(address, who, timeout_s=timeout_s) as connection:
        return {
            group: coordinator_in(leaving.ask(connection, FIND_COORDINATOR, 1, leaving.text_of(group) + OF_A_GROUP))
            for group in groups
        }


def fetch(
    address: Address, who: Identification, groups: Sequence[str], *, timeout_s: float
) -> Mapping[str, tuple[int, BareGroup]]:
    """By group Kafka's error code (0: none) and what its coordinator, which this is, knows of it. Raises ClusterUnavailable."""
    request = struct.pack(">i", len(groups)) + b"".join(map(leaving.text_of, groups))
    with leaving.signed_in(address, who, timeout_s=timeout_s) as connection:
        found = groups_in(leaving.ask(connection, DESCRIBE_GROUPS, 1, request))
        if len(found) != len(groups):
            raise struct.error("the answer is about other groups")
        return dict(zip(groups, found, strict=True))


def coordinator_in(answer: bytes) -> tuple[int, Address]:
    """Of a FindCoordinator v1 answer. Raises struct.error."""
    reader = Reader(answer, errors="replace")
    reader.int32()  # the throttle time
    error = reader.int16()
    reader.old_string()  # what went wrong
    reader.int32()  # the broker's id
    return error, (reader.old_string(), reader.int32())


def groups_in(answer: bytes) -> list[tuple[int, BareGroup]]:
    """Of a DescribeGroups v1 answer, in its order: that of the request. Raises struct.error."""
    reader = Reader(answer, errors="replace")
    reader.int32()  # the throttle time
    return [_group(reader) for _ in range(reader.int32())]


def _group(reader: Reader) -> tuple[int, BareGroup]:
    error = reader.int16()
    reader.old_string()  # its name
    state, kind, protocol = reader.old_string(), reader.old_string(), reader.old_string()
    return error, BareGroup(state, kind, protocol, tuple(_member(reader) for _ in range(reader.int32())))


def _member(reader: Reader) -> BareMember:
    found = BareMember(reader.old_string(), reader.old_string(), reader.old_string())
    for _ in range(2):  # what it said when it joined, and what it was assigned
        reader.skip(max(0, reader.int32()))
    return found
