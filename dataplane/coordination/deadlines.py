"""Named deadlines that are moved far more often than they pass: every heartbeat moves one.

Moving a deadline later only writes a number down; the loop's timer, when it fires early, is set again for the rest. So
a heartbeat leaves nothing behind in the loop's queue.

Where many pass together (a thousand consumers of one group have died), a few are reported a turn: each costs as much as its
group is large. One that waits for its report can still be moved, or cancelled.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.coordination.portions import Portions
    from dataplane.doors import Loop, Timer

PASSED_AT_ONCE = 8
"""Of a turn. To take a member out of a group of a thousand costs 100 us."""


class _Running(NamedTuple):
    due: float
    timer: Timer


class Deadlines:
    """By name: a moment, and what passes for the event that is reported then."""

    __slots__ = ("_due", "_loop", "_passed", "_passing", "_timers")

    def __init__(self, loop: Loop, passed: Callable[[Any], None], passing: Portions) -> None:
        self._loop = loop
        self._passed = passed
        self._passing = passing
        self._due: dict[str, tuple[float, Any]] = {}
        self._timers: dict[str, _Running] = {}

    def set(self, name: str, delay_s: float, event: Any) -> None:
        """Report `event` after `delay_s`; replaces what the name stood for."""
        due = self._loop.clock.monotonic() + delay_s
        self._due[name] = (due, event)
        running = self._timers.get(name)
        if running is None or running.due > due:
            if running is not None:
                running.timer.cancel()
            self._start(name, due, delay_s)

    def is_running(self, name: str) -> bool:
        """Whether something is going to be reported."""
        return name in self._due

    def cancel(self, name: str) -> None:
        """Harmless when there is none."""
        self._due.pop(name, None)
        running = self._timers.pop(name, None)
        if running is not None:
            running.timer.cancel()

    def cancel_all(self) -> None:
        """Every one."""
        for name in list(self._timers):
            self.cancel(name)

    def _start(self, name: str, due: float, delay_s: float) -> None:
        self._timers[name] = _Running(due, self._loop.call_later(delay_s, partial(self._fired, name)))

    def _fired(self, name: str) -> None:
        if not self._is_moved(name):
            self._passing.run(partial(self._report, name, self._timers[name]))

    def _report(self, name: str, running: _Running) -> None:
        if self._timers.get(name) is not running or self._is_moved(name):
            return  # what was cancelled while it waited may have been set again
        _, event = self._due.pop(name)
        del self._timers[name]
        self._passed(event)

    def _is_moved(self, name: str) -> bool:
        """Whether it is due later by now; then its timer is set again."""
        due, _ = self._due[name]
        left_s = due - self._loop.clock.monotonic()
        if left_s > 0:
            self._start(name, due, left_s)
        return left_s > 0
