"""When a row is too much: the limits, and what of a figure is the machine's noise.

A victim's p99 in one window is compared with its p99 *alone* in the windows nearest to it, which are measured between the rows:
what the machine does slowly (other load, heat, memory) is in both and cancels.

What it does quickly does not cancel, and on two busy cores the 99th percentile of 400 requests differs between two windows
without any row at all. How much, the windows alone before the first row say: the *noise* is what 95 of 100 of them lie above the
median of their neighbours at most. A p99 within 1.5 times, or no further above than the noise, is not the row's doing.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

LONGEST_TURN_MS = 20.0
P99_RATIO = 1.5
RESIDENT_MIB = 1024.0
NEIGHBOURS = 5
"""Windows alone that a row is compared with."""
_FEWEST = 3


def percentile(values: Sequence[float], share: float) -> float:
    """Of no values: 0."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def beside(alone: Sequence[float], at: int | None = None) -> float:
    """The median of the windows alone around number `at`; of the last ones, where it is not said."""
    if at is None:
        return statistics.median(alone[-NEIGHBOURS:])
    first = max(0, min(at - NEIGHBOURS // 2, len(alone) - NEIGHBOURS))
    return statistics.median(alone[first : first + NEIGHBOURS])


def noise_ms(alone: Sequence[float]) -> float:
    """See the file's text; of fewer than three windows nothing can be said."""
    if len(alone) < _FEWEST:
        return 0.0
    return max(0.0, percentile([value - beside(alone, at) for at, value in enumerate(alone)], 0.95))


def verdict(row: Mapping[str, Any], noise: Mapping[str, float]) -> list[str]:
    """What is wrong with a row; empty: nothing. The longest turn is the broker's own word, or what the probe was held."""
    wrong = []
    turn = row.get("turn_ms")
    if (row["held_ms"] if turn is None else turn) > LONGEST_TURN_MS:
        wrong.append("turn")
    for what in ("acknowledged", "consumed"):
        p99, alone = row[what]["p99"], row[what]["alone"]
        if p99 > P99_RATIO * alone and p99 - alone > noise.get(what, 0.0):
            wrong.append("p99")
            break
    if row["errors"]:
        wrong.append("errors")
    if row["resident_mib"] > RESIDENT_MIB:
        wrong.append("memory")
    if row.get("died") or row.get("quiet_after_s", 0.0) is None:
        wrong.append("stuck")
    return wrong
