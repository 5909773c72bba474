"""The door to how large partitions are: every registered broker is asked for what it has of them, on a connection of its own.

A page asks while somebody waits for it, so a broker has BROKER_S, and all together have ROUND_S. Who has not answered by then is
named, and hides nothing of the others. Nothing is asked about partitions of others: a cluster may have a hundred thousand.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from controlplane.clusters.identification import to_brokers
from controlplane.core.errors import ClusterUnavailable
from controlplane.kafka import leaving, placing, running
from controlplane.kafka.topics import names_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from controlplane.clusters.address import ClusterAddress
    from controlplane.clusters.identification import Identification
    from controlplane.kafka.flexible import Place
    from controlplane.kafka.topics import Topic

BROKER_S, ROUND_S = 1.0, 3.0


class SizeDoor(Protocol):
    """What this service asks about sizes. The call may raise ClusterUnavailable."""

    def sizes(self, places: Collection[Place]) -> dict[int, Mapping[Place, int] | None]:
        """By broker the bytes of its replicas of these partitions; None: it does not answer."""
        ...


class KafkaSizes:
    """The real one."""

    def __init__(self, cluster: ClusterAddress, who: Identification) -> None:
        self._cluster, self._who = cluster, who

    def sizes(self, places: Collection[Place]) -> dict[int, Mapping[Place, int] | None]:
        """See SizeDoor."""
        brokers = running.brokers(self._cluster)
        until = time.monotonic() + ROUND_S
        found: dict[int, Mapping[Place, int] | None] = {}
        for broker in brokers:
            left_s = min(BROKER_S, until - time.monotonic())
            found[broker.id] = self._of((broker.host, broker.port), places, left_s) if left_s > 0 else None
        return found

    def _of(self, address: tuple[str, int], places: Collection[Place], timeout_s: float) -> Mapping[Place, int] | None:
        try:
            with leaving.signed_in(address, self._who, timeout_s=timeout_s) as connection:
                return placing.log_dirs(connection, places).sizes
        except ClusterUnavailable:
            return None


def door(cluster: ClusterAddress) -> SizeDoor:
    """With the proof that this process has now."""
    return KafkaSizes(cluster, to_brokers())


def stored(topic: Topic, sizes: Mapping[int, Mapping[Place, int] | None]) -> int | None:
    """Of what `read` has found, what all replicas of a topic come to; None where one is on a broker that has not said."""
    known = [
        None if (of_broker := sizes.get(broker)) is None else of_broker.get((topic.name, each.partition))
        for each in topic.layout
        for broker in each.replicas
    ]
    return None if None in known else sum(size for size in known if size is not None)


def read(cluster: ClusterAddress, instance_id: str, places: Collection[Place]) -> dict[int, dict[Place, int] | None]:
    """The same by the tenant's own names. Raises ClusterUnavailable."""
    names = names_of(instance_id)
    asked = {(names.topic_in(topic), number): (topic, number) for topic, number in places}
    found = door(cluster).sizes(list(asked))
    return {
        broker: None if sizes is None else {asked[place]: size for place, size in sizes.items() if place in asked}
        for broker, sizes in found.items()
    }
