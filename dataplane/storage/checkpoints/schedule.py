"""When the checkpoints of a broker's data directories are read and written (`rows`: what they say, `formats`: how).

Read once, at the start: whoever opens a log hears what was known of it. Written in the background, one writing at a time:
what comes meanwhile is noted, and goes with the next.

They name logs by topic and partition. A log that is deleted, or moved away, may leave a row behind for a while, and the
next one of that name must not be taken for it: `speak_of` says of which names that may be so. It is so no more when a
writing has ended that began after the log had gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dataplane.storage.checkpoints import formats, truncation_marks
from dataplane.storage.checkpoints.rows import (
    CLEANED_TO,
    HIGH_WATERMARKS,
    RECOVERY_POINTS,
    START_OFFSETS,
    CheckpointRows,
)
from dataplane.storage.log import cutting
from dataplane.storage.log.opening import LastKnown
from dataplane.storage.moving import home_of
from dataplane.tasks import Future, resolved

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dataplane.doors import Background, Files
    from dataplane.storage.checkpoints.lines import Key, Lines
    from dataplane.storage.directories import Directories
    from dataplane.storage.log import Log


class Checkpointed(NamedTuple):
    """What the files of one directory said of its logs when the broker started."""

    recovery_points: dict[Key, int]
    start_offsets: dict[Key, int]
    cleaned_to: dict[Key, int]

    def of(self, key: Key) -> LastKnown:
        """One of its logs."""
        return LastKnown(*(offsets.get(key, 0) for offsets in self))


class CheckpointSchedule:
    """Of the logs in `logs`, which others change.

    `failed` hears of a directory that refuses, `unfounded` of a log that has had records and whose own is not on disk yet.
    """

    def __init__(
        self,
        files: Files,
        background: Background,
        directories: Directories,
        logs: Mapping[Key, Log],
        failed: Callable[[str, OSError], None],
        unfounded: Callable[[Log], None],
    ) -> None:
        self._files, self._background, self._directories = files, background, directories
        self._logs, self._failed, self._unfounded = logs, failed, unfounded
        self._positions = {home: CheckpointRows(files, home) for home, _ in directories.all()}
        self._high_watermarks: dict[Key, int] = {}
        self._namesakes: set[Key] = set()
        self._leaving: set[Key] = set()  # and those that what is being written will make an end of
        self.marks_gone = 0  # the highest number that a mark of a log had that is not there any more
        self._writing: Future[None] | None = None
        self._settling: Future[None] | None = None

    # --- reading ------------------------------------------------------------------------------------------------------

    def read(self, home: str) -> Checkpointed:
        """Before the directory's logs are opened. Raises OSError."""
        found = Checkpointed(
            formats.read_offsets(self._files, f"{home}/{RECOVERY_POINTS}"),
            formats.read_offsets(self._files, f"{home}/{START_OFFSETS}"),
            formats.read_offsets(self._files, f"{home}/{CLEANED_TO}"),
        )
        self._namesakes.update(found.recovery_points, found.start_offsets)
        self._high_watermarks |= formats.read_offsets(self._files, f"{home}/{HIGH_WATERMARKS}")
        return found

    def high_watermark(self, topic: str, partition: int) -> int:
        """As checkpointed before the last start; 0 when it was not."""
        return self._high_watermarks.get((topic, partition), 0)

    def speak_of(self, key: Key) -> bool:
        """Whether a file may have a row of this name that is of a log of before."""
        return key in self._namesakes or key in self._leaving

    # --- noting -------------------------------------------------------------------------------------------------------

    def opened(self, log: Log) -> None:
        """One of `logs` from now on."""
        key = (log.topic, log.partition)
        self._positions[home_of(log.directory)].note(key, log, self._high_watermarks.get(key))

    def note(self, log: Log, high_watermark: int | None = None) -> None:
        """What the next checkpoint says of a log: as it is now."""
        key = (log.topic, log.partition)
        if self._logs.get(key) is log:
            self._positions[home_of(log.directory)].note(key, log, high_watermark)
            if log.end_offset and not log.is_founded:
                self._unfounded(log)

    def moved_away(self, log: Log) -> None:
        """The log has left this directory."""
        key = (log.topic, log.partition)
        self._namesakes.add(key)
        self.marks_gone = max(self.marks_gone, truncation_marks.highest(log.cut_marks))
        self._positions[home_of(log.directory)].forget(key)

    def deleted(self, log: Log) -> None:
        """The log has been deleted."""
        self._high_watermarks.pop((log.topic, log.partition), None)
        self.moved_away(log)

    # --- writing ------------------------------------------------------------------------------------------------------

    def stale(self) -> list[tuple[Lines, int]]:
        """What can be made ready bit by bit before `write_noted`."""
        return [block for home in self._directories.online() for block in self._positions[home].stale()]

    def write(self, high_watermarks: Mapping[Key, int]) -> Future[None]:
        """High watermarks, recovery points and start offsets, in the background. Skipped while one is being written."""
        if self._writing is not None and not self._writing.done:
            return resolved(None)
        for key, log in self._logs.items():
            self.note(log, high_watermarks.get(key))
        return self.write_noted()

    def write_noted(self) -> Future[None]:
        """What has changed of what was noted, in the background. Skipped while something is being written."""
        if self._writing is not None and not self._writing.done:
            return resolved(None)
        changes = [(home, self._positions[home], self._positions[home].take()) for home in self._directories.online()]
        if not any(taken.contents or taken.marks for _, _, taken in changes):
            return resolved(None)
        failed: dict[str, OSError] = {}
        self._leaving |= self._namesakes
        self._namesakes = set()

        def write() -> None:
            for home, positions, taken in changes:
                try:
                    positions.write(taken)
                except OSError as error:
                    failed[home] = error

        def written(future: Future[None]) -> None:
            if future.error is None:
                self._forget_marks([taken.marks for home, _, taken in changes if home not in failed])
                if not failed:
                    self._leaving = set()
            for home, error in failed.items():
                self._failed(home, error)

        self._writing = self._background.run(write)
        self._writing.then(written)
        return self._writing

    def _forget_marks(self, marks_by_home: Sequence[dict[str, tuple[str, ...]]]) -> None:
        marks = {directory: names for by_home in marks_by_home for directory, names in by_home.items()}
        if marks:
            for log in self._logs.values():
                cutting.forget_cut_marks(log, marks.get(log.directory, ()))

    def settle(self) -> Future[None]:
        """What was noted until now, on disk when the future is resolved. Calls that come meanwhile share the next writing."""
        settling = self._settling
        if settling is None:
            settling = self._settling = Future()
            self._settle_next()
        return settling

    def _settle_next(self) -> None:
        if self._writing is not None and not self._writing.done:
            self._writing.then(lambda _: self._settle_next())
            return
        settling, self._settling = self._settling, None
        assert settling is not None

        def settle(written: Future[None]) -> None:
            if written.error is None:
                settling.resolve(None)
            else:
                settling.fail(written.error)

        self.write_noted().then(settle)

    def write_last(self, home: str, logs: Sequence[Log]) -> None:
        """At the stop, with what the logs of a directory are when they are closed. Blocks. Raises OSError."""
        positions = self._positions[home]
        for log in logs:
            positions.note((log.topic, log.partition), log, None)
        positions.write(positions.take())
