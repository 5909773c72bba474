"""New segments take the place of old ones, so that a crash between any two steps leaves the one or the other.

    <base>.log.cleaned, .index.cleaned, and so on     written and synced by the job; of no meaning yet
    <base>.<last>.swap                1. the new log, renamed: from here on it counts
    <base>.log … <last>.log           2. the old ones go, with their indexes
    <base>.log                        3. the new one has its name
    <base>.txnindex, .timeindex, .index    4. and its indexes; the first only where something in it was aborted

`<last>` is the base offset of the last segment that is replaced, so that recovery knows which those are also where the new
one ends early. At open whatever is `.cleaned` is dropped, and a `.swap` is carried through; indexes that were left behind
are built again. A power cut may lose the newest of these steps: what is replaced is therefore given back only when the
directory is synced. Groups are swapped oldest first: a tombstone may go only when what it deletes has gone.

A new segment may end before the next one begins: `marker` keeps recovery from taking that for damage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.storage.segments.batch_file import (
    ABORTED_INDEX,
    INDEX,
    LOG,
    TIME_INDEX,
    segment_name,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dataplane.doors import Files

CLEANED = ".cleaned"
SWAP = ".swap"
_NAME_DIGITS = 20
_INDEXES = (ABORTED_INDEX, TIME_INDEX, INDEX)
"""In this order: where the last is found, none is missing."""


def write_synced(files: Files, path: str, content: bytes) -> None:
    """A new file with this content, on disk."""
    file = files.open(path, create=True)
    if content:
        file.append([content])
    file.sync()


def swap_in(
    files: Files, directory: str, base: int, old: Sequence[int], doomed: str, *, has_aborted: bool
) -> list[str]:
    """Put the new segment `base` in place of the old ones; returns what is to be removed, in the background. OSError."""
    swap = f"{directory}/{segment_name(base)}.{segment_name(old[-1])}{SWAP}"
    final = f"{directory}/{segment_name(base)}"
    files.rename(final + LOG + CLEANED, swap)
    gone = []
    for offset in old:
        path = f"{directory}/{segment_name(offset)}"
        for kind in _INDEXES:
            files.remove(path + kind)
        files.rename(path + LOG, path + LOG + doomed)
        gone.append(path + LOG + doomed)
    files.rename(swap, final + LOG)
    for kind in _INDEXES:
        if kind != ABORTED_INDEX or has_aborted:
            files.rename(final + kind + CLEANED, final + kind)
    return gone


def settle(files: Files, directory: str, names: Sequence[str]) -> bool:
    """After a stop: drop what was not finished, finish what counts already. Returns whether names have changed."""
    drop_cleaned(files, directory, names)
    swaps = [name for name in names if name.endswith(SWAP)]
    for name in swaps:
        base, _, last = name[: -len(SWAP)].partition(".")
        for old in names:
            offset = old[:_NAME_DIGITS]
            if old.endswith((LOG, *_INDEXES)) and base <= offset <= last:
                files.remove(f"{directory}/{old}")
        files.rename(f"{directory}/{name}", f"{directory}/{base}{LOG}")
    return bool(swaps) or any(name.endswith(CLEANED) for name in names)


def drop_cleaned(files: Files, directory: str, names: Sequence[str]) -> None:
    """What a job has left behind."""
    for name in names:
        if name.endswith(CLEANED):
            files.remove(f"{directory}/{name}")
