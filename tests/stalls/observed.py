"""``python -m tests.stalls.observed broker.toml``: a broker that writes down its longer turns, each with its processor time.

A turn is a line of `broker.turns`, beside the configuration: when it ended (the monotonic clock, seconds), how long it took and
how long the loop's thread ran in it (milliseconds), how often the thread gave the processor away of its own accord, and the
account that had most of the turn.

What a turn took beyond what it ran, the thread stood still. Where it gave the processor away (it waited for another thread, or a
disk), that is the broker's doing. Where it did not, the processor was taken from it: by another program, or by the host of a
virtual machine, of which the kernel tells in steps of 10 ms only (`lost`). Turns in which that happened are written down, too.
So are those in which the thread waited for memory to be read in from a disk. That can only be the program itself, which a machine
may push out of memory: logs and their indexes are in memory here (`rig`).
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import dataplane.network.loop
from dataplane.__main__ import main
from dataplane.network.turns import Turns
from tests.stalls.pauses import Pause, Pauses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dataplane.network.accounts import Account

LONGER_THAN_S = 0.003
"""Those that nobody feels are not written down."""
TAKEN_S = 0.000_3
"""Nor those in which less was taken than this."""
_POLLED_S = 0.000_05
"""A thread that was longer than this between two turns may have slept there, which is one time more that it gave way."""
SUFFIX = ".turns"
_TAIL_BYTES = 2**20


class Turn(NamedTuple):
    """One that was written down."""

    ended_s: float
    took_ms: float
    ran_ms: float
    gave_way: int  # times; neither the sleep before the turn nor waits for the program itself are among them
    account: str  # "": the cluster itself

    @classmethod
    def parse(cls, line: str) -> Turn:
        ended, took, ran, gave_way, account = line.rstrip("\n").split("\t")
        return cls(float(ended), float(took), float(ran), int(gave_way), account)

    @property
    def taken_ms(self) -> float:
        """For which the machine took the processor away from the loop; 0 where the loop may have waited by itself."""
        return max(0.0, self.took_ms - self.ran_ms) if not self.gave_way else 0.0


class WrittenDown(Turns):
    """Turns as the loop counts them; the longer ones, and those in which the processor was taken away, in a file."""

    __slots__ = ("_ended_s", "_gave_way", "_ran_s")
    path = Path()

    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__(report)
        self._ended_s = 0.0
        self._go_on()

    def ended(self, now: float, seconds: float, most: Account | None) -> None:
        ran_s = time.thread_time() - self._ran_s
        if seconds > LONGER_THAN_S or seconds - ran_s > TAKEN_S:
            slept = now - seconds - self._ended_s > _POLLED_S
            turn = (
                f"{now:.6f}",
                f"{seconds * 1e3:.3f}",
                f"{ran_s * 1e3:.3f}",
                f"{max(0, _gave_way() - self._gave_way - slept)}",
                most.name if most else "",
            )
            with self.path.open("a") as file:
                file.write("\t".join(turn) + "\n")
        self._ended_s = now
        self._go_on()
        super().ended(now, seconds, most)

    def _go_on(self) -> None:
        self._ran_s, self._gave_way = time.thread_time(), _gave_way()


def _gave_way() -> int:
    """How often this thread has, since it began. Waits for memory to be read in do not count."""
    used = resource.getrusage(resource.RUSAGE_THREAD)
    return used.ru_nvcsw - used.ru_majflt


def turns_since(path: Path, since_s: float) -> list[Turn]:
    """Of the file of one broker; none where it has written nothing yet."""
    if not path.exists():
        return []
    with path.open("rb") as file:
        start = max(0, path.stat().st_size - _TAIL_BYTES)
        file.seek(start)
        lines = file.read().decode().splitlines(keepends=True)
    whole = [
        line for line in lines[bool(start) :] if line.endswith("\n")
    ]  # the first may have been cut, the last be under way
    return [turn for turn in map(Turn.parse, whole) if turn.ended_s > since_s]


def pauses_of(turns: Iterable[Turn]) -> Pauses:
    """Of the loop."""
    return Pauses(
        Pause(turn.ended_s - turn.took_ms / 1000, turn.ended_s, turn.taken_ms) for turn in turns if turn.taken_ms
    )


if __name__ == "__main__":
    WrittenDown.path = Path(sys.argv[1]).with_suffix(SUFFIX)
    dataplane.network.loop.Turns = WrittenDown  # type: ignore[misc]
    sys.exit(main(sys.argv[1:]))
