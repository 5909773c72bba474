"""Something that one process does at a time, whichever worker of a run of tests comes first.

with alone(folder / "fetching.lock", within_s=60):
    ...

Whoever waits longer than that gets a TimeoutError. The lock ends with its process.
"""

from __future__ import annotations

import fcntl
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAUSE_S = 0.2


@contextmanager
def alone(lock: Path, within_s: float) -> Iterator[None]:
    """Hold the lock. Raises TimeoutError."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + within_s
    with lock.open("a") as held:
        while True:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{lock} was held for {within_s:.0f} s") from None
            time.sleep(PAUSE_S)
        yield
