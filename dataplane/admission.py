"""Who may connect, and how long a connection may be silent: at the internal listener and at the tenants'.

A connection that is let in has a session for as long as it lives: whose it is, and what names mean in it.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from dataplane.requests.dispatch import ClientConnection
from dataplane.security.strangers import Strangers
from dataplane.tenancy.certificates import identify
from dataplane.tenancy.refused_here import turned_away
from dataplane.tenancy.session import Session
from quota.contracts.identity import ANYBODY
from quota.contracts.namespace import ClusterNames
from quota.contracts.refused import Refused

if TYPE_CHECKING:
    from dataplane.doors import Connection, FrameProtocol, Timer
    from dataplane.handlers.context import BrokerRooms
    from dataplane.peers.internal_tls import InternalTls
    from dataplane.records.steps import Steps
    from dataplane.tenancy.instance import Client, Instance, OpenConnection
    from quota.contracts.instance import Route

INTERNAL_ROUTE = "internal"
_LOOKS_UNTIL_IDLE = 10
_LOOKS_PER_STEP = 50
_IN_WORDS = {
    Refused.WHITELIST: "no whitelist holds the address",
    Refused.CONNECTIONS: "there are as many connections as may be",
    Refused.BROKER: "the broker has no more room for connections",
    Refused.RATE: "too many connections begin at once",
}
"""For the audit."""


class Admission:
    """Begin with `start`: from then on silent connections are ended."""

    def __init__(self, broker: BrokerRooms, internal_tls: InternalTls | None = None) -> None:
        self._broker, self._internal_tls = broker, internal_tls
        self._timer: Timer | None = None
        self.strangers = Strangers()
        self._numbers = count(1)

    def internal(self, connection: Connection) -> FrameProtocol:
        """A broker, the control plane or an operator: it has to prove which first."""
        broker = self._broker
        is_open = broker.config.internal_authentication == "none"
        session = Session(None, INTERNAL_ROUTE, ClusterNames(), connection.peer[0], authenticated=is_open)
        session.number = next(self._numbers)
        if is_open:
            session.identity = ANYBODY
        client = ClientConnection(broker, connection, session)
        if is_open:
            connection.max_frame_bytes = broker.config.settings.socket_request_max_bytes
        else:
            client.wait_for_login(self.strangers)
        tls = self._internal_tls
        if tls is not None:
            connection.secure(tls.server(), lambda certificate: self._shown(tls, client, certificate))
        return client

    def _shown(self, tls: InternalTls, client: ClientConnection, certificate: bytes | None) -> str | None:
        """A handshake at the internal listener is over: why it may not stay, or None."""
        session = client.session
        try:
            session.identity = tls.identity(certificate)
        except ValueError as error:
            self.strangers.failed += 1
            return str(error)
        session.authenticated, session.principal = True, f"User:{session.identity.name}"
        client.let_in()
        return None

    def tenant(self, instance: Instance, route: str, connection: Connection) -> FrameProtocol | None:
        """A client of an instance, by one of its routes; None: not let in."""
        broker = self._broker
        refusal = self._refusal(instance, route, connection.peer[0])
        if instance.spec.audit:
            why = None if refusal is None else _IN_WORDS[refusal]
            broker.auditing.connected(instance, route, connection.peer[0], why)
        if refusal is not None:
            instance.refused.add(connection.peer[0], route, refusal, broker.doors.clock.now_ms())
            return None
        settings = broker.config.settings
        connection.max_frame_bytes = min(settings.socket_request_max_bytes, settings.tenant_max_request_bytes)
        connection.account = instance.names.key
        # Of a route that wants SASL, nobody is who has not logged in.
        is_open = not instance.route(route).wants_sasl
        session = Session(instance, route, instance.names, connection.peer[0], authenticated=is_open)
        client = ClientConnection(broker, connection, session)
        way_in = instance.route(route)
        if way_in.wants_tls:
            server = instance.secured.servers[route]
            connection.secure(server, lambda certificate: self._identified(session, way_in, certificate))
        instance.connected(client)
        if not is_open:
            client.wait_for_login()
        elif not way_in.wants_tls and instance.shadow is not None:
            instance.shadow.connected(session.principal, session.peer, route)
        return client

    def _identified(self, session: Session, route: Route, certificate: bytes | None) -> str | None:
        """A handshake is over: why the session may not stay, or None."""
        problem = identify(session, route, certificate)
        if problem is not None:
            turned_away(session, Refused.CERTIFICATE, self._broker.doors.clock.now_ms())
        if certificate is not None and not route.wants_sasl:
            self._broker.auditing.identified(session, problem)
        if problem is None and not route.wants_sasl:
            self._shadow(session)
        return problem

    def logged_in(self, session: Session, user: str, is_right: bool, why: str | None) -> None:
        """A login by SASL is over (`tenancy.logins`)."""
        self._broker.auditing.authenticated(session, user, is_right, why)
        if is_right:
            self._shadow(session)
        else:
            client_id = "" if session.login is None else session.login.client_id
            now_ms = self._broker.doors.clock.now_ms()
            turned_away(session, Refused.SASL, now_ms, user=user, client_id=client_id)

    @staticmethod
    def _shadow(session: Session) -> None:
        """Now it is known who is connected: a proposal judges it."""
        if session.instance is not None and session.instance.shadow is not None:
            session.instance.shadow.connected(session.principal, session.peer, session.route)

    def wait_s(self, instance: Instance) -> float:
        """For how long nobody connects to an instance, seconds: it has as many connections a second as it may."""
        return self._broker.gate.connection_wait_s(instance)

    def _refusal(self, instance: Instance, route_id: str, peer: str) -> Refused | None:
        """Why nobody may connect from this address now; None: he may, and whoever is in the way has made room."""
        in_the_way = None
        if not self._has_place(instance, route_id, peer):
            if not instance.allows(peer, route_id):
                return Refused.WHITELIST
            in_the_way = self._in_the_way(instance, route_id, peer)
            if in_the_way is None:
                return Refused.CONNECTIONS
        if in_the_way is None and self._is_full():
            return Refused.BROKER
        if not self._broker.gate.admits_connection(instance):
            return Refused.RATE
        if in_the_way is not None:  # last: nobody goes for one who is not let in
            in_the_way.close()
            instance.disconnected(in_the_way)  # it hears of it at the end of the turn
            instance.newcomers.went(in_the_way)
        return None

    @staticmethod
    def _has_place(instance: Instance, route_id: str, peer: str) -> bool:
        """Whether one more may connect, and may be one on which nobody has logged in."""
        limit = instance.spec.limits.connections
        return instance.admits(peer, route_id) and not (
            instance.route(route_id).wants_sasl and instance.newcomers.is_full(limit)
        )

    @staticmethod
    def _in_the_way(instance: Instance, route_id: str, peer: str) -> OpenConnection | None:
        """One on which nobody has logged in, in whose place another may connect."""
        helped: dict[str, bool] = {}  # by route: all who are asked about have one address

        def helps(one: Client) -> bool:
            if one.route not in helped:
                helped[one.route] = instance.admits(peer, route_id, instead_of=one)
            return helped[one.route]

        return instance.newcomers.in_the_way_of(peer, helps)

    def _is_full(self) -> bool:
        """Descriptors are left for the log files of everybody, and for the brokers among themselves."""
        return self._broker.registry.connections() >= self._broker.config.settings.max_connections

    def start(self) -> None:
        """Look at all of them, every so often: those that nobody uses any more, half sent requests among them."""
        period_s = self._broker.config.settings.connections_max_idle_ms / 1000 / _LOOKS_UNTIL_IDLE
        self._timer = self._broker.doors.loop.call_later(period_s, self._look)

    def _look(self) -> None:
        self.start()
        self._broker.slices.run("", self._sweep())

    def _sweep(self) -> Steps[None]:
        looked, now = 0, self._broker.doors.clock.monotonic()
        for instance in self._broker.registry.all():
            looked += 1
            for connection in list(instance.connections):
                if connection in instance.connections:  # still
                    connection.look(_LOOKS_UNTIL_IDLE)
                    connection.lately(now)  # so that who asks later learns of the last minute
                looked += 1
                if looked >= _LOOKS_PER_STEP:
                    looked = 0
                    yield None
            yield from instance.talkers.sweep(now)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
