"""How many connections there are, and from which addresses: of an instance, of each of its routes, and of all. Pure."""

from __future__ import annotations


class Headcount:
    """Connections that are open, by their clients' addresses."""

    __slots__ = ("by_address", "total")

    def __init__(self) -> None:
        self.total = 0
        self.by_address: dict[str, int] = {}  # those that have one

    def has_room(self, peer: str, *, total: int | None, per_address: int | None, instead_of: str | None = None) -> bool:
        """Whether one more from this address keeps within both limits, where None is no limit.

        `instead_of`: the address of one that would have gone then.
        """
        return (total is None or self.total - (instead_of is not None) < total) and (
            per_address is None or self.by_address.get(peer, 0) - (instead_of == peer) < per_address
        )

    def came(self, peer: str) -> None:
        self.total += 1
        self.by_address[peer] = self.by_address.get(peer, 0) + 1

    def went(self, peer: str) -> None:
        """One that came is gone."""
        self.total -= 1
        self.by_address[peer] -= 1
        if not self.by_address[peer]:
            del self.by_address[peer]


class Total:
    """Connections of all instances of a broker together: asked whenever somebody connects, however many instances there are."""

    __slots__ = ("connections",)

    def __init__(self) -> None:
        self.connections = 0
