"""``python -m dataplane.apart``: a process that does one piece of work for a broker, and ends.

    broker                                       this process
    start          ---------------------------->
    work, bytes/s  ------- standard input ----->  works, no faster than that, and nice to others
                   <------ standard output -----  (True, result) or (False, error), pickled

A process for each piece of work, because pieces are rare and large: what it has used is given back, and nothing lives on
to go stale. The broker keeps the input open; when that ends, the broker has died or wants no answer, and this process
ends at once, wherever it is. So a broker that starts again never meets the work of its former life.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

NICENESS = 10
_LONGEST_DEBT_S = 0.05

Pace = Callable[[int], None]


class ApartError(Exception):
    """The process ended without an answer."""


def start() -> subprocess.Popen[bytes]:
    """A new process that waits for its work."""
    command = [sys.executable, "-m", "dataplane.apart"]
    home = str(Path(__file__).resolve().parent.parent)
    path = os.pathsep.join([home, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)  # noqa: S603 - ours


def ask(child: subprocess.Popen[bytes], work: Callable[[Pace], Any], bytes_per_s: float) -> Any:
    """Give it its work and wait for the answer. Raises what the work raised, ApartError."""
    assert child.stdin is not None
    assert child.stdout is not None
    with child:  # closes the pipes and waits for its end
        try:
            child.stdin.write(pickle.dumps((work, bytes_per_s)))
            child.stdin.flush()
        except BrokenPipeError:
            pass  # it ended: its answer, or that there is none, comes next
        answer = child.stdout.read()
    if not answer:
        raise ApartError(f"process {child.pid} ended with status {child.returncode}")
    succeeded, result = pickle.loads(answer)  # noqa: S301 - of our own child
    if not succeeded:
        raise result
    return result


class Pacer:
    """At most so many bytes in a second, over any time longer than a moment."""

    def __init__(
        self,
        bytes_per_s: float,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._seconds_per_byte = 1 / bytes_per_s
        self._now, self._sleep = now, sleep
        self._free_at = now()

    def __call__(self, count: int) -> None:
        """So many bytes were read or written: sleep as long as they take."""
        now = self._now()
        self._free_at = max(self._free_at, now) + count * self._seconds_per_byte
        if self._free_at - now > _LONGEST_DEBT_S:
            self._sleep(self._free_at - now)


def main() -> int:
    """One piece of work. The exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C is for the broker, which ends us
    os.nice(NICENESS)
    gc.disable()
    work, bytes_per_s = pickle.load(sys.stdin.buffer)  # noqa: S301 - of our own parent
    answers, sys.stdout = sys.stdout.buffer, sys.stderr
    threading.Thread(target=_end_with_the_broker, daemon=True).start()
    try:
        answer = (True, work(Pacer(bytes_per_s)))
    except Exception as error:  # noqa: BLE001 - the broker gets it
        answer = (False, error)
    answers.write(pickle.dumps(answer))
    answers.flush()
    return 0


def _end_with_the_broker() -> None:
    # Not by sys.stdin: its lock would keep the process from ending.
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
