"""One part of a long run, for several processes side by side: `--shard 1/2` is the first of two."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

Shard = tuple[int, int]
"""Which part, from 1, of how many."""

WHOLE: Shard = (1, 1)


class IncompleteError(Exception):
    """Parts that do not make a whole."""


def shard(text: str) -> Shard:
    """The `type` of an argument."""
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise argparse.ArgumentTypeError(f"{text} is no part")
    return int(number), int(count)


def suffix(part: Shard) -> str:
    """What tells the files of a part from those of another."""
    number, count = part
    return "" if count == 1 else f".{number}-of-{count}"


def all_parts(directory: Path, name: str) -> list[Path]:
    """The files that the parts of a run have left, `<name>.1-of-2.json` and so on. Raises IncompleteError: one is missing."""
    part = re.compile(rf"{re.escape(name)}\.\d+-of-(\d+)\.json")
    found = {path: match for path in sorted(directory.glob(f"{name}.*.json")) if (match := part.fullmatch(path.name))}
    counts = {int(match[1]) for match in found.values()}
    if len(counts) != 1 or len(found) != counts.pop():
        raise IncompleteError(f"there are {[path.name for path in found] or 'no parts'}")
    return list(found)
