"""Named deadlines that are moved far more often than they pass: every heartbeat moves one.

Moving a deadline later only writes a number down; the loop's timer, when it fires early, is set again for the rest. So
a heartbeat leaves nothing behind in the loop's queue.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.doors import Loop, Timer


class Deadlines:
    """By name: a moment, and what passes for the event that is reported then."""

    __slots__ = ("_due", "_loop", "_passed", "_timers")

    def __init__(self, loop: Loop, passed: Callable[[Any], None]) -> None:
        self._loop = loop
        self._passed = passed
        self._due: dict[str, tuple[float, Any]] = {}
        self._timers: dict[str, tuple[float, Timer]] = {}

    def set(self, name: str, delay_s: float, event: Any) -> None:
        """Report `event` after `delay_s`; replaces what the name stood for."""
        due = self._loop.clock.monotonic() + delay_s
        self._due[name] = (due, event)
        running = self._timers.get(name)
        if running is None or running[0] > due:
            if running is not None:
                running[1].cancel()
            self._start(name, due, delay_s)

    def cancel(self, name: str) -> None:
        """Harmless when there is none."""
        self._due.pop(name, None)
        running = self._timers.pop(name, None)
        if running is not None:
            running[1].cancel()

    def cancel_all(self) -> None:
        """Every one."""
        for name in list(self._timers):
            self.cancel(name)

    def _start(self, name: str, due: float, delay_s: float) -> None:
        self._timers[name] = (due, self._loop.call_later(delay_s, partial(self._fired, name)))

    def _fired(self, name: str) -> None:
        due, event = self._due[name]
        left_s = due - self._loop.clock.monotonic()
        if left_s > 0:
            self._start(name, due, left_s)
            return
        del self._due[name], self._timers[name]
        self._passed(event)
