"""How far above its limit an instance went in windows of 1, 10 and 60 seconds: its over-admission.

Measured period by period, from what brokers report as paid: what a throttled sender still owes counts when it is paid.

A ring holds the last minute; each window's sum is kept by adding what comes in and taking away what falls out.
"""

from __future__ import annotations

from quota.contracts.throttled import WINDOWS_S


class OverAdmission:
    """One direction of one instance. Periods before the first count as empty."""

    __slots__ = ("_lengths", "_place", "_ring", "_sums")

    def __init__(self, period_ms: int) -> None:
        self._lengths = [max(1, window_s * 1000 // period_ms) for window_s in WINDOWS_S]
        self._ring = [0] * self._lengths[-1]
        self._sums = [0] * len(self._lengths)
        self._place = 0

    @property
    def empty(self) -> bool:
        """Nothing flowed for a minute: the next period can begin with a new one."""
        return self._sums[-1] == 0

    def add(self, flow_bytes_per_s: int, limit_bytes_per_s: int) -> tuple[float, ...]:
        """Take a period; percent above the limit of the windows that end with it, 0 where they are below."""
        ring, place = self._ring, self._place
        for number, length in enumerate(self._lengths):
            self._sums[number] += flow_bytes_per_s - ring[place - length]
        ring[place] = flow_bytes_per_s
        self._place = (place + 1) % len(ring)
        return tuple(
            round(max(0.0, 100 * total / (limit_bytes_per_s * length) - 100), 1)
            for total, length in zip(self._sums, self._lengths, strict=True)
        )
