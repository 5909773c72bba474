"""The door to where partitions are: what `client` is for topics. For operators' moves; names are physical.

Metadata are asked for by this process's client of the cluster, the rest (`placing`) on a connection of its own to the
controller or to each broker. A failure is one of core.errors; the door does not try again. Whatever it does may be done twice: a
reassignment to where a partition goes already, an election that is not needed, a setting that is there.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from confluent_kafka import KafkaException

from controlplane.core.errors import ClusterUnavailable
from controlplane.core.portions import portions
from controlplane.kafka import client, leaving, placing
from controlplane.kafka.client import ClusterChanging, KafkaAdmin

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from confluent_kafka.admin import ClusterMetadata

    from controlplane.clusters.address import ClusterAddress
    from controlplane.kafka.flexible import Place
    from controlplane.kafka.placing import Disk, Ongoing, Refusal

TIMEOUT_S = 10.0
_TIMEOUT_MS = int(TIMEOUT_S * 1000)
AT_ONCE = 500
"""Partitions, or topics, in one request."""
LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LEADER_REPLICAS, FOLLOWER_REPLICAS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"


@dataclass(frozen=True, slots=True)
class Placed:
    """One partition as the cluster shows it."""

    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]

    @property
    def place(self) -> Place:
        return self.topic, self.partition


class PlacementDoor(Protocol):
    """What is asked about places, and changed. Every call may raise ClusterUnavailable."""

    def placed(self) -> list[Placed]:
        """Every partition of the cluster."""
        ...

    def disks(self, brokers: Collection[int], places: Collection[Place] | None = None) -> dict[int, Disk]:
        """Of these brokers, without those that do not answer; sizes of these partitions or (None) of all."""
        ...

    def under_way(self) -> dict[Place, Ongoing]:
        """Reassignments that have not ended."""
        ...

    def reassign(self, targets: Mapping[Place, Sequence[int] | None]) -> dict[Place, Refusal]:
        """Begin or (None) cancel; what was refused."""
        ...

    def elect(self, places: Collection[Place]) -> dict[Place, Refusal]:
        """Have the first replica lead; what was refused."""
        ...

    def throttle(self, bytes_per_s: int | None) -> None:
        """How much of what topics name as throttled each broker sends and copies a second; None: as much as it can.

        A broker that has a rate of its own keeps to that.
        """
        ...

    def throttled(self, topics: Mapping[str, tuple[str, str] | None]) -> None:
        """Name replicas as throttled, by topic: of leaders, of followers. Topics that are gone are no error."""
        ...


class KafkaPlacement:
    """By the brokers' admin protocol."""

    def __init__(self, admin: KafkaAdmin) -> None:
        self._admin = admin

    def placed(self) -> list[Placed]:
        return [
            Placed(
                str(topic.topic),
                partition.id,
                partition.leader if partition.leader >= 0 else None,
                tuple(partition.replicas),
                tuple(partition.isrs),
            )
            for topic in self._metadata().topics.values()
            for partition in topic.partitions.values()
        ]

    def disks(self, brokers: Collection[int], places: Collection[Place] | None = None) -> dict[int, Disk]:
        known = self._metadata().brokers
        found = {}
        for number in sorted(set(brokers) & set(known)):
            try:
                with self._connected((str(known[number].host), known[number].port)) as connection:
                    found[number] = placing.log_dirs(connection, places)
            except ClusterUnavailable:
                continue  # it goes, or comes: what is on it is not known now
        return found

    def under_way(self) -> dict[Place, Ongoing]:
        found: dict[Place, Ongoing] = {}

        def ask(connection: socket.socket) -> int:
            code, ongoing = placing.under_way(connection, timeout_ms=_TIMEOUT_MS)
            found.update(ongoing)
            return code

        self._of_controller(ask)
        return found

    def reassign(self, targets: Mapping[Place, Sequence[int] | None]) -> dict[Place, Refusal]:
        return self._in_pieces(
            list(targets),
            lambda connection, some: placing.alter(
                connection, {place: targets[place] for place in some}, timeout_ms=_TIMEOUT_MS
            ),
        )

    def elect(self, places: Collection[Place]) -> dict[Place, Refusal]:
        return self._in_pieces(
            list(places), lambda connection, some: placing.elect(connection, some, timeout_ms=_TIMEOUT_MS)
        )

    def throttle(self, bytes_per_s: int | None) -> None:
        value = None if bytes_per_s is None else str(bytes_per_s)
        self._configure(placing.BROKER, {placing.ALL_BROKERS: {LEADER_RATE: value, FOLLOWER_RATE: value}})

    def throttled(self, topics: Mapping[str, tuple[str, str] | None]) -> None:
        names, nothing = (LEADER_REPLICAS, FOLLOWER_REPLICAS), (None, None)
        rows = {topic: dict(zip(names, lists or nothing, strict=True)) for topic, lists in sorted(topics.items())}
        for part in portions(list(rows), AT_ONCE):
            self._configure(placing.TOPIC, {topic: rows[topic] for topic in part})

    # --- asking -------------------------------------------------------------------------------------------------------

    def _metadata(self) -> ClusterMetadata:
        try:
            return self._admin.kafka.list_topics(timeout=TIMEOUT_S)
        except KafkaException as error:
            raise client.not_now(error.args[0]) from error

    def _in_pieces(
        self,
        places: Sequence[Place],
        ask: Callable[[socket.socket, Sequence[Place]], tuple[int, dict[Place, Refusal]]],
    ) -> dict[Place, Refusal]:
        refusals: dict[Place, Refusal] = {}

        def piece(connection: socket.socket) -> int:
            for part in portions(places, AT_ONCE):
                code, refused = ask(connection, part)
                if code:
                    return code
                refusals.update(refused)
            return placing.NO_ERROR

        if places:
            self._of_controller(piece)
        if any(refusal.code == placing.NOT_CONTROLLER for refusal in refusals.values()):
            raise ClusterChanging("the cluster is changing its controller")
        return refusals

    def _of_controller(self, ask: Callable[[socket.socket], int]) -> None:
        metadata = self._metadata()
        controller = metadata.brokers.get(metadata.controller_id)
        if controller is None:
            raise ClusterChanging("the cluster has no controller at the moment")
        with self._connected((str(controller.host), controller.port)) as connection:
            code = ask(connection)
        if code == placing.NOT_CONTROLLER:
            raise ClusterChanging("the cluster is changing its controller")
        if code:
            raise ClusterUnavailable(f"the controller answers with Kafka's error {code}")

    @contextmanager
    def _connected(self, address: tuple[str, int]) -> Iterator[socket.socket]:
        """A connection that knows who asks."""
        try:
            with leaving.signed_in(address, self._admin.who, timeout_s=TIMEOUT_S) as connection:
                yield connection
        except ClusterUnavailable as error:
            raise ClusterUnavailable("a broker does not answer") from error

    def _configure(self, kind: int, settings: Mapping[str, Mapping[str, str | None]]) -> None:
        refusals: dict[str, Refusal] = {}

        def ask(connection: socket.socket) -> int:
            refusals.update(placing.configure(connection, kind, settings))
            return placing.NO_ERROR

        self._of_controller(ask)
        for name, refusal in refusals.items():
            if refusal.code != placing.UNKNOWN_TOPIC:
                raise ClusterUnavailable(
                    f"the cluster does not take a setting of {name or 'its brokers'}: {refusal.text}"
                )


def door(cluster: ClusterAddress) -> PlacementDoor:
    """By this process's client of a cluster. Raises ClusterUnavailable where no broker is registered."""
    return KafkaPlacement(cast("KafkaAdmin", client.admin(cluster)))
