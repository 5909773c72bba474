"""A log moves from one data directory to another while it is used: where its copy is, and how it takes the log's place.

    <topic>-<partition>.<n>-future     a copy that is being made; what a start finds of it is thrown away
    <topic>-<partition>.moved          a copy that is whole and on disk: it takes the log's place if the log is gone

The change of places is three renames, each on disk before the next: the copy is declared whole, the log goes away, the
copy takes the name. So at any moment either the log is there, and is what counts, or the whole copy is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dataplane.doors import Files

FUTURE = "-future"
MOVED = ".moved"
DOOMED = ".delete"


def home_of(directory: str) -> str:
    """The data directory that a log is in."""
    return directory.rpartition("/")[0]


def new_future(files: Files, home: str, directory: str) -> str:
    """An empty directory in `home` for the copy of the log in `directory`. Raises OSError."""
    path = unused(files, f"{home}/{directory.rpartition('/')[2]}", FUTURE)
    files.make_directory(path)
    return path


def take_place(files: Files, future: str, directory: str) -> tuple[str, str]:
    """The copy in `future`, closed and on disk, takes the place of the log in `directory`. Raises OSError.

    Returns where the log is now, and the directory that can be removed.
    """
    home, name = home_of(future), directory.rpartition("/")[2]
    moved, final = f"{home}/{name}{MOVED}", f"{home}/{name}"
    files.remove_tree(moved)
    files.sync_directory(future)
    _rename(files, future, moved)
    doomed = unused(files, directory, DOOMED)
    _rename(files, directory, doomed)
    _rename(files, moved, final)
    return final, doomed


def settle(files: Files, homes: Iterable[str]) -> list[str]:
    """After a start, before logs are opened: finish what was whole; returns what can be removed. Raises OSError."""
    listed = [(home, name) for home in homes for name in files.list(home)]
    present = {name: None for _, name in listed}
    doomed = [f"{home}/{name}" for home, name in listed if name.endswith(FUTURE)]
    for home, name in listed:
        if name.endswith(MOVED):
            wanted = name.removesuffix(MOVED)
            if wanted in present:
                doomed.append(f"{home}/{name}")
            else:
                _rename(files, f"{home}/{name}", f"{home}/{wanted}")
    return doomed


def unused(files: Files, path: str, suffix: str) -> str:
    """`path`.<n>`suffix` that does not exist."""
    number = 0
    while files.exists(found := f"{path}.{number}{suffix}"):
        number += 1
    return found


def _rename(files: Files, old: str, new: str) -> None:
    files.rename(old, new)
    files.sync_directory(home_of(new))
