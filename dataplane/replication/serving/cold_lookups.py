"""A fetch whose look-up leads to the disk: what it missed is brought beside the loop, and it looks again.

Where offsets stand is read from indexes and headers; of old data neither is in memory, and a loop that waits for them
holds up everybody. So a fetch looks at once or not at all. It misses one piece at a time: an index, the headers behind
one of its entries, the header at the end of the range. Memory may be so short that a piece is gone again before it is
looked at; after some rounds the fetch waits for the disk like any other reader, for it has to come to an end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataplane.doors import Callback, Files, NotInMemoryError

ROUNDS = 16


class ColdLookups:
    """Of one fetch. `missing` is what its last look missed; while `wait` is False a look may miss something."""

    __slots__ = ("_account", "_again", "_files", "_rounds", "missing", "wait")

    def __init__(self, files: Files, account: str) -> None:
        self._files, self._account = files, account
        self._again: Callback | None = None
        self._rounds = 0
        self.missing: NotInMemoryError | None = None
        self.wait = False

    def bring(self, again: Callback) -> None:
        """Call `again` when what was missing is in memory."""
        missing, self.missing = self.missing, None
        assert missing is not None
        self._rounds += 1
        self.wait = self._rounds >= ROUNDS
        self._again = again
        self._files.bring(self._account, missing, self._brought)

    def give_up(self) -> None:
        """Nobody waits for the answer any more: do not look again."""
        self._again = None

    def _brought(self) -> None:
        again, self._again = self._again, None
        if again is not None:
            again()
