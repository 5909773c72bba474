"""Marks that a log was cut below what the checkpoints of its data directory say of it.

The checkpoints hold an offset up to which a log is on disk, and where it starts. They are written now and then, for all
logs together. A log that is cut, or begins again, below such an offset and is then written on would make them lie: what
they call known to be on disk is not, what they call deleted is new. So before the cut a mark is written in the log's own
directory,

    <number>.cut        the offset of the cut, in digits

and after a start that follows no orderly stop the checkpoints' offsets count only up to the lowest mark. The next
checkpoint, which knows of the cut, removes the marks that it knows of. A cut above both offsets (nearly all are) writes
none.

Where the power goes after the mark and before the cut, a log that was to be cut below its start is whole again, and what was
deleted in the segment where it began is there again: nothing says whether that is old or was written since. Only a follower whose
leader was elected uncleanly cuts there. It asks that leader before it goes on, cuts again, and takes the start from it.

A checkpoint may still be on its way when a log is deleted and one of the same name is made. What it says is of the former
log, and it removes the former's marks: so no mark of the new one has a number that a former one's had.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dataplane.doors import Files

SUFFIX = ".cut"


def read(files: Files, directory: str) -> tuple[list[str], int | None]:
    """The marks there are, and the lowest offset; a mark that cannot be read is as low as can be. Raises OSError."""
    names = [name for name in files.list(directory) if name.endswith(SUFFIX)]
    offsets = [_offset(files.read_file(f"{directory}/{name}")) for name in names]
    return names, min(offsets, default=None)


def write(files: Files, directory: str, known: Iterable[str], offset: int, *, above: int = 0) -> str:
    """A new mark beside those known, with a number `above` another; its name. On disk when this returns. Raises OSError."""
    name = next_name(known, above)
    files.write_file(f"{directory}/{name}", content(offset))
    return name


def next_name(known: Iterable[str], above: int = 0) -> str:
    """Of a mark beside those known, with a number above another."""
    return f"{max(above, highest(known)) + 1}{SUFFIX}"


def content(offset: int) -> bytes:
    """Of a mark."""
    return str(offset).encode()


def highest(names: Iterable[str]) -> int:
    """The highest number of marks; 0 when there are none."""
    return max((int(name.removesuffix(SUFFIX)) for name in names), default=0)


def remove(files: Files, directory: str, names: Iterable[str]) -> None:
    """The checkpoints know better now. On disk when this returns. Raises OSError."""
    if not files.exists(directory):
        return  # the log was deleted meanwhile
    for name in names:
        files.remove(f"{directory}/{name}")
    files.sync_directory(directory)


def _offset(data: bytes) -> int:
    return int(data) if data.isdigit() else 0
