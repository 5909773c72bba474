"""The price of what is about to be bought: the console's one way to billing's estimate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Price:
    """What an instance costs while it exists, and each line of it."""

    currency: str
    per_hour: Decimal
    per_month: Decimal
    lines: tuple[tuple[str, Decimal], ...]  # what, per hour


def estimate(*, bandwidth_mib_per_s: float, storage_gib: float, partitions: int) -> Price | None:
    """The price of an instance of this size; None while there is no price plan."""
    del bandwidth_mib_per_s, storage_gib, partitions
    return None
