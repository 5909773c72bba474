"""Waiting for what real parts do in their own time: bounded, and with a sentence when it does not come.

took_s = wait_for(lambda: cluster.controller() == 2, 10, "broker 2 to be the controller")
assert took_s < promised(2)         # what is promised is promised of a machine that has time for it
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_POLL_S = 0.05


def promised(seconds: float) -> float:
    """So long may it take on this machine: as promised where it is quiet, longer where many others want its cores."""
    return seconds * max(1.0, 2 * os.getloadavg()[0] / (os.cpu_count() or 1))


def wait_for(condition: Callable[[], object], within_s: float, what: str) -> float:
    """Seconds until the condition held. AssertionError when it did not within the time; errors of its own count as no."""
    began = time.monotonic()
    problem: Exception | None = None
    while True:
        try:
            problem = None
            if condition():
                return time.monotonic() - began
        except AssertionError:
            raise
        except Exception as error:  # noqa: BLE001 - servers come and go here
            problem = error
        if time.monotonic() - began > within_s:
            raise AssertionError(f"waited {within_s:.0f} s for {what}") from problem
        time.sleep(_POLL_S)
