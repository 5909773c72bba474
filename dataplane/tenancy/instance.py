"""One instance as this broker serves it: its spec, its names, its whitelists, and the connections that are open."""

from __future__ import annotations

import logging
from collections.abc import Generator
from typing import TYPE_CHECKING, Protocol

from dataplane.tenancy.access import Permit
from dataplane.tenancy.endings import Endings
from dataplane.tenancy.headcount import Headcount, Total
from dataplane.tenancy.newcomers import Newcomers
from dataplane.tenancy.refused_here import RefusedHere
from dataplane.tenancy.request_figures import RequestFigures
from dataplane.tenancy.secured import NOTHING
from dataplane.tenancy.talkers import Talkers
from dataplane.tenancy.user_traffic import UserTraffics
from dataplane.tenancy.whitelist import Whitelist
from quota.contracts.instance import InstanceSpec, Route
from quota.contracts.namespace import InstanceNames, instance_key
from quota.core.acls import AclBook

if TYPE_CHECKING:
    from dataplane.tenancy.recent import Counters
    from dataplane.tenancy.shadow import Shadow
    from dataplane.throttle.mutations import MutationBucket
    from dataplane.throttle.rules import InstanceRules
    from dataplane.throttle.tolls import Tolls
    from quota.contracts.token_issuers import TokenIssuer
    from quota.core.bucket import TokenBucket


_log = logging.getLogger(__name__)
_LOOKS_PER_STEP = 16
"""Connections, of which most have a fetch that waits: about 50 microseconds."""


class Client(Protocol):
    """Who is on a connection (`session.Session`)."""

    peer: str  # the address, without the port
    route: str
    authenticated: bool
    principal: str
    software: tuple[str, str]
    number: int  # a connection of the instance that came later has a larger one

    @property
    def user(self) -> str | None: ...

    @property
    def issuer(self) -> TokenIssuer | None: ...


class Traffic:
    """What has come and gone by the connections of an instance, as far as they have said (`OpenConnection.tell_traffic`)."""

    __slots__ = ("received_bytes", "requests", "sent_bytes")

    def __init__(self) -> None:
        self.received_bytes = self.sent_bytes = self.requests = 0


class OpenConnection(Protocol):
    """What the instance knows of a connection."""

    opened_s: float  # monotonic

    @property
    def session(self) -> Client: ...

    @property
    def client_id(self) -> str: ...

    def close(self) -> None: ...

    def look(self, patience: int) -> None: ...

    def look_again(self) -> None: ...

    def lately(self, now_s: float) -> tuple[float, Counters]: ...

    def tell_traffic(self) -> None: ...


class UnclosedError(Exception):
    """Connections are open that may not be any more: closing them has failed, which is a bug."""


