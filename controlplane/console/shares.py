"""How limits are shared out, for operators: F, u and a of each broker, and what they add up to against L. Pure.

The sum of allocations may exceed the limit: the headroom of the documented rule is what lets a little used broker grow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quota.contracts.report import DIRECTIONS


@dataclass(frozen=True, slots=True)
class Shares:
    """One direction of one instance, from the master's document; rates in bytes/s, None: unlimited."""

    direction: str
    limit: int | None
    used: int
    granted: int | None
    branch: str
    brokers: list[dict[str, Any]]

    @property
    def granted_percent(self) -> int | None:
        """Of the limit; None where there is no limit to compare with."""
        return round(100 * self.granted / self.limit) if self.limit and self.granted is not None else None


def shares_of(document: dict[str, Any]) -> list[Shares]:
    """Both directions, as far as they are led anywhere."""
    return [_shares(direction, document[direction]) for direction in DIRECTIONS if document.get(direction)]


def _shares(direction: str, document: dict[str, Any]) -> Shares:
    brokers = document["brokers"]
    amounts = [broker["allocation"] for broker in brokers]
    return Shares(
        direction=direction,
        limit=document["limit"],
        used=sum(broker["flow"] for broker in brokers),
        granted=None if None in amounts else sum(amounts),
        branch=document["branch"],
        brokers=brokers,
    )
