"""How far above its limit an instance went in windows of 1, 10 and 60 seconds: its over-admission.

Measured period by period, from what brokers report as paid: what a throttled sender still owes counts when it is paid.

A ring holds the last minute; each window's sum is kept by adding what comes in and taking away what falls out. What flowed is
held against the limits that were in force while it did, so another ring holds those. A lower limit is in force after SETTLES_MS:
reports are of the period before, and brokers hear of it one after the other.
"""

from __future__ import annotations

from collections import deque

from quota.contracts.throttled import WINDOWS_S

SETTLES_MS = 2_000


class OverAdmission:
    """One direction of one instance. Periods before the first count as empty."""

    __slots__ = ("_lately", "_lengths", "_limit_sums", "_limits", "_place", "_ring", "_sums", "in_force")

    def __init__(self, period_ms: int) -> None:
        self._lengths = [max(1, window_s * 1000 // period_ms) for window_s in WINDOWS_S]
        self._ring = [0] * self._lengths[-1]
        self._sums = [0] * len(self._lengths)
        self._limits: list[int] = []  # before the first period: as in it
        self._limit_sums = [0] * len(self._lengths)
        self._lately: deque[int] = deque(maxlen=1 + max(1, SETTLES_MS // period_ms))
        self._place = 0
        self.in_force = 0  # bytes/s, in the last period

    @property
    def empty(self) -> bool:
        """Nothing flowed for a minute: the next period can begin with a new one."""
        return self._sums[-1] == 0

    def add(self, flow_bytes_per_s: int, limit_bytes_per_s: int) -> tuple[float, ...]:
        """Take a period; percent above the limit of the windows that end with it, 0 where they are below."""
        self._lately.append(limit_bytes_per_s)
        limit = self.in_force = max(self._lately)
        ring, limits, place = self._ring, self._limits, self._place
        if not limits:
            limits[:] = [limit] * len(ring)
            self._limit_sums = [limit * length for length in self._lengths]
        for number, length in enumerate(self._lengths):
            self._sums[number] += flow_bytes_per_s - ring[place - length]
            self._limit_sums[number] += limit - limits[place - length]
        ring[place], limits[place] = flow_bytes_per_s, limit
        self._place = (place + 1) % len(ring)
        return tuple(
            round(max(0.0, 100 * total / limit_sum - 100), 1)
            for total, limit_sum in zip(self._sums, self._limit_sums, strict=True)
        )
