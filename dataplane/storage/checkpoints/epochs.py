"""Which leader epoch began at which offset: what truncation after a change of leader goes by (KIP-101, KIP-279).

An entry (epoch, start) says: records from `start` on, up to the next entry, were written by the leader of `epoch`. Both
columns grow strictly. The file and the log go to disk together: below the recovery point the file says which epochs there
are, and behind it the batches, which recovery reads anyway. So

    an entry that is added    is on disk before the recovery point passes its start, written in the background
    one that is taken back    is gone from the disk when the call returns: no batch could contradict it
    one that is outlived      goes with the next of these: it says of records that are deleted what was true of them

Nothing is written when an epoch begins, nor with its first batch: a broker that takes over a thousand partitions would
write a thousand files, one after the other and on the loop, while their clients wait. An epoch without a batch may leave
no trace on disk; it began where the log ends.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from threading import Lock
from typing import TYPE_CHECKING

from dataplane.storage.checkpoints.formats import content_of, read_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.doors import Files

FILE_NAME = "leader-epoch-checkpoint"
UNDEFINED = -1
_BESIDE = ".closing.tmp"
_FOR_EVER = 2**63


class Epochs:
    """The epochs of one log, with its file."""

    __slots__ = (
        "_changes",
        "_epochs",
        "_files",
        "_in_file",
        "_path",
        "_saved",
        "_starts",
        "_writing",
        "in_log",
        "newest",
    )

    def __init__(self, files: Files, directory: str, *, is_new: bool = False) -> None:
        self._files = files
        self._path = f"{directory}/{FILE_NAME}"
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self.newest = UNDEFINED
        for epoch, start in [] if is_new else read_rows(files, self._path, 2):
            if not (epoch.isdigit() and start.isdigit()):
                break
            self._add(int(epoch), int(start))
        self.in_log = self.newest  # the newest that has a batch; read for every batch that is staged
        self._in_file = self.newest  # the newest that the file has, or is about to have
        self._changes = self._saved = 0  # of what the file should say, and how many of them it does say
        self._writing = Lock()  # two writers, here and in the background, would meet in the file beside

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
        """`epoch` begins where the log ends; `assign` follows with its first batch. Returns whether it is new."""
        if epoch == self.newest and start_offset >= self._starts[-1]:
            return False
        self._add(epoch, start_offset)
        self.in_log = self._epochs[-2] if len(self._epochs) > 1 else UNDEFINED
        return True

    def assign(self, epoch: int, start_offset: int) -> None:
        """A batch of `epoch` is about to be written at `start_offset`; the next sync of the log makes that last.

        Entries that contradict it (an epoch or a start not below) are dropped: an epoch in which nothing was written
        leaves no trace, and what a recovered log says is believed over the file. The newest epoch said again at a later
        offset changes nothing: a leader that comes back in its old epoch has records of it already. Raises OSError,
        where the file had to be written at once.
        """
        if self.begin(epoch, start_offset) or self.in_log != epoch:
            self.in_log = epoch
            if epoch <= self._in_file:  # which recovery would believe over a batch of an older epoch
                self._write()
            else:
                self._changes += 1

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
        """The log now ends at `offset`: forget epochs that began there or later. On disk when this returns."""
        save = self.cut(offset)
        if save is not None:
            save()
            self.cut_saved()

    def cut(self, offset: int) -> Callable[[], None] | None:
        """The same, and on disk when what is returned has been done: nothing may be assigned before. None: no change."""
        keep = bisect_left(self._starts, offset)
        if keep == len(self._starts):
            return None
        del self._epochs[keep:], self._starts[keep:]
        self.newest = self.in_log = self._epochs[-1] if self._epochs else UNDEFINED
        self._changes += 1
        return self.saver()

    def cut_saved(self) -> None:
        """What `cut` has returned is done."""
        self._in_file = self.newest

    def truncate_from_start(self, offset: int) -> None:
        """The log now starts at `offset`: forget epochs that ended before; the one `offset` is in starts there."""
        gone = bisect_right(self._starts, offset) - 1
        if gone > 0 or (gone == 0 and self._starts[0] != offset):
            del self._epochs[:gone], self._starts[:gone]
            self._starts[0] = offset
            self._changes += 1

    def clear(self) -> None:
        if self._epochs:
            self._epochs, self._starts = [], []
            self._write()

    def _add(self, epoch: int, start: int) -> None:
        keep = min(bisect_left(self._epochs, epoch), bisect_left(self._starts, start))
        del self._epochs[keep:], self._starts[keep:]
        self._epochs.append(epoch)
        self._starts.append(start)
        self.newest = epoch

    # --- the file -----------------------------------------------------------------------------------------------------

    def is_saved(self) -> bool:
        """Whether the file says all that it should."""
        return self._saved >= self._changes

    def saver(self) -> Callable[[], None]:
        """Work for the background: what is known now, on disk, unless something newer is by then. It raises OSError."""
        text, number = content_of(self.entries()), self._changes
        self._in_file = max(self._in_file, self.newest)

        def save() -> None:
            with self._writing:
                if number > self._saved:
                    self._files.write_file(self._path, text)
                    self._saved = max(self._saved, number)

        return save

    def put_beside(self) -> None:
        """What the file should say, in another one that is on disk some time: then `take_place`. Raises OSError."""
        self._files.put_file(self._path + _BESIDE, content_of(self.entries()))

    def take_place(self) -> bool:
        """What was put beside, and is on disk, is the file, under a name that is on disk some time. Raises OSError.

        False, and nothing is done, where the file says it already.
        """
        with self._writing:
            if self.is_saved():
                return False
            self._files.rename(self._path + _BESIDE, self._path)
            self._saved = self._changes
            return True

    def abandon(self, *, waits: bool = True) -> None:
        """Leave the file as it is: the log is closed, or its directory will soon be of another.

        Without `waits`, which is for where that cannot be, what is being written goes on.
        """
        if waits:
            with self._writing:
                self._saved = _FOR_EVER
        else:
            self._saved = _FOR_EVER

    def _write(self) -> None:
        self.newest = self.in_log = self._epochs[-1] if self._epochs else UNDEFINED
        self._changes += 1
        self.saver()()
        self._in_file = self.newest
