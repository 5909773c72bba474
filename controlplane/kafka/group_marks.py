"""A short mark of each of many groups, which is another one after each rebalance: for who looks once a minute.

DescribeGroups v4 says who the members of a classic group are, what each said when it joined, and what it was assigned; that is
the mark, as a digest. Consumers say when they join which partitions they had, and newer ones in which generation: so a
rebalance that changes nothing is mostly seen as well. A static member (KIP-345) has another id after it was restarted, and says
other words when it joins, without a rebalance: of it the mark has the id of its instance and what it was assigned. Of a group
of the consumer protocol (KIP-848) DescribeGroups knows nothing and calls it Dead; ConsumerGroupDescribe v1 says its epoch,
which is the mark.
https://kafka.apache.org/protocol

Groups are asked for GROUPS_AT_ONCE in a request, one request after the other on one connection to their coordinator.
"""

from __future__ import annotations

import hashlib
import logging
import struct
import time
from typing import TYPE_CHECKING, NamedTuple

from controlplane.core.errors import ClusterUnavailable
from controlplane.core.portions import portions
from controlplane.kafka import classic_members, leaving
from controlplane.kafka.bare_groups import DESCRIBE_GROUPS
from controlplane.kafka.classic_members import CONSUMER_GROUP_DESCRIBE
from controlplane.kafka.flexible import Reader

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Sequence

    from controlplane.clusters.identification import Identification

LOG = logging.getLogger(__name__)
GROUPS_AT_ONCE = 50
DESCRIBE_VERSION = 4
"""The first with ids of instances, and the last that is not flexible."""
WITHOUT_OPERATIONS = b"\0"
DEAD = "Dead"
DIGITS = 16


class GroupMark(NamedTuple):
    """Of a group at one moment: its state, in Kafka's own word of its protocol, and its mark."""

    state: str
    mark: str


def fetch_within(
    address: tuple[str, int], who: Identification, groups: Sequence[str], *, timeout_s: float, within_s: float
) -> dict[str, GroupMark]:
    """Of as many as answer in `within_s`, in this order, without those that have an error.

    Where it answers no more, those that it has answered about; raises ClusterUnavailable where there is none.
    """
    until = time.monotonic() + within_s
    found: dict[str, GroupMark] = {}
    try:
        with leaving.signed_in(address, who, timeout_s=timeout_s) as connection:
            for part in portions(list(groups), GROUPS_AT_ONCE):
                if time.monotonic() >= until:
                    break
                found |= _asked(connection, part)
    except ClusterUnavailable as error:
        if not found:
            raise
        LOG.warning("%d of %d groups are known: %s", len(found), len(groups), error)
    return found


def _asked(connection: socket.socket, part: Sequence[str]) -> dict[str, GroupMark]:
    """Of so many as one request is about."""
    request = struct.pack(">i", len(part)) + b"".join(map(leaving.text_of, part)) + WITHOUT_OPERATIONS
    marks = dict(classic_in(leaving.ask(connection, DESCRIBE_GROUPS, DESCRIBE_VERSION, request)))
    others = [name for name in part if name in marks and marks[name].state == DEAD]
    if others:
        request = classic_members.request(*others)
        answer = leaving.ask(connection, CONSUMER_GROUP_DESCRIBE, 1, request, flexible=True)
        marks |= dict(of_consumers_in(answer))
    return {name: mark for name, mark in marks.items() if name in part and mark.state != DEAD}


def classic_in(answer: bytes) -> Iterator[tuple[str, GroupMark]]:
    """By name, of a DescribeGroups v4 answer, without those that have an error. Raises struct.error."""
    reader = Reader(answer, errors="replace")
    reader.int32()  # the throttle time
    for _ in range(reader.int32()):
        error, name, state = reader.int16(), reader.old_string(), reader.old_string()
        kind, protocol = reader.old_string(), reader.old_string()
        members = sorted(_member(reader) for _ in range(reader.int32()))
        reader.int32()  # operations, which nobody asked for
        if not error:
            yield (
                name,
                GroupMark(
                    state, _digest(kind.encode(), protocol.encode(), *(part for each in members for part in each))
                ),
            )


def of_consumers_in(answer: bytes) -> Iterator[tuple[str, GroupMark]]:
    """By name, of a ConsumerGroupDescribe v1 answer, without those that have an error. Raises struct.error."""
    for error, name, state, epoch in classic_members.groups_in(answer):
        if not error:
            yield name, GroupMark(state, f"epoch {epoch}")


def _member(reader: Reader) -> tuple[bytes, bytes, bytes, bytes]:
    """The id of its instance, its own, what it said when it joined, what it was assigned; of a static one no second and third."""
    name, instance = reader.old_string(), reader.old_string()
    for _ in range(2):  # client id and host
        reader.old_string()
    said, assigned = reader.old_bytes(), reader.old_bytes()
    return (instance.encode(), b"", b"", assigned) if instance else (b"", name.encode(), said, assigned)


def _digest(*parts: bytes) -> str:
    """Of these, told apart by their lengths."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(struct.pack(">q", len(part)) + part)
    return whole.hexdigest()[:DIGITS]
