"""A virtual clock and its timers: time passes only when somebody runs it. The heart of a simulated loop."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from dataplane.doors import Callback
from dataplane.tasks import Future

EPOCH_MS = 1_700_000_000_000


class VirtualTimer:
    """A callback in the future."""

    def __init__(self, callback: Callback) -> None:
        self.callback: Callback | None = callback

    def cancel(self) -> None:
        self.callback = None


class VirtualTime:
    """`Clock` and the timers of `Loop`: callbacks of one moment run in the order in which they were asked for."""

    def __init__(self) -> None:
        self._now = 0.0
        self._serial = 0
        self.turn_number = 0  # each callback is a turn
        self._timers: list[tuple[float, int, VirtualTimer]] = []

    @property
    def clock(self) -> VirtualTime:
        return self

    def monotonic(self) -> float:
        return self._now

    def now_ms(self) -> int:
        return EPOCH_MS + int(self._now * 1000)

    def call_later(self, delay_s: float, callback: Callback) -> VirtualTimer:
        timer = VirtualTimer(callback)
        self._serial += 1
        heapq.heappush(self._timers, (self._now + max(delay_s, 0.0), self._serial, timer))
        return timer

    def call_soon(self, callback: Callback) -> None:
        self.call_later(0.0, callback)

    call_threadsafe = call_soon
    at_turn_end = call_soon

    def step(self, until: float = float("inf")) -> bool:
        """Run the next callback that is due by `until`; False where there is none."""
        if not self._timers or self._timers[0][0] > until:
            return False
        self._now, _, timer = heapq.heappop(self._timers)
        self.turn_number += 1
        if timer.callback is not None:
            callback, timer.callback = timer.callback, None
            callback()
        return True

    def run(self, seconds: float) -> None:
        """Let this much time pass."""
        until = self._now + seconds
        while self.step(until):
            pass
        self._now = until

    def until(self, condition: Callable[[], bool], within_s: float = 60.0) -> None:
        """Run until the condition holds; fails if it does not in that much virtual time."""
        until = self._now + within_s
        while not condition():
            assert self.step(until), f"not within {within_s} s of virtual time"

    def wait(self, future: Future[Any], within_s: float = 60.0) -> Any:
        """Run until the future is done: its value, or its error raised."""
        self.until(lambda: future.done, within_s)
        return future.result()
