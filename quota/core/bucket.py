"""A token bucket that answers how long the sender of some bytes has to wait. It is on the broker's hot path.

Use, one bucket per (instance, direction), by the broker's gate::

    delay_s = bucket.charge(request_size, now)        # now: monotonic seconds, of the loop
    if delay_s: answer at once with throttle_time_ms = ceil(delay_s * 1000), and leave the next request unread until then

*Charge always lets the bytes through* and may leave the bucket in debt; the delay is how long the debt takes to be paid
at the present rate, at most 30 s. So whoever waits as told sends `rate` on average, and over any window of w seconds no
more than ``rate * w``, one slice, and the debt of the last request. What may be saved up is one slice of 100 ms.

=============  =========================================================================================================
rate           bytes/s; None = unlimited (never a delay), 0 = blocked (always 30 s): two different things
slice          0.1 s of the rate: the most that an idle bucket saves up
debt           bytes let through and not yet paid for: `debt_bytes(now)`
flow           what was *paid* up to a moment: `paid_bytes(now)` = charged - debt. It is what reports are made of: under
               throttling it grows by exactly `rate` a second, where the sizes of single requests would make it jump
=============  =========================================================================================================

`refused_bytes` are those of the charged ones whose requests were refused for what the instance has become (its storage is
full): they are paid for like others, and are not flow (`quota.agent`).

`delay(now)` is the wait of a sender that has not sent yet (a new connection while others are in debt). `fetch_bytes` is
how much a throttled fetch should return at most. `charged_bytes` only grows.
"""

from __future__ import annotations

import math
from collections.abc import Callable

SLICE_S = 0.1
MAX_DELAY_S = 30.0
NEVER = float("-inf")


def _nobody() -> None:
    """The listener of a bucket that nobody watches."""


class TokenBucket:
    """See the file's text. `on_throttled` is called when throttling starts after more than a slice without it."""

    __slots__ = (
        "_at",
        "_burst",
        "_level",
        "_on_throttled",
        "_throttled_s",
        "_throttled_until",
        "blocked",
        "charged_bytes",
        "line",
        "paid_at",
        "rate",
        "refused_bytes",
    )

    def __init__(self, rate: int | None, now: float, on_throttled: Callable[[], None] = _nobody) -> None:
        self.rate = rate  # read it; change it by `set_rate`
        self.paid_at = float("inf") if rate == 0 else NEVER  # the moment from which nothing is owed
        self.line: object = None  # where those wait who wait for it, kept by whoever lets them pass
        self.blocked: str | None = None  # why nothing may pass at all ("storage"): for callers that ask before charging
        self.charged_bytes = 0
        self.refused_bytes = 0
        self._burst = (rate or 0) * SLICE_S
        self._level = self._burst
        self._at = now
        self._throttled_s = 0.0
        self._throttled_until = NEVER
        self._on_throttled = on_throttled

    def charge(self, size: int, now: float) -> float:
        """Let `size` bytes through; the seconds to wait before the next ones (0.0: none)."""
        self.charged_bytes += size
        rate = self.rate
        if rate is None:
            return 0.0
        level = self._level + (now - self._at) * rate
        if level > self._burst:  # noqa: PLR1730 - min() costs a call on the hot path
            level = self._burst
        level -= size
        self._level = level
        self._at = now
        if level >= 0.0 and rate:
            return 0.0
        return self._throttle(now)

    def wait(self, now: float) -> None:
        """A sender waits without having been charged: at a rate of 0 nothing else shows it."""
        self._throttle(now)

    def delay(self, now: float) -> float:
        """The seconds that a charge of nothing would have to wait now. Changes nothing."""
        if self.rate is None:
            return 0.0
        if self.rate == 0:
            return MAX_DELAY_S
        return min(self.debt_bytes(now) / self.rate, MAX_DELAY_S)

    def debt_bytes(self, now: float) -> float:
        """Bytes let through that are not paid for yet."""
        if self.rate is None:
            return 0.0
        return max(0.0, -(self._level + (now - self._at) * self.rate))

    def credit_bytes(self, now: float) -> float:
        """What could be charged now and be paid for."""
        if self.rate is None:
            return math.inf
        return min(self._level + (now - self._at) * self.rate, self._burst)

    def paid_bytes(self, now: float) -> int:
        """Bytes charged and paid for since the bucket was made."""
        return self.charged_bytes - int(self.debt_bytes(now))

    def throttled_s(self, now: float) -> float:
        """Seconds since the bucket was made during which somebody had to wait, counted once however many waited."""
        return self._throttled_s - max(0.0, self._throttled_until - now)

    def fetch_bytes(self, window_s: float = 1.0) -> int | None:
        """The most that one fetch should return: what the rate gives in `window_s`. None: no limit."""
        return None if self.rate is None else int(self.rate * window_s)

    def set_rate(self, rate: int | None, now: float) -> None:
        """Change the rate. Savings above the new slice are lost; a debt stays, and is paid at the new rate."""
        if rate == self.rate:
            return
        burst = (rate or 0) * SLICE_S
        if self.rate is None:
            self._level = burst
        else:
            self._level = min(self._level + (now - self._at) * self.rate, self._burst, burst)
        self.rate = rate
        self._burst = burst
        self._at = now
        self.paid_at = self._paid_at(now)
        self._throttled_s = self.throttled_s(now)
        self._throttled_until = now + self.delay(now) if self._level < 0 else min(self._throttled_until, now)
        self._throttled_s += max(0.0, self._throttled_until - now)

    def _paid_at(self, now: float) -> float:
        if self.rate == 0:
            return float("inf")
        return now - self._level / self.rate if self.rate and self._level < 0.0 else NEVER

    def _throttle(self, now: float) -> float:
        self.paid_at = self._paid_at(now)
        delay = MAX_DELAY_S if not self.rate else min(-self._level / self.rate, MAX_DELAY_S)
        until, before = now + delay, self._throttled_until
        self._throttled_s += max(0.0, until - max(now, before))
        self._throttled_until = max(until, before)
        if now > before + SLICE_S:
            self._on_throttled()
        return delay
