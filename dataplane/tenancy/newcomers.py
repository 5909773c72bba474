"""Connections of an instance on which nobody has logged in yet: so many at once, shared among the addresses they come from.

They count as the instance's connections. So that who opens them without end does not keep out those who could log in, they
have at most half of its places, and where there is no place the oldest of the address that has most makes room for one from
an address that has fewer. (Who comes from very many addresses is for the whitelist; each has ten seconds anyway.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dataplane.network.fairness import Places

if TYPE_CHECKING:
    from dataplane.tenancy.instance import Client, OpenConnection

MOST = 1_000


class Newcomers:
    """By address, in the order in which they came."""

    __slots__ = ("_places",)

    def __init__(self) -> None:
        self._places: Places[OpenConnection] = Places()

    def is_full(self, connections: int | None) -> bool:
        """Whether they have all the places that they may have, in an instance of so many connections (None: no limit)."""
        return len(self._places) >= (MOST if connections is None else min(MOST, max(1, connections // 2)))

    def came(self, connection: OpenConnection) -> None:
        self._places.came(connection.session.peer, connection)

    def went(self, connection: OpenConnection) -> None:
        """It has logged in, or is gone. Harmless twice."""
        self._places.went(connection.session.peer, connection)

    def in_the_way_of(self, peer: str, helps: Callable[[Client], bool] = lambda _one: True) -> OpenConnection | None:
        """Which one should make room for another from this address; None: its own address has as many as any.

        `helps`: whether there were room if this one had gone.
        """
        return next((one for one in self._places.fullest(peer) if helps(one.session)), None)
