"""What several doors speak of: bytes, callbacks, time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

Buffer = bytes | bytearray | memoryview
Callback = Callable[[], None]


class Clock(Protocol):
    """Two clocks: the wall's, for timestamps that people and clients see, and one that never goes back, for durations."""

    def now_ms(self) -> int:
        """Wall time, milliseconds since 1970 UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment."""
        ...


class Timer(Protocol):
    """A callback that has not run yet."""

    def cancel(self) -> None:
        """It will not run. Harmless when it has."""
        ...
