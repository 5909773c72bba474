"""Who may connect, and how long a connection may be silent: at the internal listener and at the tenants'.

A connection that is let in has a session for as long as it lives: whose it is, and what names mean in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.requests.dispatch import (
    AUTHENTICATION_WITHIN_S,
    UNAUTHENTICATED_FRAME_BYTES,
    ClientConnection,
)
from dataplane.tenancy.session import Session
from quota.contracts.namespace import ClusterNames

if TYPE_CHECKING:
    from dataplane.doors import Connection, FrameProtocol, Timer
    from dataplane.handlers.context import BrokerRooms
    from dataplane.records.steps import Steps
    from dataplane.tenancy.instance import Instance

INTERNAL_ROUTE = "internal"
_LOOKS_UNTIL_IDLE = 10
_LOOKS_PER_STEP = 100


class Admission:
    """Begin with `start`: from then on silent connections are ended."""

    def __init__(self, broker: BrokerRooms) -> None:
        self._broker = broker
        self._timer: Timer | None = None

    def internal(self, connection: Connection) -> FrameProtocol:
        """A broker, the control plane or an operator: it has to say the cluster's secret first."""
        broker = self._broker
        is_open = broker.config.internal_authentication == "none"
        session = Session(None, INTERNAL_ROUTE, ClusterNames(), connection.peer[0], authenticated=is_open)
        client = ClientConnection(broker, connection, session)
        if is_open:
            connection.max_frame_bytes = broker.config.settings.socket_request_max_bytes
        else:
            connection.max_frame_bytes = UNAUTHENTICATED_FRAME_BYTES
            broker.doors.loop.call_later(AUTHENTICATION_WITHIN_S, client.look_for_authentication)
        return client

    def tenant(self, instance: Instance, route: str, connection: Connection) -> FrameProtocol | None:
        """A client of an instance, by one of its routes; None: not let in."""
        broker = self._broker
        if not instance.admits(connection.peer[0]) or self._is_full() or not broker.gate.admits_connection(instance):
            return None
        settings = broker.config.settings
        connection.max_frame_bytes = min(settings.socket_request_max_bytes, settings.tenant_max_request_bytes)
        connection.account = instance.names.key
        client = ClientConnection(broker, connection, Session(instance, route, instance.names, connection.peer[0]))
        instance.connected(client)
        return client

    def _is_full(self) -> bool:
        """Descriptors are left for the log files of everybody, and for the brokers among themselves."""
        present = sum(len(instance.connections) for instance in self._broker.registry.all())
        return present >= self._broker.config.settings.max_connections

    def start(self) -> None:
        """Look at all of them, every so often: those that nobody uses any more, half sent requests among them."""
        period_s = self._broker.config.settings.connections_max_idle_ms / 1000 / _LOOKS_UNTIL_IDLE
        self._timer = self._broker.doors.loop.call_later(period_s, self._look)

    def _look(self) -> None:
        self.start()
        self._broker.slices.run("", self._sweep())

    def _sweep(self) -> Steps[None]:
        looked = 0
        for instance in self._broker.registry.all():
            looked += 1
            for connection in list(instance.connections):
                if connection in instance.connections:  # still
                    connection.look(_LOOKS_UNTIL_IDLE)
                looked += 1
                if looked >= _LOOKS_PER_STEP:
                    looked = 0
                    yield None

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
