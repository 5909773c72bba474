"""Which leader epoch began at which offset: what truncation after a change of leader goes by (KIP-101, KIP-279).

An entry (epoch, start) says: records from `start` on, up to the next entry, were written by the leader of `epoch`. Both
columns grow strictly. An entry is on disk before the first batch of its epoch is in the log, so that a log never holds
an epoch that its checkpoint does not know. Not sooner: a broker that takes over a thousand partitions would write a
thousand files, one after the other, before it leads the last of them, and most of those partitions are idle. An epoch
without a batch leaves no trace on disk; it began where the log ends.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from dataplane.storage.checkpoints import read_rows, write_rows

if TYPE_CHECKING:
    from dataplane.doors import Files

FILE_NAME = "leader-epoch-checkpoint"
UNDEFINED = -1


class Epochs:
    """The epochs of one log, with its file."""

    __slots__ = ("_epochs", "_files", "_path", "_starts", "newest", "written")

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._path = f"{directory}/{FILE_NAME}"
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self.newest = UNDEFINED
        for epoch, start in read_rows(files, self._path, 2):
            if not (epoch.isdigit() and start.isdigit()):
                break
            self._add(int(epoch), int(start))
        self.written = self.newest  # the newest on disk; read for every batch that is staged

    def entries(self) -> list[tuple[int, int]]:
        """(epoch, start offset), oldest first."""
        return list(zip(self._epochs, self._starts, strict=True))

    def latest(self) -> int:
        """The newest epoch, -1 when none is known."""
        return self.newest

    def first_start(self) -> int | None:
        """Where the oldest epoch begins; None when none is known."""
        return self._starts[0] if self._starts else None

    def extend_front(self, older: list[tuple[int, int]]) -> None:
        """Epochs that begin before the oldest, as the log shows them. Raises OSError."""
        known = self.entries()
        if known:
            older = [(epoch, start) for epoch, start in older if start < known[0][1]]
            if older and older[-1][0] == known[0][0]:
                del known[0]  # it began earlier
        entries = [*older, *known]
        self._epochs, self._starts = [epoch for epoch, _ in entries], [start for _, start in entries]
        self._write()

    def begin(self, epoch: int, start_offset: int) -> bool:
        """`epoch` begins where the log ends; `assign` writes that down with its first batch. Returns whether it is new."""
        if epoch == self.newest and start_offset >= self._starts[-1]:
            return False
        self._add(epoch, start_offset)
        self.written = self._epochs[-2] if len(self._epochs) > 1 else UNDEFINED
        return True

    def assign(self, epoch: int, start_offset: int) -> None:
        """A batch of `epoch` is about to be written at `start_offset`: on disk when this returns. Raises OSError.

        Entries that contradict it (an epoch or a start not below) are dropped: an epoch in which nothing was written
        leaves no trace, and what a recovered log says is believed over the file. The newest epoch said again at a later
        offset changes nothing: a leader that comes back in its old epoch has records of it already.
        """
        if self.begin(epoch, start_offset) or self.written != epoch:
            self._write()

    def end_offset(self, epoch: int, log_end: int) -> tuple[int, int]:
        """The largest epoch not above `epoch` and the offset where it ended, as OffsetForLeaderEpoch answers.

        (-1, -1) when this log cannot say: the epoch is newer than all it knows, or undefined.
        """
        if epoch == UNDEFINED or not self._epochs:
            return UNDEFINED, UNDEFINED
        if epoch == self._epochs[-1]:
            return epoch, log_end
        above = bisect_right(self._epochs, epoch)
        if above == len(self._epochs):
            return UNDEFINED, UNDEFINED
        return (self._epochs[above - 1] if above else epoch), self._starts[above]

    def epoch_of(self, offset: int) -> int:
        """The epoch in which `offset` was written, -1 when that is not known."""
        index = bisect_right(self._starts, offset)
        return self._epochs[index - 1] if index else UNDEFINED

    def truncate_from_end(self, offset: int) -> None:
        """The log now ends at `offset`: forget epochs that began there or later."""
        keep = bisect_left(self._starts, offset)
        if keep < len(self._starts):
            del self._epochs[keep:], self._starts[keep:]
            self._write()

    def truncate_from_start(self, offset: int) -> None:
        """The log now starts at `offset`: forget epochs that ended before; the one `offset` is in starts there."""
        gone = bisect_right(self._starts, offset) - 1
        if gone >= 0 and self._starts[gone] != offset:
            del self._epochs[:gone], self._starts[:gone]
            self._starts[0] = offset
            self._write()
        elif gone > 0:
            del self._epochs[:gone], self._starts[:gone]
            self._write()

    def clear(self) -> None:
        """The log is empty."""
        if self._epochs:
            self._epochs, self._starts = [], []
            self._write()

    def _add(self, epoch: int, start: int) -> None:
        keep = min(bisect_left(self._epochs, epoch), bisect_left(self._starts, start))
        del self._epochs[keep:], self._starts[keep:]
        self._epochs.append(epoch)
        self._starts.append(start)
        self.newest = epoch

    def _write(self) -> None:
        self.newest = self._epochs[-1] if self._epochs else UNDEFINED
        write_rows(self._files, self._path, self.entries())
        self.written = self.newest
