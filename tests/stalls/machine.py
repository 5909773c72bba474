"""What the system says of a process: processor time, time spent waiting for a processor, memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

_LESS_RIGHT = 10
"""In steps of `nice`."""


class Used(NamedTuple):
    """Of one thread, or of several together, since their beginning."""

    ran_ms: float
    waited_ms: float  # ready to run, while others did

    def since(self, before: Used) -> Used:
        return Used(self.ran_ms - before.ran_ms, self.waited_ms - before.waited_ms)


@contextmanager
def giving_way() -> Iterator[None]:
    """Run with less right to a processor than others, where what this process does would be done by another machine."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, before + _LESS_RIGHT)
    try:
        yield
    finally:
        with suppress(PermissionError):  # without privileges there is no way back: it stays so
            os.setpriority(os.PRIO_PROCESS, 0, before)


def used(pid: int | str, *, whole: bool = False) -> Used:
    """Of the main thread, which is a broker's loop; or of all threads that there are now."""
    threads = Path(f"/proc/{pid}/task").iterdir() if whole else [Path(f"/proc/{pid}/task/{pid}")]
    ran = waited = 0
    for thread in threads:
        with suppress(FileNotFoundError, ProcessLookupError):
            fields = (thread / "schedstat").read_text().split()
            ran, waited = ran + int(fields[0]), waited + int(fields[1])
    return Used(ran / 1e6, waited / 1e6)


def forget_peak(pid: int) -> None:
    """Begin to look for the most memory anew, where the system lets us."""
    with suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_mib(pid: int) -> float:
    """The most memory that the process held."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def loop_figures(broker: Any, since_s: float = 0.0) -> dict[str, float] | None:
    """What a broker itself says of its loop since a moment of the monotonic clock: `longest_turn_ms`.

    None: it says nothing, and the probe is what there is.
    """
    del broker, since_s
    return None
