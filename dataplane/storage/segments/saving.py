"""Writing the index files of one segment: one writer at a time, and nothing older over what is newer.

A segment that ended is written by its log, and one whose descriptors were wanted by `descriptors`: in threads of the background,
at times two at once. They would meet in the file beside the one that is replaced. So would those of two segments of one name: one
that was cut off while its indexes were being written, and the one that the log begins there anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.storage.presence import Presence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Write = Callable[[str, bytes], None]
    Remove = Callable[[str], None]


class Saves:
    """What is to be written of one segment. All but the work that `saver` returns is for the loop."""

    __slots__ = ("_before", "_made", "_presence", "_written", "is_writing", "void", "void_on_disk")

    def __init__(self, before: Saves | None = None) -> None:
        """`before`: of a segment that had the name, and has left the log while something was being written of it."""
        self._before = before
        self._presence = Presence()  # one at a time
        self._made = 0
        self._written: dict[str, int] = {}  # path: the number of the work that wrote it last
        self.is_writing = False
        # Changes under the files: what was packed before must not be written any more. What `before` still writes is one.
        self.void = 0 if before is None else 1
        self.void_on_disk = 0  # after so many of them the files that were removed do not come back with a power cut

    def saver(self, contents: Sequence[tuple[str, bytes]], write: Write, remove: Remove) -> Callable[[], bool]:
        """Work that brings the files to these contents or newer ones. It raises OSError.

        It may come after the log was cut, removed or closed: then it leaves no file, and returns False.
        """
        self._made += 1
        number, void = self._made, self.void

        def save() -> bool:
            self.is_writing = True  # before it is seen whether anything has changed: see `drop`
            try:
                self._wait_for_before()
                return self._write(contents, number, void, write, remove)
            finally:
                self.is_writing = False

        return lambda: bool(self._presence.run(save))

    def _write(
        self, contents: Sequence[tuple[str, bytes]], number: int, void: int, write: Write, remove: Remove
    ) -> bool:
        written = []
        for path, content in contents:
            if void != self.void:
                break
            if self._written.get(path, 0) < number:
                write(path, content)
                self._written[path] = number
                written.append(path)
        if void != self.void:  # while we wrote: without its files an index is built from the log
            for path in written:
                remove(path)
            return False
        return True

    def end(self, *, waits: bool = True) -> None:
        """The log is closed, or goes: what is being written is waited for, and nothing is written any more.

        Its directory may soon be another log's, of the same name. Where that cannot be, nobody need wait (`waits`).
        """
        self._presence.end(waits=waits)

    def drop(self, *, waits: bool = True) -> bool:
        """As `end`, where the files go: of those that are being written the first is the last, and is removed again.

        Whether anything is being written still, which cannot be where it was waited for.
        """
        self.void += 1  # first: whoever begins from here on sees it, and who had begun before says so
        self._presence.end(waits=waits)
        return self.is_writing

    def is_busy(self) -> bool:
        """Whether anything is being written under the name."""
        before = self._before  # a thread may be done with it
        return self.is_writing or (before is not None and before.is_busy())

    def settle(self, void: int, sync_names: Callable[[], None]) -> None:
        """What was removed up to then is gone from the disk. For the background. Raises OSError.

        What is being written is waited for: it may be out of date, and is removed only when it has been written. Also of a
        segment that has left its log since: whoever asked takes the log for settled, and its file may come back as well.
        """
        self.wait()
        sync_names()
        self.void_on_disk = max(self.void_on_disk, void)

    def wait(self) -> None:
        """Until what is being written under the name is. For the background."""
        self._presence.run(lambda: None)
        before = self._before  # another thread may be done with it
        if before is not None:
            before.wait()

    def _wait_for_before(self) -> None:
        if self._before is not None:
            self._before.wait()
            self._before = None
