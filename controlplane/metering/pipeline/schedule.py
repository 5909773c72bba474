"""Which jobs there are, and when each is to run next. Pure; moments are milliseconds since 1970, days those of UTC.

A stream runs all the time. A daily job is due each day at its time: it has done its day once a run has succeeded that had all
that it needed, up to that day's midnight. One that failed, or came too early, is tried again after a pause that doubles. A run
that begins later than now was begun by a clock that was ahead, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
PAUSE_MS, LONGEST_PAUSE_MS = 15 * MINUTE_MS, 4 * HOUR_MS
SILENT_MS = MINUTE_MS
"""A run without a sign of life for longer has died without a word."""
AHEAD_MS = MINUTE_MS
"""Clocks that agree differ by less."""


class State(StrEnum):
    """Of a run."""

    WAITING = "waiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Job:
    """One of them. `module`: what is started; `daily_at_ms`: how long after midnight, None for what runs all the time.

    `longest_ms`: after that the runner stops it.
    """

    name: str
    title: str
    does: str
    module: str
    daily_at_ms: int | None = None
    longest_ms: int = 6 * HOUR_MS

    @property
    def is_daily(self) -> bool:
        """Whether it ends, and can be asked for."""
        return self.daily_at_ms is not None


@dataclass(frozen=True, slots=True)
class Run:
    """What is remembered of a run, as far as it decides when the next one begins."""

    state: State
    started_at_ms: int
    ended_at_ms: int | None = None
    done_to_ms: int | None = None  # up to when the job has done its work, as of its end; None: there is nothing to do


_PIPELINE = "controlplane.metering.pipeline"
JOBS: Mapping[str, Job] = {
    job.name: job
    for job in (
        Job("usage", "Usage", "from __usage to hourly usage and the lake", f"{_PIPELINE}.jobs.usage"),
        Job(
            "quota_report",
            "Quota report",
            "each day beside what was bought, from the minutes of the history",
            f"{_PIPELINE}.jobs.quota_report",
            daily_at_ms=10 * MINUTE_MS,
        ),
        Job(
            "reconcile",
            "Reconciliation",
            "recomputes each day from usage_raw, and compares it with the database and with invoices",
            f"{_PIPELINE}.jobs.reconcile",
            daily_at_ms=40 * MINUTE_MS,
        ),
        Job("runner", "Runner", "starts the daily jobs, and those that were asked for", f"{_PIPELINE}.runner"),
    )
}


def next_start(job: Job, runs: Sequence[Run], now_ms: int) -> int | None:
    """When it is to be started, perhaps in the past; None: it runs, or nobody starts it. `runs`: the newest first."""
    if job.daily_at_ms is None or any(run.state is State.RUNNING for run in runs):
        return None
    runs = [run for run in runs if run.started_at_ms <= now_ms + AHEAD_MS]
    midnight_ms = (now_ms - job.daily_at_ms) // DAY_MS * DAY_MS
    due_ms = midnight_ms + job.daily_at_ms
    in_vain = 0
    for run in runs:
        if run.started_at_ms < due_ms:
            break
        if has_done(run, midnight_ms):
            return due_ms + DAY_MS
        in_vain += 1
    if not in_vain:
        return due_ms
    ended_ms = runs[0].ended_at_ms
    if ended_ms is None or ended_ms > now_ms + AHEAD_MS:
        ended_ms = runs[0].started_at_ms
    return ended_ms + min(PAUSE_MS << min(in_vain - 1, 8), LONGEST_PAUSE_MS)


def has_done(run: Run, midnight_ms: int) -> bool:
    """Whether a run has left nothing to do before a midnight."""
    return run.state is State.SUCCEEDED and (run.done_to_ms is None or run.done_to_ms >= midnight_ms)


def lag_ms(job: Job, done_to_ms: int | None, now_ms: int) -> int | None:
    """How far a job is behind: a stream behind now, a daily one behind the last midnight. None: not known."""
    if done_to_ms is None:
        return None
    wanted = now_ms if job.daily_at_ms is None else now_ms // DAY_MS * DAY_MS
    return max(0, wanted - done_to_ms)
