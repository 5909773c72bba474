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
_STANDSTILL_S = 3.0
"""A machine that is shared with others stands still for so long now and then."""


def promised(seconds: float) -> float:
    """So long may it take on this machine: as promised where it is quiet, and longer where others want its cores."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))  # which a load of the last minute may not know yet
    wanted = 2 * max(os.getloadavg()[0], workers) / (os.cpu_count() or 1)
    return seconds if wanted <= 1 else seconds * wanted + _STANDSTILL_S


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
