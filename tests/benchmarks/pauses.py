"""When the whole machine stood still, as seen by processes of the highest priority that do nothing but sleep.

A virtual machine that has used up its share of its host is stopped, all processors together, for tens of milliseconds: a
latency measured across such a pause says nothing of the software. One process sits on each processor; what makes all of
them late at the same time was the machine. (What holds up one processor only is not counted as a pause.)
"""

from __future__ import annotations

import multiprocessing
import os
import time
from typing import Any, NamedTuple, Self

from tests.benchmarks.latency import Sample

SLEEP_S = 0.002
LATE_S = 0.002
_PRIORITY = 90


class Pause(NamedTuple):
    """Monotonic seconds."""

    began_s: float
    ended_s: float


def may_watch() -> bool:
    """Whether this process has the right to real-time priority."""
    before, usual = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    except PermissionError:
        return False
    os.sched_setscheduler(0, before, usual)
    return True


class Pauses:
    """Watches from entering the context until `stop`; needs the right to real-time priority (`may_watch`)."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._watchers = []
        for cpu in sorted(os.sched_getaffinity(0)):
            ours, theirs = context.Pipe()
            self._watchers.append((context.Process(target=_watch, args=(cpu, theirs), daemon=True), ours))

    def __enter__(self) -> Self:
        for process, _ in self._watchers:
            process.start()
        return self

    def stop(self) -> list[Pause]:
        """The pauses until now."""
        seen = []
        for process, pipe in self._watchers:
            pipe.send(None)
            seen.append(pipe.recv())
            process.join()
        common = seen[0]
        for others in seen[1:]:
            common = _common(common, others)
        return [Pause(*span) for span in common]

    def __exit__(self, *exception: object) -> None:
        for process, _ in self._watchers:
            if process.is_alive():
                process.kill()
            process.join()


def _watch(cpu: int, pipe: Any) -> None:
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    late: list[tuple[float, float]] = []
    while not pipe.poll():
        due = time.monotonic() + SLEEP_S
        time.sleep(SLEEP_S)
        now = time.monotonic()
        if now - due > LATE_S:
            late.append((due, now))
    pipe.send(late)


def _common(some: list[tuple[float, float]], others: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The times in both of two ascending lists."""
    found = []
    place = 0
    for began, ended in some:
        while place < len(others) and others[place][1] <= began:
            place += 1
        for other_began, other_ended in others[place:]:
            if other_began >= ended:
                break
            found.append((max(began, other_began), min(ended, other_ended)))
    return found


def outside(samples: list[Sample], pauses: list[Pause]) -> list[Sample]:
    """Those that were on their way in no pause. Both in the order of time."""
    found, place = [], 0
    for sample in samples:
        while place < len(pauses) and pauses[place].ended_s < sample.made_s:
            place += 1
        if place == len(pauses) or pauses[place].began_s > sample.made_s + sample.took_ms / 1000:
            found.append(sample)
    return found
