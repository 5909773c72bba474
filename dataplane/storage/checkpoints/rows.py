"""The checkpoints of one data directory: for each of its logs, offsets that a start goes by.

    recovery-point-offset-checkpoint     up to where each log is known to be on disk
    log-start-offset-checkpoint          where logs begin that do not begin at 0
    cleaner-offset-checkpoint            up to where they are compacted
    replication-offset-checkpoint        high watermarks

Logs are noted one by one, at any time, and only what differs from what was noted before costs anything; a file is written
when something in it has changed. So an idle broker writes nothing, ten thousand logs can be looked at in slices, and the
thread that writes gets finished blocks of lines (`lines`): formatting there would take the interpreter from the loop.

Marks of cuts (`truncation_marks`) that the rows know of are removed once the rows are on disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dataplane.storage.checkpoints import truncation_marks
from dataplane.storage.checkpoints.lines import Key, Lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dataplane.doors import Files
    from dataplane.storage.log import Log

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
START_OFFSETS = "log-start-offset-checkpoint"
CLEANED_TO = "cleaner-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
FILES = (RECOVERY_POINTS, START_OFFSETS, CLEANED_TO, HIGH_WATERMARKS)


class Changes(NamedTuple):
    """What is to be written: files with pieces of their contents, and marks that can go then, by the log's directory."""

    contents: dict[str, list[bytes]]
    marks: dict[str, tuple[str, ...]]


class CheckpointRows:
    """Of the logs below `home`."""

    def __init__(self, files: Files, home: str) -> None:
        self._files, self._home = files, home
        self._lines = {name: Lines() for name in FILES}
        self._changed: dict[str, None] = dict.fromkeys(FILES)  # the files may speak of logs of before that are gone
        self._marks: dict[str, tuple[str, ...]] = {}

    def note(self, key: Key, log: Log, high_watermark: int | None) -> None:
        """How it is with a log now. None: its high watermark is as noted before."""
        self._set(RECOVERY_POINTS, key, log.recovery_point)
        self._set(START_OFFSETS, key, log.start_offset or None)
        self._set(CLEANED_TO, key, log.cleaned_to or None)
        if high_watermark is not None:
            self._set(HIGH_WATERMARKS, key, high_watermark)
        if log.cut_marks:
            self._marks[log.directory] = log.cut_marks

    def forget(self, key: Key) -> None:
        """The log is gone."""
        for name in FILES:
            self._set(name, key, None)

    def _set(self, name: str, key: Key, offset: int | None) -> None:
        if self._lines[name].set(key, offset):
            self._changed[name] = None

    def stale(self) -> Iterator[tuple[Lines, int]]:
        """Blocks of lines that are to be joined before the next file is written; what is not, `take` does at once."""
        for name in self._changed:
            lines = self._lines[name]
            yield from [(lines, number) for number in lines.stale()]

    def take(self) -> Changes:
        """What has changed since the last time: to be written, or the directory has failed."""
        contents = {name: self._lines[name].pieces() for name in self._changed}
        changes = Changes(contents, self._marks)
        self._changed, self._marks = {}, {}
        return changes

    def write(self, changes: Changes) -> None:
        """Blocks: to be called in the background. Raises OSError."""
        for name, pieces in changes.contents.items():
            self._files.write_file(f"{self._home}/{name}", b"".join(pieces))
        for directory, names in changes.marks.items():
            truncation_marks.remove(self._files, directory, names)
