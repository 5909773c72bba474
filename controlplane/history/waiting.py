"""Throttled time by steps: each interval of the flight recorder, spread evenly over the time that it lasted.

An interval lasts a minute at most and is told within half a minute; which of its seconds were waited in is not kept. The parts of
an interval add up to it exactly.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from controlplane.quotas.history import waits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from controlplane.quotas.history import Wait

Waited = dict[tuple[str, str, int], int]
"""Milliseconds by instance, direction and the beginning of a step."""
MS = 1000


def waited_by_step(start: int, end: int, step_s: int, *, instances: Sequence[str] | None = None) -> Waited:
    """Of the steps in [start, end), which begins with one; of these instances, or all."""
    found = spread(waits(start_ms=start * MS, end_ms=end * MS, instances=instances), step_s)
    return {key: waited for key, waited in found.items() if start <= key[2] < end}


def spread(intervals: Iterable[Wait], step_s: int) -> Waited:
    """No step has more than its length: masterships that overlapped for a moment may both tell of it."""
    found: defaultdict[tuple[str, str, int], int] = defaultdict(int)
    for each in intervals:
        for at, waited in _parts(each, step_s).items():
            found[each.instance, each.direction, at] += waited
    return {key: min(waited, step_s * MS) for key, waited in found.items()}


def _parts(wait: Wait, step_s: int) -> Mapping[int, int]:
    step_ms = step_s * MS
    first = wait.started_at_ms - wait.started_at_ms % step_ms
    length = wait.ended_at_ms - wait.started_at_ms
    if length <= 0:
        return {first // MS: wait.throttled_ms}
    parts, before = {}, 0
    for begins in range(first, wait.ended_at_ms, step_ms):
        passed = min(begins + step_ms, wait.ended_at_ms) - wait.started_at_ms
        upto = wait.throttled_ms * passed // length
        parts[begins // MS] = upto - before
        before = upto
    return parts
