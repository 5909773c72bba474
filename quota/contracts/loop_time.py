"""How a broker's loop spent its time in a window of ten seconds, and how quick each instance's requests were in it. Pure.

An optional member of what a report says of the loop, told once, with the first report after the window's end; masters of an
earlier release do not look at it, brokers of an earlier release leave it out::

    "times": {"1740830400": [10003211, 7210000, {"ins-k3v9x2qa": [410000, 38000, 0]}]}

By when the window began, by the broker's clock: how long it was and how much of that the loop worked for all instances
together, both in microseconds; and by instance what of that was for it, and what 99 of 100 of its Produce and Fetch requests
took at most in their local part (`quota.contracts.requests`), in microseconds; 0: there were none, or too few.
The cluster's own work is not counted. An instance that asked nothing and used nothing is left out, as are those that used
least of more than `MOST_ROWS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from quota.contracts.instance import ContractError

MOST_ROWS = 2_000
"""Of instances in a window: some 80 kB."""
MOST_WINDOWS = 6
"""In one report: a broker that could tell nothing for a while has no more."""
_MOST = 2**53


class LoopUse(NamedTuple):
    """One instance in a window."""

    own_us: int
    produce_p99_us: int  # 0: nothing was produced, or hardly anything
    fetch_p99_us: int


class LoopWindow(NamedTuple):
    """One window of a broker. `rows` is by instance id."""

    elapsed_us: int
    all_us: int
    rows: Mapping[str, LoopUse]

    @classmethod
    def from_row(cls, row: Any) -> Self:
        """Raises ContractError, TypeError, ValueError, AttributeError."""
        elapsed_us, all_us, rows = row
        if len(rows) > MOST_ROWS:
            raise ContractError(f"flow report: a window of the loop has more than {MOST_ROWS} instances")
        return cls(
            _checked(elapsed_us),
            _checked(all_us),
            {str(name): LoopUse(*map(_checked, numbers)) for name, numbers in rows.items()},
        )


LoopTimes = Mapping[int, LoopWindow]
"""By the second since 1970 at which each began."""


def times_of(rows: Mapping[str, Any]) -> dict[int, LoopWindow]:
    """Of a report's document, or of a master's. Raises ContractError, TypeError, ValueError, AttributeError."""
    if len(rows) > MOST_WINDOWS:
        raise ContractError(f"flow report: more than {MOST_WINDOWS} windows of the loop")
    found = {int(at): LoopWindow.from_row(row) for at, row in rows.items()}
    if any(at < 0 for at in found):
        raise ContractError("flow report: windows of the loop begin at moments since 1970")
    return found


def documents_of(times: LoopTimes) -> dict[str, Any]:
    """The other way round."""
    return {str(at): window for at, window in times.items()}


def _checked(number: Any) -> int:
    if type(number) is not int or not 0 <= number <= _MOST:
        raise ContractError(f"flow report: {number!r} of the loop's time must be a whole number of 0 or more")
    return number
