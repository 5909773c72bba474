"""One instance as this broker serves it: its spec, its names, its whitelists, and the connections that are open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dataplane.tenancy.access import Permit
from dataplane.tenancy.whitelist import Whitelist
from quota.contracts.instance import InstanceSpec, Route
from quota.contracts.namespace import InstanceNames, instance_key

if TYPE_CHECKING:
    from dataplane.throttle.mutations import MutationBucket
    from dataplane.throttle.rules import InstanceRules
    from dataplane.throttle.tolls import Tolls
    from quota.core.bucket import TokenBucket


class Client(Protocol):
    """Who is on a connection (`session.Session`)."""

    peer: str  # the address, without the port


class OpenConnection(Protocol):
    """What the instance knows of a connection."""

    @property
    def session(self) -> Client: ...

    def close(self) -> None: ...

    def look(self, patience: int) -> None: ...


class Instance:
    """Lives as long as the broker knows the instance; `apply` replaces its spec in place."""

    def __init__(self, spec: InstanceSpec) -> None:
        self.names = InstanceNames(instance_key(spec.id))
        self.connections: dict[OpenConnection, None] = {}  # a dict keeps their order; a set would not
        self.produce_bucket: TokenBucket | None = None  # all set by the gate
        self.consume_bucket: TokenBucket | None = None
        self.group_bucket: TokenBucket | None = None
        self.request_bucket: TokenBucket | None = None  # None: there is no limit of requests
        self.loop_bucket: TokenBucket | None = None  # None: there is no limit of what they cost the loop
        self.tolls: dict[int, Tolls] = {}  # by the key of a request
        self.other_tolls: Tolls = ()  # of all other keys
        self.mutation_bucket: MutationBucket | None = None  # made by `throttle.mutations` when it is first needed
        self.rules: InstanceRules | None = None  # None: there are no throttle rules
        self.connection_bucket: TokenBucket | None = None
        self._by_address: dict[str, int] = {}  # how many of the connections
        self.permit = Permit(1)  # what `access.authorize` gives; its generation is the instance's
        self._set(spec)

    def _set(self, spec: InstanceSpec) -> None:
        self.spec = spec
        self._whitelist = Whitelist(spec.whitelist)
        self._topics = {self.names.topic_in(topic): Whitelist(cidrs) for topic, cidrs in spec.topic_whitelists.items()}
        self._routes: dict[str, Route] = {route.id: route for route in spec.routes}

    def apply(self, spec: InstanceSpec) -> None:
        """Take a newer spec; connections that its whitelist does not let in any more are closed."""
        self._set(spec)
        self.access_changed()
        for connection in list(self.connections):
            if not self._whitelist.allows(connection.session.peer):
                connection.close()

    def access_changed(self) -> None:
        """What was permitted need not be any more, or not by the short cut: permits that are kept have to be renewed."""
        self.permit = Permit(self.permit.generation + 1)

    def admits(self, peer: str) -> bool:
        """Whether a new connection from this address may be accepted."""
        limits = self.spec.limits
        return (
            self._whitelist.allows(peer)
            and (limits.connections is None or len(self.connections) < limits.connections)
            and (limits.connections_per_address is None or self._from(peer) < limits.connections_per_address)
        )

    def _from(self, peer: str) -> int:
        return self._by_address.get(peer, 0)

    def connected(self, connection: OpenConnection) -> None:
        peer = connection.session.peer
        self.connections[connection] = None
        self._by_address[peer] = self._from(peer) + 1

    def disconnected(self, connection: OpenConnection) -> None:
        if connection not in self.connections:
            return
        del self.connections[connection]
        peer = connection.session.peer
        self._by_address[peer] -= 1
        if not self._by_address[peer]:
            del self._by_address[peer]

    def close_connections(self) -> None:
        """The instance is stopped or deleted."""
        for connection in list(self.connections):
            connection.close()

    def topic_denied(self, physical: str, peer: str) -> bool:
        """Whether the topic has a whitelist of its own that does not hold this address. Asked by `access.authorize` only."""
        if not self._topics:
            return False
        whitelist = self._topics.get(physical)
        return whitelist is not None and not whitelist.allows(peer)

    def advertised(self, route: str, broker_id: int) -> tuple[str, int] | None:
        """The address of a broker that clients of a route are told."""
        found = self._routes.get(route)
        endpoint = found.endpoints.get(broker_id) if found is not None else None
        return endpoint.advertised if endpoint is not None else None
