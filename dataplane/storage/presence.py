"""Whether a log's directory is still its own.

What is written beside the loop is written by path. Meanwhile the log may be deleted and one of the same name made: what
came late would lie in the directory of the new one, which believes it. So it is written under a lock, and only while the
log is there; a log that goes waits for what is being written.
"""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Presence:
    """Of one log, from its opening on."""

    __slots__ = ("_busy", "_has_ended")

    def __init__(self) -> None:
        self._busy = RLock()  # work of one log may be made of other such work
        self._has_ended = False

    def run(self, work: Callable[[], None]) -> None:
        """Do it if the log is there, and have it stay until it is done. What `work` raises, this raises."""
        with self._busy:
            if not self._has_ended:
                work()

    def end(self) -> None:
        """The log is closed, or goes."""
        with self._busy:
            self._has_ended = True
