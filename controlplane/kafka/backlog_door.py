"""The door to how many bytes are left to read: every registered broker is asked, on a connection of its own, and leaders answer.

A page asks while somebody waits for it, so a broker has BROKER_S, and all together have ROUND_S. What nobody has answered by
then, or a broker of an earlier release, which does not know the question, is not known.
"""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING, Protocol

from controlplane.clusters import coordination, zookeeper
from controlplane.clusters.identification import to_brokers
from controlplane.core.errors import ClusterUnavailable
from controlplane.kafka import backlog_bytes as wire
from controlplane.kafka import leaving
from controlplane.kafka.topics import names_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from controlplane.clusters.address import ClusterAddress
    from controlplane.clusters.identification import Identification
    from controlplane.kafka.flexible import Place

BROKER_S, ROUND_S = 1.0, 3.0

Spot = tuple[str, int, int]
"""A topic, a partition's number and an offset: where a group would read on."""


class BacklogDoor(Protocol):
    """What this service asks about bytes. The call may raise ClusterUnavailable."""

    def backlogs(self, spots: Iterable[Spot]) -> dict[Spot, int]:
        """Bytes from each offset on; absent: not known. Names are physical."""
        ...


class KafkaBacklogs:
    """The real one."""

    def __init__(self, cluster: ClusterAddress, who: Identification) -> None:
        self._cluster, self._who = cluster, who

    def backlogs(self, spots: Iterable[Spot]) -> dict[Spot, int]:
        """See BacklogDoor."""
        left: dict[Place, list[int]] = {}
        for topic, index, offset in dict.fromkeys(spots):
            left.setdefault((topic, index), []).append(offset)
        found: dict[Spot, int] = {}
        until = time.monotonic() + ROUND_S
        for address in self._brokers() if left else ():
            left_s = min(BROKER_S, until - time.monotonic())
            if not left or left_s <= 0:
                break
            for place, sizes in self._said(address, left, left_s).items():
                offsets = left.pop(place, [])
                if len(sizes) == len(offsets):
                    found |= {(*place, offset): size for offset, size in zip(offsets, sizes, strict=True)}
        return found

    def _brokers(self) -> list[tuple[str, int]]:
        brokers = coordination.live_brokers(zookeeper.tree(self._cluster))
        if not brokers:
            raise ClusterUnavailable("no broker is running")
        return [(broker.host, broker.port) for broker in brokers]

    def _said(
        self, address: tuple[str, int], offsets: Mapping[Place, Sequence[int]], timeout_s: float
    ) -> dict[Place, tuple[int, ...]]:
        try:
            return wire.answer(self._ask(address, wire.request(offsets), timeout_s))
        except (ClusterUnavailable, struct.error, IndexError):  # the others may lead something
            return {}

    def _ask(self, address: tuple[str, int], request: bytes, timeout_s: float) -> bytes:
        with leaving.signed_in(address, self._who, timeout_s=timeout_s) as connection:
            return leaving.ask(connection, wire.DESCRIBE_BACKLOGS, 0, request, flexible=True)


def door(cluster: ClusterAddress) -> BacklogDoor:
    """With the proof that this process has now. Raises ClusterUnavailable."""
    return KafkaBacklogs(cluster, to_brokers())


def read(cluster: ClusterAddress, instance_id: str, spots: Iterable[Spot]) -> dict[Spot, int]:
    """The same by the tenant's own names. Raises ClusterUnavailable."""
    names = names_of(instance_id)
    asked = {(names.topic_in(topic), index, offset): (topic, index, offset) for topic, index, offset in spots}
    found = door(cluster).backlogs(list(asked)) if asked else {}
    return {asked[spot]: size for spot, size in found.items() if spot in asked}
