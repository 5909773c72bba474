"""How brokers' loops spent their time in the last minutes, as reports tell it. Pure.

Each broker's clock says when its windows begin, so the newest `KEPT` of each are kept: one whose clock is ahead drives out nobody
else's. What is far ahead of what a broker tells now was told before its clock was set back, and is forgotten. A window is
told once, and what a lost report had of it is lost: it is for figures, not for bills.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quota.contracts.requests import WINDOW_S

if TYPE_CHECKING:
    from collections.abc import Collection

    from quota.contracts.loop_time import LoopTimes, LoopWindow

KEPT = 12
"""Two minutes: whoever asks by the minute finds all of the last one for a minute after its end."""


class LoopBook:
    """Of one mastership."""

    def __init__(self) -> None:
        self._told: dict[int, dict[int, LoopWindow]] = {}  # by broker, and beginning

    def take(self, broker: int, times: LoopTimes) -> None:
        """What a report says."""
        told = self._told.setdefault(broker, {})
        told.update(times)
        oldest = min(times, default=0)
        for at in [at for at in told if at >= oldest + KEPT * WINDOW_S]:
            del told[at]
        for old in sorted(told)[:-KEPT]:
            del told[old]

    def keep(self, brokers: Collection[int]) -> None:
        """Forget the others: they are gone."""
        self._told = {broker: told for broker, told in self._told.items() if broker in brokers}

    def windows(self, broker: int, start: int, end: int) -> dict[int, LoopWindow]:
        """Of one broker those that began in [start, end)."""
        return {at: window for at, window in sorted(self._told.get(broker, {}).items()) if start <= at < end}
