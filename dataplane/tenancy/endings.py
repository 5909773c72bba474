"""Which connections of an instance may not outlive what has changed, until all of them are closed. Pure.

They are closed over many turns of the loop. Until its turn comes such a connection is open, and whoever serves a request
asks here first. Connections have numbers, in the order in which they came: who was let in after a change is not concerned.
However often things change meanwhile, what is kept is a number for each route and each user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quota.contracts.token_issuers import TokenIssuer


_NOBODY = -1


class Numbered(Protocol):
    """Who is on a connection, as far as is asked here (`session.Session`)."""

    route: str
    number: int

    @property
    def user(self) -> str | None: ...

    @property
    def issuer(self) -> TokenIssuer | None: ...


class Endings:
    """Of one instance."""

    __slots__ = ("_all", "_routes", "_users", "are_under_way", "distrusts", "last", "look_again")

    def __init__(self) -> None:
        self.last = 0  # the number of the connection that came last
        self.are_under_way = False  # there may be connections that are to be closed
        self.look_again = False  # something has changed since somebody began to look at all of them
        self.forget_all()

    def changed(self) -> None:
        """Not all who are connected may stay: all of them have to be looked at."""
        self.are_under_way = self.look_again = True

    def all_end(self) -> None:
        """Whoever is connected now."""
        self._all = self.last

    def route_ends(self, route: str) -> None:
        """Whoever came by this route."""
        self._routes[route] = self.last

    def users_end(self, names: Iterable[str]) -> None:
        """Whoever has logged in under one of these names, but by a token: users of that name may be made again."""
        for name in names:
            self._users[name] = self.last

    def include(self, session: Numbered) -> bool:
        """Whether this is one of them."""
        number = session.number
        return (
            number <= self._all
            or number <= self._routes.get(session.route, _NOBODY)
            or (
                bool(self._users)
                and session.issuer is None
                and session.user is not None
                and number <= self._users.get(session.user, _NOBODY)
            )
        )

    def forget_all(self) -> None:
        """None of them is left."""
        self.are_under_way = False
        self.distrusts = False  # a token issuer, of whose tokens other things may be wanted by now
        self._all = _NOBODY
        self._routes: dict[str, int] = {}
        self._users: dict[str, int] = {}
