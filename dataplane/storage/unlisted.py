"""Files whose names are not known to be on disk: their directory has not been synced since they were made.

Kept by directory: what one rename or removal costs must not grow with the files that others have made. Asked by the loop and by
threads that sync.
"""

from __future__ import annotations

import threading


class Unlisted:
    """Paths of files."""

    __slots__ = ("_lock", "_names")

    def __init__(self) -> None:
        self._names: dict[str, set[str]] = {}  # by directory
        self._lock = threading.Lock()

    def __contains__(self, path: str) -> bool:
        directory, _, name = path.rpartition("/")
        return name in self._names.get(directory, ())

    def __bool__(self) -> bool:
        return bool(self._names)

    def add(self, path: str) -> None:
        """A file is about to be made."""
        directory, _, name = path.rpartition("/")
        with self._lock:
            self._names.setdefault(directory, set()).add(name)

    def discard(self, path: str) -> None:
        """Its directory is synced, or it is gone."""
        directory, _, name = path.rpartition("/")
        with self._lock:
            names = self._names.get(directory)
            if names is not None:
                names.discard(name)
                if not names:
                    del self._names[directory]

    def move(self, old: str, new: str) -> None:
        """A file, or a directory with the files in it, has another name. Directories in it are not looked for: logs have none."""
        if old in self:
            self.discard(old)
            self.add(new)
        with self._lock:
            names = self._names.pop(old, None)
            if names:
                self._names.setdefault(new, set()).update(names)

    def below(self, path: str) -> list[tuple[str, frozenset[str]]]:
        """Directories that are `path` or lie below it, with the files in them."""
        deeper = path + "/"
        with self._lock:
            found = [each for each in self._names.items() if each[0] == path or each[0].startswith(deeper)]
            return [(directory, frozenset(names)) for directory, names in found]

    def forget(self, directory: str, names: frozenset[str]) -> None:
        """These of a directory are on disk."""
        for name in names:
            self.discard(f"{directory}/{name}")

    def remove(self, directory: str) -> None:
        """It is gone with all files in it."""
        with self._lock:
            self._names.pop(directory, None)
