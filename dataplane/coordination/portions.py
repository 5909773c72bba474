"""What one turn of the loop may bring a thousand times is done a few times a turn, in its order."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.doors import Loop


class Portions:
    """Calls of one kind, `at_once` of them in a turn; the others wait."""

    __slots__ = ("_at_once", "_done", "_done_in", "_is_scheduled", "_loop", "_waiting")

    def __init__(self, loop: Loop, at_once: int) -> None:
        self._loop = loop
        self._at_once = at_once
        self._done, self._done_in = 0, -1  # how many, and in which turn
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_scheduled = False

    def run(self, call: Callable[[], None]) -> None:
        """Now, or in a later turn."""
        if self._done_in != self._loop.turn_number:
            self._done, self._done_in = 0, self._loop.turn_number
        if self._waiting or self._done >= self._at_once:
            self._waiting.append(call)
            self._schedule()
            return
        self._done += 1
        call()

    def _schedule(self) -> None:
        if self._waiting and not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._is_scheduled = False
        try:
            for _ in range(min(self._at_once, len(self._waiting))):
                self._waiting.popleft()()
        finally:
            self._schedule()  # a bug in one call: all others are made all the same
