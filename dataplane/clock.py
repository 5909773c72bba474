"""The clock door: the operating system's clocks."""

from __future__ import annotations

import time


class SystemClock:
    """Wall time in milliseconds, and a monotonic clock in seconds."""

    @staticmethod
    def now_ms() -> int:
        """Wall time, milliseconds since 1970 UTC."""
        return time.time_ns() // 1_000_000

    monotonic = staticmethod(time.monotonic)
