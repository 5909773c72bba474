"""Rows of steps worked out from all samples and intervals in plain Python: what SQL in portions must come to as well.

Nothing of `controlplane.history` but the names of metrics is used here.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from controlplane.history.metrics import MEASURED, SET


def steps(samples, waits, step_s, until):
    """By (instance, beginning): what a row of it has. Only steps that are over at `until`."""
    found = {}
    for key, rows in _by_step(samples, step_s).items():
        if key[1] + step_s > until:
            continue
        rows.sort(key=lambda row: row["at"])
        minutes = sorted({row["at"] // 60 * 60 for row in rows})
        step = {"samples": len(rows), "minutes": len(minutes)}
        step |= {f"{name}_sum": sum(row[name] for row in rows) for name in MEASURED}
        step |= {f"{name}_max": max(row[name] for row in rows) for name in MEASURED}
        step |= {name: rows[-1][name] for name in SET}
        for direction in ("produce", "consume"):
            each = [waited(waits, key[0], direction, minute) for minute in minutes]
            step |= {f"{direction}_throttled_ms": sum(each), f"{direction}_throttled_ms_max": max(each)}
        found[key] = step
    return found


def _by_step(samples, step_s):
    found = defaultdict(list)
    for row in samples:
        found[row["instance"], row["at"] // step_s * step_s].append(row)
    return found


def waited(waits, instance, direction, minute):
    """Milliseconds of a minute, none of them twice: each interval's are spread evenly, cut at whole minutes."""
    total = 0
    for whose, which, start, end, throttled_ms in waits:
        if (whose, which) != (instance, direction):
            continue
        edges = [start, *range((start // 60_000 + 1) * 60_000, end, 60_000), end]
        for begins, ends in pairwise(edges):
            if begins // 60_000 * 60 == minute:
                total += throttled_ms * (ends - start) // (end - start) - throttled_ms * (begins - start) // (
                    end - start
                )
    return min(total, 60_000)
