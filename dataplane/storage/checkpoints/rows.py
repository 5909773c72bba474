"""The checkpoints of one data directory: for each of its logs, offsets that a start goes by.

    recovery-point-offset-checkpoint     up to where each log is known to be on disk
    log-start-offset-checkpoint          where logs begin that do not begin at 0
    cleaner-offset-checkpoint            up to where they are compacted
    replication-offset-checkpoint        high watermarks

Logs are noted one by one, at any time, and only what differs from what was noted before costs anything; a file is written
when something in it has changed. So an idle broker writes nothing, ten thousand logs can be looked at in slices, and the
thread that writes gets finished bytes: formatting there would take the interpreter from the loop.

Marks of cuts (`truncation_marks`) that the rows know of are removed once the rows are on disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dataplane.storage.checkpoints import formats, truncation_marks

if TYPE_CHECKING:
    from dataplane.doors import Files
    from dataplane.storage.log import Log

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
START_OFFSETS = "log-start-offset-checkpoint"
CLEANED_TO = "cleaner-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
FILES = (RECOVERY_POINTS, START_OFFSETS, CLEANED_TO, HIGH_WATERMARKS)

Key = tuple[str, int]


class Changes(NamedTuple):
    """What is to be written: file names and contents, and marks that can go then, by directory of the log."""

    contents: dict[str, bytes]
    marks: dict[str, tuple[str, ...]]


class CheckpointRows:
    """Of the logs below `home`."""

    def __init__(self, files: Files, home: str) -> None:
        self._files, self._home = files, home
        self._offsets: dict[str, dict[Key, int]] = {name: {} for name in FILES}
        self._lines: dict[str, dict[Key, bytes]] = {name: {} for name in FILES}
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
        offsets = self._offsets[name]
        if offsets.get(key) == offset:
            return
        self._changed[name] = None
        if offset is None:
            del offsets[key], self._lines[name][key]
        else:
            offsets[key] = offset
            self._lines[name][key] = f"{key[0]} {key[1]} {offset}".encode()

    def take(self) -> Changes:
        """What has changed since the last time: to be written, or the directory has failed."""
        contents = {name: formats.content(list(self._lines[name].values())) for name in self._changed}
        changes = Changes(contents, self._marks)
        self._changed, self._marks = {}, {}
        return changes

    def write(self, changes: Changes) -> None:
        """Blocks: to be called in the background. Raises OSError."""
        for name, content in changes.contents.items():
            self._files.write_file(f"{self._home}/{name}", content)
        for directory, names in changes.marks.items():
            truncation_marks.remove(self._files, directory, names)
