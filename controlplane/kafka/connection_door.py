"""The door to an instance's connections: every registered broker is asked, one after the other, on a connection of its own.

Each knows those that it has. A page asks while somebody waits for it, so a broker has BROKER_S, and all together have
ROUND_S: who has not answered by then is told to be missing, and what the others say is shown. A broker of an earlier release,
which does not know the question, is missing as well.
"""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING, Protocol

from controlplane.clusters.identification import to_brokers
from controlplane.core.errors import ClusterUnavailable
from controlplane.kafka import connection_bytes as wire
from controlplane.kafka import leaving, running

if TYPE_CHECKING:
    from controlplane.clusters.address import ClusterAddress
    from controlplane.clusters.identification import Identification
    from controlplane.kafka.connection_bytes import Answer

BROKER_S, ROUND_S = 1.0, 3.0


class ConnectionDoor(Protocol):
    """What this service asks about connections. The call may raise ClusterUnavailable."""

    def asked(
        self, instance_id: str, topic: str | None, most_connections: int, most_talkers: int
    ) -> dict[int, Answer | None]:
        """By broker what it says, as `connection_bytes.request` has it; None: it does not answer."""
        ...


class KafkaConnections:
    """The real one."""

    def __init__(self, cluster: ClusterAddress, who: Identification) -> None:
        self._cluster, self._who = cluster, who

    def asked(
        self, instance_id: str, topic: str | None, most_connections: int, most_talkers: int
    ) -> dict[int, Answer | None]:
        """See ConnectionDoor."""
        request = wire.request(instance_id, topic, most_connections, most_talkers)
        until = time.monotonic() + ROUND_S
        found: dict[int, Answer | None] = {}
        for broker, address in self._brokers().items():
            left_s = min(BROKER_S, until - time.monotonic())
            found[broker] = self._said(address, request, left_s) if left_s > 0 else None
        return found

    def _brokers(self) -> dict[int, tuple[str, int]]:
        return {broker.id: (broker.host, broker.port) for broker in running.brokers(self._cluster)}

    def _said(self, address: tuple[str, int], request: bytes, timeout_s: float) -> Answer | None:
        try:
            error, answer = wire.answer(self._ask(address, request, timeout_s))
        except (ClusterUnavailable, struct.error, IndexError):
            return None
        # The instance may not be known there yet, or any more: then nobody is connected.
        return answer if error == wire.NONE else wire.NOTHING if error == wire.RESOURCE_NOT_FOUND else None

    def _ask(self, address: tuple[str, int], request: bytes, timeout_s: float) -> bytes:
        with leaving.signed_in(address, self._who, timeout_s=timeout_s) as connection:
            return leaving.ask(connection, wire.DESCRIBE_CONNECTIONS, 0, request, flexible=True)


def door(cluster: ClusterAddress) -> ConnectionDoor:
    """With the proof that this process has now. Raises ClusterUnavailable."""
    return KafkaConnections(cluster, to_brokers())
