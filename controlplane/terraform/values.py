"""Values of Terraform in Python. Pure.

==============  ==========================================================================================================
number          `int`, or `Decimal` where it has a fraction: 5.1 of a configuration is not the 5.1 of a float
set             `frozenset`
map, object     `dict`
not known yet   `UNKNOWN`
==============  ==========================================================================================================
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final


class _Unknown:
    """Known only when what it depends on has been made."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()
State = dict[str, Any]


def number(value: float | str | Decimal) -> int | Decimal:
    """The number as configurations have it: 5.1 is 5.1, whatever a float makes of it."""
    found = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    return int(found) if found == found.to_integral_value() else found


def plain(value: Any) -> Any:
    """As JSON takes it."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items() if member is not None and member is not UNKNOWN}
    return value


def is_known(value: Any) -> bool:
    """Whether all of it is known."""
    if value is UNKNOWN:
        return False
    if isinstance(value, dict):
        return all(map(is_known, value.values()))
    return not isinstance(value, frozenset) or all(map(is_known, value))
