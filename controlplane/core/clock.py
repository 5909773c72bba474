"""The door of time. Rules take a Clock, so that a test decides what time it is and a wait takes none."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What rules may ask of time."""

    def now(self) -> datetime:
        """The present moment, in UTC."""
        ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The real time; tests put one in its place that passes only when told to."""

    def now(self) -> datetime:
        """The present moment, in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class OneMoment(SystemClock):
    """It is always the same moment: of two looks that are compared, none finds anything older than the other."""

    def __init__(self, moment: datetime | None = None) -> None:
        self._moment = moment or datetime.now(UTC)

    def now(self) -> datetime:
        """That moment."""
        return self._moment


SYSTEM_CLOCK = SystemClock()
