"""What the machine took: how much of a wait was neither the broker's doing nor the victim's.

A virtual machine may be stopped by its host for tens of milliseconds ("steal"), and other programs have the processors at
times. Both lengthen what a client waits for and say nothing about the broker. The kernel tells how long a thread stood ready
while others ran, to the microsecond, and how long each processor was taken away, in steps of 10 ms. So the victim reads both
whenever it wakes up, and takes what was lost between two readings off the waits that lie between them.

Nothing is ever taken off what the broker's loop ran in the meantime: that part of a wait is a turn of somebody's. What was lost
in several ways at the same time counts several times, so that a loop that stands still without running (for a disk, for another
thread) may be judged too mildly while the machine is disturbed; on one that is not, nothing is lost and all of it is seen.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from pathlib import Path
from typing import NamedTuple

from tests.stalls.machine import stolen_s, used

READ_AGAIN_S = 0.004
"""Readings are this far apart at least: one costs 0.15 ms."""


class Reading(NamedTuple):
    """What had run and waited until a moment (seconds of the monotonic clock); milliseconds."""

    at_s: float
    broker_ran: float
    broker_waited: float
    victim_waited: float
    stolen: tuple[float, ...]  # by processor

    def lost_ms(self, before: Reading, took_ms: float) -> float:
        """Of a wait of `took_ms` between the two."""
        stolen = sum(now - then for now, then in zip(self.stolen, before.stolen, strict=True))
        lost = self.broker_waited - before.broker_waited + self.victim_waited - before.victim_waited + stolen
        ran = self.broker_ran - before.broker_ran
        return max(0.0, min(lost, took_ms - ran))


def read(broker: int) -> Reading:
    """Now, of a broker's process id."""
    theirs = used(broker)
    return Reading(
        time.monotonic(),
        theirs.ran_ms,
        theirs.waited_ms,
        used(os.getpid()).waited_ms,
        tuple(seconds * 1000 for seconds in stolen_s(Path("/proc/stat").read_text())),
    )


class Losses:
    """Readings in order, and what was lost since a moment. Of a broker that is none of ours (None) nothing is known, and
    nothing is taken off.
    """

    def __init__(self, broker: int | None) -> None:
        self._broker = broker
        self._readings = [read(broker)] if broker else []

    def look(self, now_s: float) -> None:
        """To be called whenever the victim wakes up, before it looks at what has come."""
        if self._broker and now_s - self._readings[-1].at_s >= READ_AGAIN_S:
            self._readings.append(read(self._broker))

    def without(self, since_s: float, took_ms: float) -> float:
        """What is left of a wait that ends now."""
        if not self._readings:
            return took_ms
        first = bisect_right(self._readings, since_s, key=lambda reading: reading.at_s) - 1
        return took_ms - self._readings[-1].lost_ms(self._readings[max(first, 0)], took_ms)

    def forget(self, before_s: float) -> None:
        """Readings that no wait begins before; the last one stays."""
        first = bisect_right(self._readings, before_s, key=lambda reading: reading.at_s) - 1
        del self._readings[: max(first, 0)]
