"""Since when the logs of this broker are whole: nothing that was written to them has been lost.

A killed process loses nothing that it had written: the machine's memory holds it until the disk does. A power cut, or a
panic of the kernel, loses what was not synced. Who elects leaders must know which of the two it was (KIP-966), and only
the broker that comes back can tell: every data directory holds a file that names

    since    the registration (broker epoch) since which nothing was lost
    memory   the memory that held what was not synced (`Files.memory`)

and what it says holds if the directory was closed in order, or if the memory is still the same. Otherwise, or with a
directory missing, the logs are whole only since the next registration, and that is written when it is known. A file that does not
hold goes at once: the broker may stop in order before it registers, and then it would be believed.

A disk that refuses ends all trust until the next start after this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from dataplane.storage.checkpoints import formats

if TYPE_CHECKING:
    from dataplane.doors import Files

FILE_NAME = "whole-since"


class UncleanLoss:
    """`since`: a broker epoch, or None until the registration."""

    def __init__(self, files: Files, homes: Sequence[str]) -> None:
        self.since: int | None = None
        self._files, self._homes = files, homes
        self._memory = files.memory()
        self._known: dict[str, int] = {}  # of directories that tell
        self._is_broken = False

    def found(self, home: str, *, in_order: bool) -> None:
        """A directory, and whether it was closed in order. What does not hold any more is forgotten. Raises OSError."""
        path = f"{home}/{FILE_NAME}"
        said = formats.read_properties(self._files, path)
        same_memory = self._memory != "" and said.get("memory") == self._memory
        since = said.get("since", "")
        if since.isdecimal() and (in_order or same_memory):
            self._known[home] = int(since)
        else:
            self._files.remove(path)
            self._files.sync_directory(home)

    def opened(self) -> None:
        """All directories that could be opened have been found."""
        if len(self._known) == len(self._homes) and not self._is_broken:
            self.since = max(self._known.values())  # what a directory that came later held before is not known
            self._write()

    def registered(self, broker_epoch: int) -> None:
        """From here on nothing has been lost yet."""
        if self.since is None and not self._is_broken:
            self.since = broker_epoch
            self._write()

    def broken(self) -> None:
        """A disk has refused: nobody knows what it has kept."""
        self.since, self._is_broken = None, True
        for home in self._homes:
            with suppress(OSError):
                self._files.remove(f"{home}/{FILE_NAME}")

    def _write(self) -> None:
        text = f"since={self.since}\nmemory={self._memory}\n".encode()
        try:
            for home in self._homes:
                self._files.write_file(f"{home}/{FILE_NAME}", text)
        except OSError:
            self.broken()
