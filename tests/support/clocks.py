"""A clock of the control plane for processes of their own, which do not import its fakes."""

from __future__ import annotations

from datetime import datetime


class StandingClock:
    """It is the same moment for ever."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    def sleep(self, seconds: float) -> None:
        raise NotImplementedError
