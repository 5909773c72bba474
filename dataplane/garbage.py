"""When Python looks for garbage that refers to itself: the loop stands still meanwhile.

Nearly all memory of a broker is given back when its last reference goes. What is left are cycles, and few: a connection and
what sits on it let go of each other when it ends. To find the others Python looks at every object there is, 0.15 us each:
with a million objects (metadata of ten thousand topics, a thousand connections with long requests) that is a sixth of a
second in which nobody is served, as often as a quarter has been added. Even to look at the young ones only stands in everybody's
way: a list of a hundred thousand that a long request is becoming is young, and looked at from end to end (2 to 9 ms), 7 % of
the loop's time in all, and nothing was ever found (measured: 0 objects in 20,000 looks). So Python looks at nothing by itself.
All objects are looked at when twice as many have come together as were left the last time, which is said on standard error
with the time it took.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable

from dataplane.doors import Loop

LOOK_EVERY_S = 60.0
LEAST_MORE_BLOCKS = 15_000_000
"""About 1.5 GB in small objects. Budgets keep what is in use below 1 GiB, so that this much is garbage, and worth standing still
for: at a third of it a look found nothing, and took 2.6 s."""


def is_worth_it(blocks: int, left: int) -> bool:
    """Whether to look at all objects: with so many blocks in use, and so many left the last time."""
    return blocks > 2 * left and blocks - left > LEAST_MORE_BLOCKS


class Garbage:
    """Of the process; begins when what lives from the start on is there."""

    def __init__(self, loop: Loop, report: Callable[[str], None]) -> None:
        self._loop, self._report = loop, report
        self._left = 0

    def start(self) -> None:
        """From here on."""
        gc.collect()
        gc.freeze()  # what lives from the start on is never looked at again
        gc.disable()
        self._left = sys.getallocatedblocks()
        self._loop.call_later(LOOK_EVERY_S, self.look)

    def look(self) -> None:
        """Whether it is time; and again a minute later."""
        self._loop.call_later(LOOK_EVERY_S, self.look)
        if is_worth_it(sys.getallocatedblocks(), self._left):
            began = self._loop.clock.monotonic()
            found = gc.collect()
            self._left = sys.getallocatedblocks()
            took_ms = (self._loop.clock.monotonic() - began) * 1000
            self._report(f"looked for garbage among all objects: {found} found in {took_ms:.0f} ms")
