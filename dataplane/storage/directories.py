"""The data directories of a broker: which are in use, and which the disk has taken away.

A directory belongs to one broker (`meta.properties`) and is locked for this process (`.lock`), so that two never write to
the same logs; a mark (`.kafka_cleanshutdown`) stands between an orderly stop and the next start. The first error of the
disk on anything in it takes the whole directory *offline* until the broker starts again: what a disk that fails now and
then holds is known only to recovery. Its logs fail, the other directories go on. Whoever must act (partitions, the
controller) listens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dataplane.storage.checkpoints import formats
from dataplane.storage.checkpoints.formats import MetadataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dataplane.doors import Files

LOCK = ".lock"
META = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"

Failed = Callable[[str, str], None]
"""(directory, error)"""


class DirectoryInUseError(MetadataError):
    """Another process has the directory; the text names it."""


class NoDirectoryError(MetadataError):
    """None of the directories can be used; the text says why."""


class Directories:
    """All data directories, in the order of the configuration. `owner`: the broker whose they are, or become."""

    def __init__(self, files: Files, paths: Sequence[str], owner: int) -> None:
        self._files, self._owner = files, owner
        self._errors: dict[str, str | None] = dict.fromkeys(paths)
        self._listeners: list[Failed] = []

    def all(self) -> list[tuple[str, str | None]]:
        """Path, and the error that took it offline or None."""
        return list(self._errors.items())

    def online(self) -> list[str]:
        """Those in use."""
        return [path for path, error in self._errors.items() if error is None]

    def has_failed(self, path: str) -> bool:
        """Whether it is offline."""
        return self._errors[path] is not None

    def any_failed(self) -> bool:
        """Whether one is offline: then what is not here may be there."""
        return any(error is not None for error in self._errors.values())

    def on_failure(self, callback: Failed) -> None:
        """Hear of a directory that goes offline, once, from within whatever met the error."""
        self._listeners.append(callback)

    def fail(self, path: str, error: OSError) -> None:
        """The disk has refused something below `path`."""
        if self._errors[path] is None:
            text = self._errors[path] = sentence(error)
            for listener in self._listeners:
                listener(path, text)

    def claim(self, path: str) -> None:
        """Ours, this process's until it ends or `unlock_all`. Raises MetadataError where it is another's, OSError."""
        self._files.make_directory(path)
        self._lock(path)
        meta = f"{path}/{META}"
        owner = formats.read_properties(self._files, meta).get("broker.id")
        if owner is None:
            self._files.write_file(meta, f"version=0\nbroker.id={self._owner}\n".encode())
        elif owner != str(self._owner):
            raise MetadataError(f"{meta} belongs to broker {owner}, not {self._owner}")

    def _lock(self, path: str) -> None:
        try:
            self._files.lock(f"{path}/{LOCK}")
        except BlockingIOError as error:
            raise DirectoryInUseError(
                f"{path} is in use by another process: is this broker running already?"
            ) from error

    def take_clean_mark(self, path: str) -> bool:
        """Whether the logs in it were closed in order. Said once: a crash from here on is one. Raises OSError."""
        mark = f"{path}/{CLEAN_SHUTDOWN}"
        found = self._files.exists(mark)
        self._files.remove(mark)  # before anything is written
        self._files.sync_directory(path)
        return found

    def mark_clean(self, path: str) -> None:
        """They are closed in order, and all is on disk. Raises OSError."""
        self._files.write_file(f"{path}/{CLEAN_SHUTDOWN}", b'{"version":0,"brokerEpoch":-1}')

    def unlock_all(self) -> None:
        """The logs are closed."""
        for path in self._errors:
            self._files.unlock(f"{path}/{LOCK}")

    def check(self) -> None:
        """Raise NoDirectoryError where nothing is left to start with."""
        if not self.online():
            reasons = "; ".join(f"{path}: {error}" for path, error in self._errors.items())
            raise NoDirectoryError(f"none of the data directories can be used ({reasons})")


def sentence(error: OSError) -> str:
    """What the system says, in words."""
    return str(error.strerror or error)
