"""An input that takes long is a finding: counted in the time that this process worked, whatever else the machine does."""

from __future__ import annotations

import time
from collections.abc import Callable

LONGEST_S = 5.0
HANGS_AFTER_S = 60
"""By the clock on the wall: what never comes back is ended by libFuzzer."""


def _nothing() -> None:
    """An input is all that it takes to see it again."""


def bounded(one_input: Callable[[bytes], None], keep: Callable[[], None] = _nothing) -> Callable[[bytes], None]:
    """The same, failing when it takes long, after `keep` has kept what else there is to see it again."""

    def run(data: bytes) -> None:
        began = time.process_time()
        one_input(data)
        took = time.process_time() - began
        if took >= LONGEST_S:
            keep()
        assert took < LONGEST_S, f"one input took {took:.1f} s"

    return run