class Instance:
    """Lives as long as the broker knows the instance; `apply` replaces its spec in place."""

    def __init__(self, spec: InstanceSpec, book: AclBook | None = None, everywhere: Total | None = None) -> None:
        """`book` is of the spec's ACLs; it is made here where nobody has made it in steps.

        `everywhere` counts the connections of all instances.
        """
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
        self.shadow: Shadow | None = None  # of a proposal, while there is one
        self.secured = NOTHING  # its routes with TLS; set by the registry
        self._everywhere = everywhere or Total()
        self._all = Headcount()
        self._endings = Endings()
        self.newcomers = Newcomers()
        self.talkers = Talkers()
        self.figures = RequestFigures()
        self.traffic = Traffic()
        self.user_traffic = UserTraffics()
        self.refused = RefusedHere()
        self._by_route: dict[str, Headcount] = {}  # of routes that have connections
        self.permit = Permit(1)  # what `access.authorize` gives; its generation is the instance's
        self._set(spec, book)

    def _set(self, spec: InstanceSpec, book: AclBook | None) -> None:
        self.spec = spec
        self.book = book or AclBook(spec.acls.items if spec.acls is not None else (), spec.authorizer)
        self.acls = None if self.book.allows_everything else self.book  # None: nobody need be asked
        self._whitelist = Whitelist(spec.whitelist)
        self._topics = {self.names.topic_in(topic): Whitelist(cidrs) for topic, cidrs in spec.topic_whitelists.items()}
        self._routes: dict[str, Route] = {route.id: route for route in spec.routes}
        self._route_whitelists = {
            route.id: Whitelist(route.whitelist) for route in spec.routes if route.whitelist is not None
        }
        self._closed: set[str] = set()  # routes that let nobody in, whatever their members say
        self.users = {user.name: user for user in spec.users.items} if spec.users is not None else {}
        trusted = spec.token_issuers.items if spec.token_issuers is not None else ()
        self.token_issuers = {issuer.issuer: issuer for issuer in trusted}

    def route(self, route_id: str) -> Route:
        """One of its routes. Raises KeyError."""
        return self._routes[route_id]

    def apply(self, spec: InstanceSpec, book: AclBook | None = None) -> Generator[None, None, None]:
        """Take a newer spec, at once; what is returned closes connections that would not be accepted any more, with pauses.

        So it does every connection of a route that is gone, whose security, mechanisms or mapping of principals have changed, or
        whose own whitelist does not hold it; of a user who is gone; and of whoever came by a token of an issuer that is gone, or
        of which other things are wanted now. A password or a key that was replaced ends no connection.
        """
        before, users, issuers = self._routes, self.users, self.token_issuers
        self._set(spec, book)
        if self.connections:
            endings = self._endings
            endings.users_end([name for name in users if name not in self.users])
            for route_id, route in before.items():
                if _how_to_get_in(route) != _how_to_get_in(self._routes.get(route_id)):
                    endings.route_ends(route_id)
            endings.distrusts = endings.distrusts or not all(map(self.trusts, issuers.values()))
        return self._some_end()

    def _some_end(self) -> Generator[None, None, None]:
        """Those that may not stay are refused from now on; what is returned closes them."""
        self.access_changed()  # else a short cut would not ask
        if self.connections:
            self._endings.changed()
        else:
            self._endings.forget_all()  # also those that could not be closed, and have gone by themselves
        return self._close_who_ends()

    def _close_who_ends(self) -> Generator[None, None, None]:
        """Close those that end, with pauses. What changes meanwhile is seen to as well: nobody else need begin.

        One that cannot be closed keeps no other from it, and goes on being refused. Raises UnclosedError at the end then.
        """
        endings, has_looked, unclosed = self._endings, False, 0
        while endings.look_again:
            endings.look_again, has_looked, unclosed = False, True, 0
            for count, connection in enumerate(list(self.connections), 1):
                ends = connection in self.connections and self.ends(connection.session)
                if ends and not _is_closed(connection):
                    unclosed += 1
                if ends or not count % _LOOKS_PER_STEP:  # closing one takes as long as looking at many
                    yield
        if unclosed:
            raise UnclosedError(f"{unclosed} connections could not be closed")
        if has_looked:
            endings.forget_all()

    @property
    def has_endings(self) -> bool:
        """Whether there may be connections that are still to be closed."""
        return self._endings.are_under_way

    @property
    def must_look_at_all(self) -> bool:
        """Whether something has changed since somebody began to look which connections are to be closed."""
        return self._endings.look_again

    def ends(self, session: Client) -> bool:
        """Whether the connection of this session is to be closed, and its turn has not come: it is served no more.

        What `access_changed` has not announced is as it was, so whoever serves a connection asks once for each generation.
        """
        endings = self._endings
        return endings.are_under_way and (
            endings.include(session)
            or (endings.distrusts and session.issuer is not None and not self.trusts(session.issuer))
            or not self.allows(session.peer, session.route)
        )

    def still_lets_in(self, session: Client) -> bool:
        """Whether who has a connection may go on: its address and route, and its user or token issuer if it has logged in."""
        is_known = session.user is None or (
            session.user in self.users if session.issuer is None else self.trusts(session.issuer)
        )
        return is_known and self.allows(session.peer, session.route)

    def trusts(self, issuer: TokenIssuer) -> bool:
        """Whether its tokens still let in by the same rules, whichever keys it has now."""
        found = self.token_issuers.get(issuer.issuer)
        return found is not None and found.rules == issuer.rules

    def look_again(self) -> Generator[None, None, None]:
        """After a change of who may do what: requests that wait, and are refused now, wait no longer. With pauses."""
        for count, connection in enumerate(list(self.connections), 1):
            connection.look_again()
            if not count % _LOOKS_PER_STEP:
                yield

    def take_shadow(self, shadow: Shadow | None) -> None:
        """Of another proposal, or of none: what short cuts keep has to be judged again."""
        self.shadow = shadow
        self.access_changed()

    def judge_connections(self) -> Generator[None, None, None]:
        """Those that are open, by the proposal. With pauses."""
        return self._judge(list(self.connections))  # those that come meanwhile are judged as they come

    def _judge(self, connections: list[OpenConnection]) -> Generator[None, None, None]:
        for count, connection in enumerate(connections, 1):
            session = connection.session
            if self.shadow is not None and session.authenticated and connection in self.connections:
                self.shadow.connected(session.principal, session.peer, session.route)
            if not count % _LOOKS_PER_STEP:
                yield

    def access_changed(self) -> None:
        """What was permitted need not be any more, or not by the short cut: permits that are kept have to be renewed."""
        self.permit = Permit(self.permit.generation + 1)

    def admits(self, peer: str, route_id: str, instead_of: Client | None = None) -> bool:
        """Whether a new connection from this address may be accepted by this route, which may be gone meanwhile.

        `instead_of`: one that would have made room.
        """
        route, limits = self._routes.get(route_id), self.spec.limits
        if route is None or not self.allows(peer, route_id):
            return False
        here = self._by_route.get(route_id) or Headcount()
        gone = None if instead_of is None else instead_of.peer
        gone_here = instead_of.peer if instead_of is not None and instead_of.route == route_id else None
        return self._all.has_room(
            peer, total=limits.connections, per_address=limits.connections_per_address, instead_of=gone
        ) and here.has_room(
            peer, total=route.connections, per_address=route.connections_per_address, instead_of=gone_here
        )

    def allows(self, peer: str, route_id: str) -> bool:
        """By the instance's whitelist, and by the route's where it has one. No route that is not open allows anybody."""
        if route_id not in self._routes or route_id in self._closed:
            return False
        own = self._route_whitelists.get(route_id)
        return self._whitelist.allows(peer) and (own is None or own.allows(peer))

    def connected(self, connection: OpenConnection) -> None:
        session = connection.session
        self._endings.last += 1
        session.number = self._endings.last
        self.connections[connection] = None
        self._everywhere.connections += 1
        self._all.came(session.peer)
        self._by_route.setdefault(session.route, Headcount()).came(session.peer)

    def disconnected(self, connection: OpenConnection) -> None:
        if connection not in self.connections:
            return
        del self.connections[connection]
        self._everywhere.connections -= 1
        session = connection.session
        self._all.went(session.peer)
        here = self._by_route[session.route]
        here.went(session.peer)
        if not here.total:
            del self._by_route[session.route]

    def close_connections(self) -> Generator[None, None, None]:
        """The instance is stopped, shut or deleted: nobody gets in any more, whose connection was being opened neither.

        What is returned closes those that are open, with pauses.
        """
        self._closed = set(self._routes)
        self._endings.all_end()
        return self._some_end()

    def close_route(self, route_id: str) -> Generator[None, None, None]:
        """It is not open on this broker: nobody gets in by it, until a spec is applied that opens it.

        What is returned closes those who did, with pauses.
        """
        self._closed.add(route_id)
        if route_id not in self._by_route:
            return _nothing()
        self._endings.route_ends(route_id)
        return self._some_end()

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


def _is_closed(connection: OpenConnection) -> bool:
    """Close it; False: it could not be, which is a bug."""
    try:
        connection.close()
    except Exception:  # noqa: BLE001 - the others have to be closed all the same
        _log.exception("a connection that may not be any more could not be closed")
        return False
    return True


def _nothing() -> Generator[None, None, None]:
    yield from ()


def _how_to_get_in(route: Route | None) -> tuple[object, ...] | None:
    if route is None:
        return None
    return (
        route.security,
        route.mechanisms,
        route.allow_plain_in_clear,
        route.client_certificates,
        route.principal_mapping,
        route.proxy_protocol,
    )
