"""Writing the index files of one segment: one writer at a time, and nothing older over what is newer.

A segment that ended is written by its log, and one whose descriptors were wanted by `descriptors`: in threads of the background,
at times two at once. They would meet in the file beside the one that is replaced.
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

    __slots__ = ("_made", "_presence", "_written", "void", "void_on_disk")

    def __init__(self) -> None:
        self._presence = Presence()  # one at a time
        self._made = 0
        self._written: dict[str, int] = {}  # path: the number of the work that wrote it last
        self.void = 0  # changes under the files: what was packed before must not be written any more
        self.void_on_disk = 0  # after so many of them the files that were removed do not come back with a power cut

    def saver(self, contents: Sequence[tuple[str, bytes]], write: Write, remove: Remove) -> Callable[[], bool]:
        """Work that brings the files to these contents or newer ones. It raises OSError.

        It may come after the log was cut, removed or closed: then it leaves no file, and returns False.
        """
        self._made += 1
        number, void = self._made, self.void

        def save() -> bool:
            if void != self.void:
                return False
            for path, content in contents:
                if self._written.get(path, 0) < number:
                    write(path, content)
                    self._written[path] = number
            if void != self.void:  # while we wrote: without its files an index is built from the log
                for path, _ in contents:
                    remove(path)
                return False
            return True

        return lambda: bool(self._presence.run(save))

    def end(self) -> None:
        """The log is closed, or goes: what is being written is waited for, and nothing is written any more.

        Its directory may soon be another log's, of the same name.
        """
        self._presence.end()

    def settle(self, void: int, sync_names: Callable[[], None]) -> None:
        """What was removed up to then is gone from the disk. For the background. Raises OSError."""
        sync_names()
        self.void_on_disk = max(self.void_on_disk, void)
