"""From what the master says of an instance to a row of figures. Pure.

What is not there, or is no number that a database holds, raises: then the instance has a gap at that moment, never a zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quota.contracts.instance import GIB
from quota.contracts.report import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST = 2**50
"""Bytes, and bytes/s, that any cluster could have: sums of an hour of it fit 63 bits."""
MOST_CONNECTIONS = 2**31 - 1


def figures_of(document: Mapping[str, Any], storage_gib: float) -> dict[str, int | None]:
    """The columns of a sample. Raises KeyError, TypeError, ValueError, AttributeError."""
    found: dict[str, int | None] = {}
    for direction in DIRECTIONS:
        flow = document[direction]
        brokers = flow["brokers"]
        allocations = [broker["allocation"] for broker in brokers]
        limit = flow["limit"]
        found |= {
            f"{direction}_bytes_per_s": _number(sum(broker["flow"] for broker in brokers)),
            f"{direction}_limit_bytes_per_s": None if limit is None else _number(limit),
            f"{direction}_allocated_bytes_per_s": (
                None if not allocations or None in allocations else _number(sum(allocations))
            ),
        }
    return found | {
        "storage_used_bytes": _number(document["storage_used_bytes"]),
        "storage_limit_bytes": _number(round(storage_gib * GIB)),
        "connections": _number(document["connections"], MOST_CONNECTIONS),
    }


def _number(value: object, most: int = MOST) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError(f"{value!r} is not a whole number from 0 to {most}")
    return value
