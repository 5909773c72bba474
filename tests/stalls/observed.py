"""``python -m tests.stalls.observed broker.toml``: a broker that writes down its longer turns, each with its processor time.

A turn is a line of `broker.turns`, beside the configuration: when it ended (the monotonic clock, seconds), how long it took and
how long the loop's thread ran in it (milliseconds), and the account that had most of it. What it took beyond what it ran it stood
still: for the machine, for another thread, or for a disk.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import dataplane.network.loop
from dataplane.__main__ import main
from dataplane.network.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.network.accounts import Account

LONGER_THAN_S = 0.003
"""Those that nobody feels are not written down."""
SUFFIX = ".turns"
_TAIL_BYTES = 2**20


class Turn(NamedTuple):
    """One that was written down."""

    ended_s: float
    took_ms: float
    ran_ms: float
    account: str  # "": the cluster itself

    @classmethod
    def parse(cls, line: str) -> Turn:
        ended, took, ran, account = line.rstrip("\n").split("\t")
        return cls(float(ended), float(took), float(ran), account)


class WrittenDown(Turns):
    """Turns as the loop counts them, the longer ones in a file."""

    __slots__ = ("_ran_s",)
    path = Path()

    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__(report)
        self._ran_s = time.thread_time()

    def ended(self, now: float, seconds: float, most: Account | None) -> None:
        ran_s = time.thread_time()
        if seconds > LONGER_THAN_S:
            turn = (
                f"{now:.6f}",
                f"{seconds * 1e3:.3f}",
                f"{(ran_s - self._ran_s) * 1e3:.3f}",
                most.name if most else "",
            )
            with self.path.open("a") as file:
                file.write("\t".join(turn) + "\n")
            ran_s = time.thread_time()
        self._ran_s = ran_s
        super().ended(now, seconds, most)


def turns_since(path: Path, since_s: float) -> list[Turn]:
    """Of the file of one broker; none where it has written nothing yet."""
    if not path.exists():
        return []
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        lines = file.read().decode().splitlines()
    turns = [Turn.parse(line) for line in lines if line.count("\t") == 3]  # the first may have been cut
    return [turn for turn in turns if turn.ended_s > since_s]


if __name__ == "__main__":
    WrittenDown.path = Path(sys.argv[1]).with_suffix(SUFFIX)
    dataplane.network.loop.Turns = WrittenDown  # type: ignore[misc]
    sys.exit(main(sys.argv[1:]))
