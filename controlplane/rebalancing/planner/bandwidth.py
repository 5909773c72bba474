"""How much of what a tenant has bought can flow where its leaders are. Pure.

A tenant's limit falls on brokers by the leaders that they have of it: the initial shares F_b = L * n_b / sum(n) of the
allocation. Flow arises at leaders only, so what a broker cannot carry is lost to the tenant, however idle the others are.
Where the shares of all who lead on a broker are more than it can carry (C_b), each gets its part:

    usable(t) = sum over b of  F_tb * min(1, C_b / sum over tenants of F_b)

That is the worst case, everybody wanting all that was bought at once; allocation by flow (the documented rule) shifts a limit
between brokers, and cannot make one of them larger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.rebalancing.planner.model import Goal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.rebalancing.planner.state import State


class Usable:
    """Follows the leads of every instance through a sequence of moves."""

    def __init__(self, state: State) -> None:
        """As the state is now, of which a copy is kept of what changes."""
        self._carries: Sequence[int | None] = state.carries
        self._parts = state.weights[Goal.BANDWIDTH]
        self._instances = [partition.instance for partition in state.partitions]
        self._fallen = list(state.loads[Goal.BANDWIDTH])
        self._shares: dict[str, dict[int, int]] = {}
        for partition, where in enumerate(state.replicas):
            shares = self._shares.setdefault(self._instances[partition], {})
            shares[where[0]] = shares.get(where[0], 0) + self._parts[partition]

    def of(self, instance: str) -> int:
        """Bytes a second."""
        return sum(self._carried(place, share) for place, share in self._shares.get(instance, {}).items())

    def all(self) -> Mapping[str, int]:
        return {instance: self.of(instance) for instance in self._shares}

    def lead(self, partition: int, source: int, target: int) -> int:
        """Another broker leads it; says by how much its own tenant can use more."""
        instance, part = self._instances[partition], self._parts[partition]
        if not part or source == target:
            return 0
        before = self.of(instance)
        shares = self._shares[instance]
        shares[source] -= part
        shares[target] = shares.get(target, 0) + part
        self._fallen[source] -= part
        self._fallen[target] += part
        return self.of(instance) - before

    def _carried(self, place: int, share: int) -> int:
        carries, fallen = self._carries[place], self._fallen[place]
        return share if carries is None or fallen <= carries else share * carries // fallen
