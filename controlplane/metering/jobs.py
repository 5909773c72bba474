"""Jobs of the pipeline as operators see them: how each is, its runs, and that one is run again.

Jobs write their runs themselves (pipeline/runs.py); a run that somebody asks for waits in the same table until the runner starts
it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction
from django.db.models import Max

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Conflict, Invalid, NotFound
from controlplane.metering.models import JobRun
from controlplane.metering.pipeline.quota_days import AGAIN_DAYS, can_be_made_again
from controlplane.metering.pipeline.schedule import (
    AHEAD_MS,
    DAY_MS,
    JOBS,
    SILENT_MS,
    Job,
    Run,
    State,
    lag_ms,
    next_start,
)

if TYPE_CHECKING:
    from django.db.models import QuerySet

LOOKED_AT = 20
"""Of each job: as many as the runner looks at."""
DIED = "died"
"""What a run is whose job gives no sign of life, until somebody has said so in its row."""
RUNNER, QUOTA_REPORT = "runner", "quota_report"


@dataclass(frozen=True, slots=True)
class RunShown:
    """A run as people read it."""

    id: int
    job: str
    what: str
    state: str  # waiting, running, succeeded, failed, died
    asked_by: str
    asked_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    duration_s: float | None  # so far, where it runs
    rows: int
    done_to: datetime | None
    reason: str


@dataclass(frozen=True, slots=True)
class JobShown:
    """A job as it is now."""

    job: Job
    last: RunShown | None
    succeeded: RunShown | None  # the last that did
    done_to: datetime | None
    lag_s: float | None
    next_at: datetime | None
    failures: int  # since it succeeded last, of those that are looked at; of a stream that runs none
    waiting: int

    @property
    def name(self) -> str:
        """As in addresses."""
        return self.job.name

    @property
    def state(self) -> str:
        """Of the last run; "never" where there is none."""
        return "never" if self.last is None else self.last.state


def absence() -> str:
    """Why this installation runs no jobs; empty: it does."""
    absent: str = settings.ENVIRONMENT.metering_absent
    return absent


def job_list(*, clock: Clock = SYSTEM_CLOCK) -> list[JobShown]:
    """All of them, in the order in which they are declared."""
    now = clock.now()
    return [_job(job, now) for job in JOBS.values()]


def run_list(*, job: str = "") -> QuerySet[JobRun]:
    """Runs of one job or of all, the newest first."""
    rows = JobRun.objects.order_by("-pk")
    return rows.filter(job=job) if job else rows


def runs_page(*, job: str, after: tuple[int] | None, limit: int, clock: Clock = SYSTEM_CLOCK) -> list[RunShown]:
    """Runs behind the one of this id, the newest first. Raises NotFound."""
    if job not in JOBS:
        raise NotFound("there is no such job")
    rows = run_list(job=job)
    if after is not None:
        rows = rows.filter(pk__lt=after[0])
    now = clock.now()
    return [run_shown(row, now) for row in rows[:limit]]


def run_shown(row: JobRun, now: datetime) -> RunShown:
    """A row, with what follows from the time."""
    now_ms = int(now.timestamp() * 1000)
    # A sign of life from times to come is none: see `pipeline.runs.bury`.
    is_dead = row.state == State.RUNNING and abs(now_ms - (row.seen_at_ms or 0)) > SILENT_MS
    until_ms = row.ended_at_ms or (min(row.seen_at_ms or 0, now_ms) if is_dead else now_ms)
    duration_s = None if row.started_at_ms is None or until_ms is None else max(0, until_ms - row.started_at_ms) / 1000
    return RunShown(
        row.pk, row.job, row.what, DIED if is_dead else row.state, row.asked_by, _moment(row.asked_at_ms),
        _known(row.started_at_ms), _known(row.ended_at_ms), duration_s, row.row_count, _known(row.done_to_ms), row.reason,
    )  # fmt: skip


@transaction.atomic
def job_run(*, job: str, what: str, actor: str, clock: Clock = SYSTEM_CLOCK) -> JobRun:
    """Ask for a run: of whatever is due, or of one day (`what`). The runner starts it. Raises NotFound, Invalid, Conflict."""
    found = JOBS.get(job)
    if found is None or not found.is_daily:
        raise NotFound(f"there is no job {job[:32]!r} that can be run")
    if what:
        what = _day(what, _today(clock.now())).isoformat()
    if JobRun.objects.filter(job=job, what=what, state=State.WAITING).exists():
        raise Conflict("the same run waits to be started already", code="run_waiting")
    return JobRun.objects.create(
        job=job, what=what, state=State.WAITING, asked_at_ms=int(clock.now().timestamp() * 1000), asked_by=actor
    )


def can_be_run_again(row: RunShown, now: datetime) -> bool:
    """Whether `job_run` takes what this run did: whatever was due, or one day whose minutes are kept."""
    if row.job not in JOBS or not JOBS[row.job].is_daily or row.ended_at is None:
        return False
    try:
        return not row.what or bool(_day(row.what, _today(now)))
    except Invalid:
        return False


def _day(text: str, today: date) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError as error:
        raise Invalid.field("what", "must be a day such as 2026-11-21") from error
    if day >= today or not can_be_made_again(day, today):
        raise Invalid.field("what", f"must be one of the last {AGAIN_DAYS} days")
    return day


def _today(now: datetime) -> date:
    return now.astimezone(UTC).date()


def reported_to(*, clock: Clock = SYSTEM_CLOCK) -> datetime | None:
    """Up to when days have a quota report, as its runs have said; None: none was made, or not for so long that none will be.

    The minutes of days that are longer ago are forgotten, so nothing waits for their reports.
    """
    now_ms = int(clock.now().timestamp() * 1000)
    rows = JobRun.objects.filter(job=QUOTA_REPORT, state=State.SUCCEEDED, done_to_ms__lte=now_ms)
    done_to_ms: int | None = rows.aggregate(newest=Max("done_to_ms"))["newest"]
    return None if done_to_ms is None or now_ms - done_to_ms > (AGAIN_DAYS + 1) * DAY_MS else _known(done_to_ms)


def _job(job: Job, now: datetime) -> JobShown:
    now_ms = int(now.timestamp() * 1000)
    begun = JobRun.objects.filter(job=job.name, started_at_ms__isnull=False).order_by("-started_at_ms", "-pk")
    rows = [run_shown(row, now) for row in begun[:LOOKED_AT]]
    believed = begun.filter(started_at_ms__lte=now_ms + AHEAD_MS)  # others were begun by a clock that was ahead
    succeeded = believed.filter(state=State.SUCCEEDED).first()
    done_to_ms = _done_to_ms(job, believed, now_ms)
    at_ms = next_start(job, [_decisive(row) for row in rows], now_ms)
    lag = lag_ms(job, done_to_ms, now_ms)
    return JobShown(
        job, rows[0] if rows else None, None if succeeded is None else run_shown(succeeded, now), _known(done_to_ms),
        None if lag is None else lag / 1000, _known(at_ms), _failures(job, rows),
        JobRun.objects.filter(job=job.name, state=State.WAITING).count(),
    )  # fmt: skip


def _done_to_ms(job: Job, believed: QuerySet[JobRun], now_ms: int) -> int | None:
    """What a stream has done it says while it runs; a daily job says so at its end.

    A stream runs once for each cluster, which stands in `what`: what all that run have done counts.
    """
    rows = believed.filter(done_to_ms__isnull=False)
    said = rows.first()
    if said is None or job.is_daily:
        return None if said is None else said.done_to_ms
    live = rows.filter(state=State.RUNNING, seen_at_ms__gte=now_ms - SILENT_MS).values_list("done_to_ms", flat=True)
    return min((done_to_ms for done_to_ms in live if done_to_ms is not None), default=said.done_to_ms)


def _failures(job: Job, rows: list[RunShown]) -> int:
    count = 0
    for row in rows:
        # A stream succeeds when it is told to stop: until then it does by running.
        if row.state == State.SUCCEEDED or (row.state == State.RUNNING and not job.is_daily):
            break
        count += row.state in (State.FAILED, DIED)
    return count


def _decisive(row: RunShown) -> Run:
    assert row.started_at is not None
    return Run(
        State.FAILED if row.state == DIED else State(row.state),
        _ms(row.started_at),
        None if row.ended_at is None else _ms(row.ended_at),
        None if row.done_to is None else _ms(row.done_to),
    )


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def _moment(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)


def _known(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else _moment(at_ms)
