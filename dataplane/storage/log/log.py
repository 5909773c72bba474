"""The log of one partition: how it is opened. What can be done with it is inherited (see the package)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.storage.checkpoints import truncation_marks
from dataplane.storage.checkpoints.epochs import Epochs
from dataplane.storage.config import LogConfig
from dataplane.storage.log.appending import Appending
from dataplane.storage.log.cutting import Cutting
from dataplane.storage.log.flushing import Flushing
from dataplane.storage.log.reading import Reading
from dataplane.storage.presence import Presence
from dataplane.storage.segments.descriptors import Descriptors
from dataplane.storage.startup import recovery

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from dataplane.doors import Background, Files

_OF_ONE_LOG = 2  # segments that are open at a time, where a log is on its own


class Log(Appending, Cutting, Flushing, Reading):
    """The log of one partition on this broker."""

    __slots__ = ()

    def __init__(
        self,
        files: Files,
        background: Background,
        directory: str,
        *,
        topic: str,
        partition: int,
        topic_id: UUID,
        config: LogConfig | None = None,
        clean: bool = False,
        recovery_point: int = 0,
        start_offset: int = 0,
        cleaned_to: int = 0,
        descriptors: Descriptors | None = None,
        now_ms: Callable[[], int] | None = None,
        newcomers: Callable[[int], None] | None = None,
    ) -> None:
        """Open the log in `directory`, which exists. Raises OSError.

        `clean` says that it was closed in order; if not, what lies behind `recovery_point` is checked and a torn or
        corrupt tail is cut. A new log begins at `start_offset`. Compaction's last round ended at `cleaned_to`.
        `descriptors` is what all logs share, `now_ms` the wall's clock. `newcomers` hears of producers that are new to it.
        """
        self._files, self._background = files, background
        self.directory, self.topic, self.partition, self.topic_id = directory, topic, partition, topic_id
        self._descriptors = descriptors or Descriptors(_OF_ONE_LOG, background)
        self._now_ms = now_ms or _no_clock
        self._presence = Presence()
        self._newcomers = newcomers
        self._config = config or LogConfig()
        self.failed = False
        self.founding = None
        self._cut_work = None
        self.on_failure = None
        self.truncations = 0
        self.cut_marks = ()
        if not clean:
            names, lowest = truncation_marks.read(files, directory)
            self.cut_marks = tuple(names)
            if lowest is not None:
                recovery_point, start_offset = min(recovery_point, lowest), min(start_offset, lowest)
                cleaned_to = min(cleaned_to, lowest)
        self.epochs = Epochs(files, directory)
        self._load(clean=clean, recovery_point=recovery_point, start_offset=start_offset, cleaned_to=cleaned_to)
        if not clean:
            # What was created, renamed or removed before the stop, and by recovery, is as good as what is synced later.
            files.sync_directory(directory)
            self._keep_up_with_checkpoints(recovery_point, start_offset)
            self._cover_front()
            self.epochs.truncate_from_start(self.start_offset)  # which may not have been written before the stop

    def _load(self, *, clean: bool, recovery_point: int, start_offset: int, cleaned_to: int) -> None:
        loaded = recovery.load(
            self._files,
            self.directory,
            self.epochs,
            self._config,
            topic_id=self.topic_id,
            clean=clean,
            recovery_point=recovery_point,
            start_offset=start_offset,
            descriptors=self._descriptors,
        )
        self._segments, self._active = loaded.segments, loaded.segments[-1]
        self.end_offset = self.staged_end = loaded.end_offset
        self.bytes_cut = loaded.bytes_cut
        self.start_offset = min(max(start_offset, self._segments[0].base_offset), self.end_offset)
        self.compacted_to = loaded.compacted_to
        self.cleaned_to = cleaned_to if cleaned_to <= self.end_offset else 0
        if recovery_point > self.end_offset:  # it is of another log, or damaged: it says nothing of what is on disk
            recovery_point = 0
        known = max(recovery_point, loaded.compacted_to, self._segments[0].base_offset)
        self.recovery_point = self.end_offset if clean else min(known, self.end_offset)
        self.size_bytes = sum(segment.size for segment in self._segments)
        self._drop_staged()
        self._created_ms = self._now_ms()
        self.config = self._config
        self._snapshots = loaded.snapshots
        self._producers, self._producers_to = None, self.end_offset
        if self.size_bytes and self.end_offset not in self._snapshots:
            _ = self.producers  # the headers have just been read, or there are few of them

    def _keep_up_with_checkpoints(self, recovery_point: int, start_offset: int) -> None:
        """Recovery has ended the log below what the checkpoints say. Offsets that were deleted are not given again."""
        if start_offset > self.end_offset:
            self.reset(start_offset)
        elif recovery_point > self.end_offset:
            self._write_cut_mark(self.end_offset)

    def _cover_front(self) -> None:
        """Segments that were removed may come back, without the epochs that were forgotten with them."""
        first = self.epochs.first_start()
        if self.start_offset < (self.end_offset if first is None else first):
            found: list[tuple[int, int]] = []
            for segment in self._segments:
                for header, _ in segment.headers():
                    if first is not None and header.base_offset >= first:
                        break
                    if not found or header.leader_epoch > found[-1][0]:
                        found.append((header.leader_epoch, header.base_offset))
            self.epochs.extend_front(found)


def _no_clock() -> int:
    return 0
