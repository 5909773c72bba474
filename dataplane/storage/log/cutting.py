"""Cutting a log at its end: a follower's that parted from its leader's, or that begins again elsewhere.

What is cut is gone from the disk when the call returns. Before, a mark is left where the checkpoints say more of the log
than will be true (`storage/cuts`).
"""

from __future__ import annotations

from dataplane.storage import cuts
from dataplane.storage.config import FOREVER
from dataplane.storage.log.compacting import Compacting
from dataplane.storage.log.producing import Producing
from dataplane.storage.log.removing import Removing
from dataplane.storage.producers import Producers
from dataplane.storage.segment import Segment


class Cutting(Removing, Producing, Compacting):
    """Takes the newest back."""

    __slots__ = ()

    def truncate(self, offset: int) -> None:
        """Remove every batch with a record at or after `offset`: on disk when this returns. Raises LogFailedError.

        On disk at once, because the leader-epoch checkpoint forgets durably what is cut: after a power failure the
        removed batches must not come back as if they belonged to a newer epoch.
        """
        self._drop_staged()
        try:
            if offset >= self.end_offset:
                # Nothing to cut, but an epoch that began at the very end may contradict the leader's (KAFKA-10706).
                self.epochs.truncate_from_end(offset)
            else:
                self._truncate(max(offset, self._segments[0].base_offset))
        except OSError as error:
            raise self._fail(error) from error

    def _truncate(self, offset: int) -> None:
        keep = self._segment_index(offset) + 1
        self.truncations += 1
        self._mark_cut(offset)
        gone, self._segments = self._segments[keep:], self._segments[:keep]
        self._forget_snapshots([known for known in self._snapshots if known > offset])
        self._remove(gone[::-1])  # the newest first: a crash leaves no gap
        self._active = self._segments[-1]
        position = self._active.position_of(offset)
        first_gone = next(self._active.headers(position), None)
        # A batch that reaches across the offset goes whole.
        end = offset if first_gone is None else min(offset, first_gone[0].base_offset)
        self._active.truncate(position)
        self._files.sync_directory(self.directory)
        self.size_bytes = sum(segment.size for segment in self._segments)
        self.end_offset = self.staged_end = end
        self.recovery_point = min(self.recovery_point, end)
        self.cleaned_to = min(self.cleaned_to, end)
        self.lower_compacted_to(end)
        self.start_offset = min(self.start_offset, end)
        self.epochs.truncate_from_end(end)
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
        self._producers = Producers()
        self._created_ms, self._roll_after = self._now_ms(), FOREVER
        self.cleaned_to = 0
        self.size_bytes = 0
        self.start_offset = self.end_offset = self.staged_end = self.recovery_point = start_offset

    def _mark_cut(self, offset: int) -> None:
        """Before anything is cut: the checkpoints may say more of the log than will be true (see `cuts`)."""
        if offset < max(self.recovery_point, self.start_offset):
            self._write_cut_mark(offset)

    def _write_cut_mark(self, offset: int) -> None:
        name = cuts.write(self._files, self.directory, self.cut_marks, offset)
        self.cut_marks = (*self.cut_marks, name)

    def forget_cut_marks(self, names: tuple[str, ...]) -> None:
        """They are removed."""
        self.cut_marks = tuple(name for name in self.cut_marks if name not in names)
