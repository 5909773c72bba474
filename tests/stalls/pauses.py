"""Moments in which broker or victim were kept from running, to the microsecond: what a wait would have been without them.

Of the broker's loop: what a turn took beyond what it ran, where the loop's thread did not give the processor away by itself
(`observed`). Of the victim: how much later it woke up than it had asked for, and what its work took beyond what it ran. It has
something to do every few milliseconds, so that it knows soon.

A host takes both processors away at once as a rule. What lies in a pause of the victim's counts once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Pause(NamedTuple):
    """In this span (seconds of the monotonic clock) so much was lost (milliseconds): all of it, or nobody knows which part."""

    began_s: float
    ended_s: float
    lost_ms: float

    def share(self, since_s: float, until_s: float) -> float:
        """Of the pause, which lies between two moments."""
        return max(0.0, min(self.ended_s, until_s) - max(self.began_s, since_s)) / max(
            self.ended_s - self.began_s, 1e-9
        )


class Pauses:
    """Of one process: they do not overlap."""

    def __init__(self, pauses: Iterable[Pause] = ()) -> None:
        self._pauses = sorted(pauses)

    def __bool__(self) -> bool:
        return bool(self._pauses)

    def within(self, since_s: float, until_s: float) -> Iterator[Pause]:
        """Those that lie between two moments, the first and the last in part: as large a part of what was lost."""
        at = bisect_right(self._pauses, since_s, key=lambda pause: pause.ended_s)
        for pause in self._pauses[at:]:
            if pause.began_s >= until_s:
                return
            lost_ms = pause.lost_ms * pause.share(since_s, until_s)
            yield Pause(max(pause.began_s, since_s), min(pause.ended_s, until_s), lost_ms)


def lost_ms(broker: Pauses, victim: Pauses, since_s: float, until_s: float) -> float:
    """Of a wait between two moments, by both."""
    total = 0.0
    for pause in victim.within(since_s, until_s):
        total += pause.lost_ms
    for pause in broker.within(since_s, until_s):
        both = sum(other.lost_ms / 1000 for other in victim.within(pause.began_s, pause.ended_s))
        total += pause.lost_ms * max(0.0, 1.0 - both / max(pause.ended_s - pause.began_s, 1e-9))
    return min(total, (until_s - since_s) * 1000)
