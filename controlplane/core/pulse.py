"""Whether anything is done in the background: when a worker was heard last.

Beat sends a message every two seconds, and the worker that gets it writes the moment down, in one row. So it is old where
beat, Redis or all workers are away: whichever it is, what is asked for waits. A worker that is busy does not get the message,
and is not away: a thread of its process writes the moment down as often (`Busy`), unless one task takes so long that it may
never end. A release that has never had a worker has no row, and nothing is said of it: nobody has missed anything yet. The row
is made by a message of beat's alone: while beat is of an earlier release there is nobody to renew it between tasks.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic

from django.db import connection

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.models import WorkerPulse

LOG = logging.getLogger(__name__)
EVERY_S = 2.0
BUSY_AT_MOST_S = 300.0
"""A task that takes longer is no sign of life: nobody knows whether it hangs."""
AWAY_AFTER = timedelta(seconds=7)
"""Three pulses that did not come, and the time that a page takes: within ten seconds it is said."""
_ONLY = 1


def pulse_note(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """A worker is there."""
    now = clock.now()
    if not WorkerPulse.objects.filter(pk=_ONLY).update(seen_at=now):
        WorkerPulse.objects.bulk_create([WorkerPulse(pk=_ONLY, seen_at=now)], ignore_conflicts=True)


def pulse_renew(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """A worker is still there, if one ever was heard."""
    WorkerPulse.objects.filter(pk=_ONLY).update(seen_at=clock.now())


def worker_seen_at() -> datetime | None:
    """When one was heard last; None: never."""
    return WorkerPulse.objects.filter(pk=_ONLY).values_list("seen_at", flat=True).first()


@dataclass(frozen=True, slots=True)
class Heard:
    """What the pulse says: since when no worker is heard; None: one is, or none ever was."""

    away_since: datetime | None


def heard(*, clock: Clock = SYSTEM_CLOCK) -> Heard:
    """For who asks more than one thing of it."""
    return Heard(away_since(clock=clock))


def away_since(*, clock: Clock = SYSTEM_CLOCK) -> datetime | None:
    """Since when no worker is heard; None: one is, or none ever was."""
    seen_at = worker_seen_at()
    return seen_at if seen_at is not None and clock.now() - seen_at > AWAY_AFTER else None


class Busy:
    """The tasks that this process runs, and a thread that says that a worker is there while it runs any."""

    def __init__(self) -> None:
        self._began_s: dict[str, float] = {}  # by the task's id
        self._is_over = threading.Event()

    def begun(self, task_id: str) -> None:
        """A task begins."""
        self._began_s[task_id] = monotonic()

    def ended(self, task_id: str) -> None:
        """It is over, however it went."""
        self._began_s.pop(task_id, None)

    def is_busy(self) -> bool:
        """Whether any task runs that has not run for too long."""
        since_s = monotonic() - BUSY_AT_MOST_S
        return any(began_s > since_s for began_s in list(self._began_s.values()))

    def watch(self, every_s: float = EVERY_S) -> threading.Thread:
        """The thread, from now until `stop` or the end of the process. To be called after a fork, not before."""
        thread = threading.Thread(target=self._watch, args=(every_s,), name="pulse of a busy worker", daemon=True)
        thread.start()
        return thread

    def stop(self) -> None:
        """The thread ends before it says anything more."""
        self._is_over.set()

    def _watch(self, every_s: float) -> None:
        while not self._is_over.wait(every_s):
            if self.is_busy():
                self._note()

    def _note(self) -> None:
        try:
            try:
                pulse_renew()
            finally:
                connection.close()  # this thread's own, needed once in a while
        except Exception as error:  # noqa: BLE001  # drivers have error trees of their own; it is tried again
            LOG.warning("the database does not take the pulse of a busy worker: %s", error)


BUSY = Busy()
"""Of this process."""
