"""How brokers' loops spent their time in the last minutes, as reports tell it. Pure.

Each broker's clock says when its windows begin, so the newest `KEPT` of each are kept: one whose clock is ahead drives out nobody
else's. A window is told once, and what a lost report had of it is lost: it is for figures, not for bills.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quota.contracts.loop_time import LoopTimes, LoopWindow

KEPT = 18
"""Three minutes: whoever asks by the minute finds all of the last one, and may be late by one."""


class LoopBook:
    """Of one mastership."""

    def __init__(self) -> None:
        self._told: dict[int, dict[int, LoopWindow]] = {}  # by broker, and beginning

    def take(self, broker: int, times: LoopTimes) -> None:
        """What a report says."""
        told = self._told.setdefault(broker, {})
        told.update(times)
        for old in sorted(told)[:-KEPT]:
            del told[old]

    def windows(self, broker: int, start: int, end: int) -> dict[int, LoopWindow]:
        """Of one broker those that began in [start, end)."""
        return {at: window for at, window in sorted(self._told.get(broker, {}).items()) if start <= at < end}
