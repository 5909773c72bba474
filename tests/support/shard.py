"""One part of a long run, for several processes side by side: `--shard 1/2` is the first of two."""

from __future__ import annotations

import argparse

Shard = tuple[int, int]
"""Which part, from 1, of how many."""

WHOLE: Shard = (1, 1)


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
