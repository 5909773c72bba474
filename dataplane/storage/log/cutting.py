"""Cutting a log at its end: a follower's that parted from its leader's, or that begins again elsewhere.

What is cut must be gone from the disk before anything is written in its place: after a power failure the removed batches
must not come back as if they belonged to a newer epoch. Before the cut, a mark is left where the checkpoints say more of
the log than will be true (`truncation_marks`). `truncate` waits for both; a loop does it in three steps, between which it goes
on with everything else:

    mark_of_cut    the mark to be written by a job, or None where none is needed
    cut            at once
    settle_cut     a job; until it is done nobody stages anything. `settle_cut_now`: for whoever cannot wait for it
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from dataplane.storage.checkpoints import truncation_marks
from dataplane.storage.checkpoints.producers import Producers
from dataplane.storage.config import FOREVER
from dataplane.storage.log.compacting import Compacting
from dataplane.storage.log.producing import Producing
from dataplane.storage.log.removing import Removing
from dataplane.storage.segments.segment import Segment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Mark(NamedTuple):
    """Of a cut that is about to be made: a file's name, and the work that writes it durably."""

    name: str
    write: Callable[[], None]


class Cutting(Removing, Producing, Compacting):
    """Takes the newest back."""

    __slots__ = ()

    def truncate(self, offset: int) -> None:
        """Remove every batch with a record at or after `offset`: on disk when this returns. Raises LogFailedError."""
        mark = self.mark_of_cut(offset)
        self._now(mark.write if mark is not None else None)
        self.cut(offset, mark)
        self.settle_cut_now()

    def mark_of_cut(self, offset: int) -> Mark | None:
        """To be written before `cut` where it is not None: the checkpoints may say more than will be true."""
        if offset >= max(self.recovery_point, self.start_offset):
            return None
        name = truncation_marks.next_name(self.cut_marks)
        work = partial(self._files.write_file, f"{self.directory}/{name}", truncation_marks.content(offset))
        return Mark(name, partial(self._presence.run, work))

    def cut(self, offset: int, mark: Mark | None) -> None:
        """Remove every batch with a record at or after `offset`. Raises LogFailedError.

        `mark` is what `mark_of_cut` has said, and is written. What was synced since may make one necessary.
        """
        self._drop_staged()
        if mark is None and (mark := self.mark_of_cut(offset)) is not None:
            self._now(mark.write)
        if mark is not None:
            self.cut_marks = (*self.cut_marks, mark.name)
        try:
            if offset < self.end_offset:
                self._truncate(max(offset, self._segments[0].base_offset))
            else:
                # Nothing to cut, but an epoch that began at the very end may contradict the leader's (KAFKA-10706).
                self._add_cut_work(self.epochs.cut(offset))
        except OSError as error:
            raise self._fail(error) from error

    def settle_cut(self) -> Callable[[], None] | None:
        """Work for the background that brings what was cut to disk; then tell `cut_settled`. None: it is there."""
        return self._cut_work

    def cut_settled(self, work: Callable[[], None]) -> None:
        """It is done."""
        if self._cut_work is work:
            self._cut_work = None
            self.epochs.cut_saved()

    def settle_cut_now(self) -> None:
        """Before anything is staged by another than who has cut. Blocks where it is not done. Raises LogFailedError."""
        work = self._cut_work
        if work is not None:
            self._now(work)
            self.cut_settled(work)

    def _now(self, work: Callable[[], None] | None) -> None:
        try:
            if work is not None:
                work()
        except OSError as error:
            raise self._fail(error) from error

    def _add_cut_work(self, *more: Callable[[], None] | None) -> None:
        """Behind what an earlier cut has left to do."""
        steps = [step for step in (self._cut_work, *more) if step is not None]
        if more and steps:
            self._cut_work = partial(self._presence.run, partial(_do_all, steps))

    def _truncate(self, offset: int) -> None:
        keep = self._segment_index(offset) + 1
        self.truncations += 1
        gone, self._segments = self._segments[keep:], self._segments[:keep]
        self._forget_snapshots([known for known in self._snapshots if known > offset])
        self._remove(gone[::-1])  # the newest first: a crash leaves no gap
        self._active = self._segments[-1]
        position = self._active.position_of(offset)
        first_gone = next(self._active.headers(position), None)
        # A batch that reaches across the offset goes whole.
        end = offset if first_gone is None else min(offset, first_gone[0].base_offset)
        self._active.truncate(position, sync=False)
        self.size_bytes = sum(segment.size for segment in self._segments)
        self.end_offset = self.staged_end = end
        self.recovery_point = min(self.recovery_point, end)
        self.cleaned_to = min(self.cleaned_to, end)
        self.lower_compacted_to(end)
        self.start_offset = min(self.start_offset, end)
        sync_names = partial(self._files.sync_directory, self.directory)
        self._add_cut_work(self._active.file.sync, sync_names, self.epochs.cut(end))
        self._look_at_time_again()
        self._cut_producers(end)

    def reset(self, start_offset: int) -> None:
        """Throw everything away and begin again at `start_offset`. Raises LogFailedError."""
        self._drop_staged()
        self.truncations += 1
        try:
            self._mark_cut(start_offset)
            self._forget_snapshots(self._snapshots[:])
            self._remove(self._segments)
            self._active = Segment(self._files, self.directory, start_offset, self._descriptors)
            self._segments = [self._active]
            _ = self._active.file
            self._files.sync_directory(self.directory)
            self.epochs.clear()
            self.lower_compacted_to(0)
        except OSError as error:
            raise self._fail(error) from error
        self._cut_work = None
        self._producers = Producers(self._newcomers)
        self._created_ms, self._roll_after = self._now_ms(), FOREVER
        self.cleaned_to = 0
        self.size_bytes = 0
        self.start_offset = self.end_offset = self.staged_end = self.recovery_point = start_offset

    def _mark_cut(self, offset: int) -> None:
        """Before anything is cut: the checkpoints may say more of the log than will be true (see `truncation_marks`)."""
        if offset < max(self.recovery_point, self.start_offset):
            self._write_cut_mark(offset)

    def _write_cut_mark(self, offset: int) -> None:
        name = truncation_marks.write(self._files, self.directory, self.cut_marks, offset)
        self.cut_marks = (*self.cut_marks, name)

    def forget_cut_marks(self, names: tuple[str, ...]) -> None:
        """They are removed."""
        self.cut_marks = tuple(name for name in self.cut_marks if name not in names)


def _do_all(steps: Sequence[Callable[[], None]]) -> None:
    for step in steps:
        step()
