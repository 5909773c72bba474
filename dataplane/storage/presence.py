"""Whether a log's directory is still its own.

What is written beside the loop is written by path. Meanwhile the log may be deleted and one of the same name made: what
came late would lie in the directory of the new one, which believes it. So it is written under a lock, and only while the
log is there; a log that goes waits for what is being written.
"""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Presence:
    """Of one log, from its opening on."""

    __slots__ = ("_busy", "has_ended")

    def __init__(self) -> None:
        self._busy = RLock()  # work of one log may be made of other such work
        self.has_ended = False

    def run(self, work: Callable[[], T]) -> T | None:
        """Do it if the log is there, and have it stay until it is done. None: the log has gone. Raises what `work` raises."""
        with self._busy:
            return None if self.has_ended else work()

    def end(self, *, waits: bool = True) -> None:
        """The log is closed, or goes. Without `waits` what is being written goes on, and nothing else is begun."""
        if waits:
            with self._busy:
                self.has_ended = True
        else:
            self.has_ended = True
