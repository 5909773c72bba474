"""What a log remembers, and what all that is done with it needs: where an offset is, what is not on disk, how a log fails.

When the disk refuses, the log has failed: nothing is appended any more and what was staged is dropped. Recovery at the
next start cuts what was half written.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from dataplane.storage.errors import LogFailedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from dataplane.doors import Background, Files
    from dataplane.storage.checkpoints.epochs import Epochs
    from dataplane.storage.checkpoints.producers import Producers
    from dataplane.storage.config import LogConfig
    from dataplane.storage.presence import Presence
    from dataplane.storage.segments.batch_file import Note
    from dataplane.storage.segments.descriptors import Descriptors
    from dataplane.storage.segments.segment import Segment
    from dataplane.storage.startup.founding import Founding


class LogState:
    """Of one log. Every file of this package adds methods to it, and no attributes."""

    __slots__ = (
        "_active",
        "_background",
        "_buffers",
        "_bytes_staged",
        "_config",
        "_created_ms",
        "_cut_work",
        "_descriptors",
        "_easy_bytes",
        "_files",
        "_is_late",
        "_newcomers",
        "_notes",
        "_now_ms",
        "_presence",
        "_producers",
        "_producers_to",
        "_roll_after",
        "_segments",
        "_snapshots",
        "bytes_cut",
        "cleaned_to",
        "compacted_to",
        "cut_marks",
        "directory",
        "end_offset",
        "epochs",
        "failed",
        "founding",
        "on_failure",
        "partition",
        "recovery_point",
        "size_bytes",
        "staged_end",
        "start_offset",
        "topic",
        "topic_id",
        "truncations",
    )

    directory: str
    topic: str
    partition: int
    topic_id: UUID
    start_offset: int
    end_offset: int
    staged_end: int
    recovery_point: int  # up to here the log is known to be on disk
    size_bytes: int
    bytes_cut: int  # by recovery, when it was opened
    compacted_to: int
    cleaned_to: int
    epochs: Epochs
    failed: bool
    founding: Founding | None  # while the directory itself is on its way to the disk
    on_failure: Callable[[OSError], None] | None  # the owner hears of the first error
    truncations: int  # and resets: whoever works beside us compares
    cut_marks: tuple[str, ...]  # that the next checkpoint makes superfluous (see `truncation_marks`)

    _files: Files
    _background: Background
    _descriptors: Descriptors
    _now_ms: Callable[[], int]
    _presence: Presence
    _config: LogConfig
    _segments: list[Segment]
    _active: Segment
    _buffers: list[memoryview]
    _notes: list[Note]
    _bytes_staged: int
    _is_late: bool
    _easy_bytes: int
    _roll_after: int
    _created_ms: int
    _cut_work: Callable[[], None] | None  # brings the last cut to disk, before anything that is written behind it
    _snapshots: list[int]
    _newcomers: Callable[[int], None] | None  # told of producers that are new to it (see `producer_budget`)
    _producers: Producers | None  # None: nobody has asked since the log was opened,
    _producers_to: int  # when it ended here

    def __repr__(self) -> str:
        return f"<log {self.topic}-{self.partition}>"

    @property
    def segments(self) -> list[Segment]:
        """In order of their offsets. Not to be changed."""
        return self._segments

    @property
    def is_founded(self) -> bool:
        """Whether its directory is on disk."""
        return self.founding is None or self.founding.is_settled

    def syncer(self) -> Callable[[], None]:
        """Work for the background that brings what is committed now to disk; then tell `synced`. Both raise OSError.

        All that is not known to be on disk, not only what is newest: an earlier sync may be under way or never have run.
        """
        work: list[Callable[[], None]] = []
        index = len(self._segments) - 1
        while index >= 0 and self._segment_end(index) > self.recovery_point:
            work.append(self._segments[index].file.sync)
            index -= 1
        if not self.epochs.is_saved():
            work.append(self.epochs.saver())
        if self._cut_work is not None:
            work.append(self._cut_work)
        if not self.is_founded:
            assert self.founding is not None
            work.append(self.founding.settle)

        def sync() -> None:
            for step in reversed(work):
                step()

        return sync

    def fail(self, error: OSError) -> None:
        """The disk has refused something that was done for this log."""
        self._fail(error)

    def give_up(self) -> None:
        """Something unexpected has happened to this log alone: its owner is not told that the disk has refused."""
        self.failed = True
        self._drop_staged()

    def is_staging(self) -> bool:
        """Whether something is to be written by the next commit."""
        return bool(self._buffers)

    def _fail(self, error: OSError) -> LogFailedError:
        first, self.failed = not self.failed, True
        self._drop_staged()
        if first and self.on_failure is not None:
            self.on_failure(error)
        return LogFailedError(error.errno, error.strerror)

    def _drop_staged(self) -> None:
        self._buffers: list[memoryview] = []
        self._notes: list[Note] = []
        self._bytes_staged = 0
        self._is_late = False
        self.staged_end = self.end_offset

    def _segment_index(self, offset: int) -> int:
        return max(0, bisect_right(self._segments, offset, key=_base_offset) - 1)

    def _segment_end(self, index: int) -> int:
        """The offset at which the next segment begins, or the log ends."""
        following = index + 1
        return self._segments[following].base_offset if following < len(self._segments) else self.end_offset

    def _with_ends(self) -> list[tuple[Segment, int]]:
        return [(segment, self._segment_end(index)) for index, segment in enumerate(self._segments)]


def _base_offset(segment: Segment) -> int:
    return segment.base_offset
