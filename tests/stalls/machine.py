"""What the system says of a process: processor time, time spent waiting for a processor, memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

_SPIN = """
import ctypes, os, signal
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
while True:
    pass
"""
"""It ends with its parent (PR_SET_PDEATHSIG)."""


class Used(NamedTuple):
    """Of one thread, or of several together, since their beginning."""

    ran_ms: float
    waited_ms: float  # ready to run, while others did

    def since(self, before: Used) -> Used:
        return Used(self.ran_ms - before.ran_ms, self.waited_ms - before.waited_ms)


def give_way(thread: int = 0) -> None:
    """Run only where nobody else wants to (SCHED_IDLE), where what this process does would be done by another machine.

    A lower `nice` is not enough: Linux lets a thread that runs finish its slice of up to 3 ms, however little it counts.
    """
    os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))


def make_give_way(pid: int) -> None:
    """The same of another process: of all threads that it has, and so of those that they will begin."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(ProcessLookupError):  # it has ended
            give_way(int(thread.name))


@contextmanager
def giving_way() -> Iterator[None]:
    """`give_way` for a while."""
    give_way()
    try:
        yield
    finally:
        with suppress(PermissionError):  # where the system lets nobody go back, it stays so
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


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


_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_STEAL = 8
"""The field of a processor's line in /proc/stat, behind its name."""


def stolen_s(stat: str) -> tuple[float, ...]:
    """For how long the host took each processor away, of the text of /proc/stat; since the machine began, in steps of 10 ms."""
    lines = (line.split() for line in stat.splitlines())
    return tuple(int(line[_STEAL]) * _TICK_S for line in lines if line[0].startswith("cpu") and line[0] != "cpu")


class Stolen:
    """How much of the processors the host has taken away since this was made."""

    def __init__(self) -> None:
        self._before, self._began = self._read(), time.monotonic()

    def percent(self) -> float:
        """Of all processors together."""
        gone = sum(now - then for now, then in zip(self._read(), self._before, strict=True))
        return 100 * gone / (len(self._before) * max(time.monotonic() - self._began, 1e-3))

    @staticmethod
    def _read() -> tuple[float, ...]:
        return stolen_s(Path("/proc/stat").read_text())


class Busy:
    """As many idle-priority processes as there are processors, which run between `__enter__` and `__exit__` only.

    They take nothing from anybody here. But a host takes a processor away from a guest that uses it: a row, with its aggressor,
    is measured on processors that are never idle, and so a window alone has to be.
    """

    def __init__(self) -> None:
        self._processes = [subprocess.Popen([sys.executable, "-c", _SPIN]) for _ in range(os.cpu_count() or 1)]
        self.__exit__()

    def __enter__(self) -> None:
        self._signal(signal.SIGCONT)

    def __exit__(self, *_: object) -> None:
        self._signal(signal.SIGSTOP)

    def close(self) -> None:
        """End them."""
        self._signal(signal.SIGKILL)
        for process in self._processes:
            process.wait()

    def _signal(self, number: signal.Signals) -> None:
        for process in self._processes:
            process.send_signal(number)
