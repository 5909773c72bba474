"""Whether anything is done in the background: when a worker was heard last.

Beat sends a message every two seconds, and the worker that gets it writes the moment down, in one row. So it is old where
beat, Redis or all workers are away, or all their hands are full: whichever it is, what is asked for waits. A release that has
never had a worker has no row, and nothing is said of it: nobody has missed anything yet.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.models import WorkerPulse

AWAY_AFTER = timedelta(seconds=7)
"""Three pulses that did not come, and the time that a page takes: within ten seconds it is said."""
_ONLY = 1


def pulse_note(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """A worker is there."""
    now = clock.now()
    if not WorkerPulse.objects.filter(pk=_ONLY).update(seen_at=now):
        WorkerPulse.objects.bulk_create([WorkerPulse(pk=_ONLY, seen_at=now)], ignore_conflicts=True)


def worker_seen_at() -> datetime | None:
    """When one was heard last; None: never."""
    return WorkerPulse.objects.filter(pk=_ONLY).values_list("seen_at", flat=True).first()


def away_since(*, clock: Clock = SYSTEM_CLOCK) -> datetime | None:
    """Since when no worker is heard; None: one is, or none ever was."""
    seen_at = worker_seen_at()
    return seen_at if seen_at is not None and clock.now() - seen_at > AWAY_AFTER else None
