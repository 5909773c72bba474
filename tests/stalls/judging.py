"""When a row is too much: the limits, and what of a figure is the machine's noise.

A victim's p99 in one window is compared with its p99 *alone* in the windows nearest to it, which are measured between the rows:
what the machine does slowly (other load, heat, memory) is in both and cancels.

What it does quickly does not cancel, and on two busy cores the 99th percentile of 400 requests differs between two windows
without any row at all. How much, the windows alone before the first row say: the *noise* is what 80 of 100 of them lie above the
median of their neighbours at most: pauses that are rarer do not hit two attempts of three. A p99 within 1.5 times, or no further
above than the noise, is not the row's doing.

Nor is a pause of the machine in the midst of a row. What is beyond a limit by chance is so once: a row's figures are the
medians of its attempts.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Mapping, Sequence
from typing import Any

LONGEST_TURN_MS = 20.0
P99_RATIO = 1.5
RESIDENT_MIB = 1024.0
NEIGHBOURS = 5
"""Windows alone that a row is compared with."""
STREAMS = ("acknowledged", "consumed")
NOISE_SHARE = 0.8
_FEWEST = 3
_BY_CHANCE = frozenset({"turn", "p99"})


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
    return max(0.0, percentile([value - beside(alone, at) for at, value in enumerate(alone)], NOISE_SHARE))


def verdict(row: Mapping[str, Any], noise: Mapping[str, float]) -> list[str]:
    """What is wrong with a row; empty: nothing. The longest turn is the broker's own word, or what the probe was held."""
    wrong = []
    turn = row.get("turn_ms")
    if (row["held_ms"] if turn is None else turn) > LONGEST_TURN_MS:
        wrong.append("turn")
    for what in STREAMS:
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


def is_chance(wrong: Collection[str]) -> bool:
    """Whether it may be the machine's doing: errors, memory and a broker that is stuck are not."""
    return _BY_CHANCE.issuperset(wrong)


def median_row(attempts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The first attempt, with the medians of what is judged. Of two the lower: if it is beyond, so is that of any three."""
    row = dict(attempts[0])
    for what in ("held_ms", "probe_ms", "turn_ms"):
        values = [attempt[what] for attempt in attempts if attempt.get(what) is not None]
        row[what] = statistics.median_low(values) if values else None
    for what in STREAMS:
        ratio = statistics.median_low([attempt[what]["ratio"] for attempt in attempts])
        row[what] = next(attempt[what] for attempt in attempts if attempt[what]["ratio"] == ratio)
    row["resident_mib"] = max(attempt["resident_mib"] for attempt in attempts)
    return row
