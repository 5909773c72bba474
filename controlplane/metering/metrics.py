"""What Prometheus reads of metering and of the jobs. Pure: from the selectors' values to its text format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from controlplane.metering.folding import FoldShown
from controlplane.metering.jobs import DIED, JobShown
from controlplane.metering.pipeline.schedule import State
from controlplane.metering.selectors import STATES, MeteringStatus, PartitionProgress

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metrics_text(
    status: MeteringStatus, partitions: Iterable[PartitionProgress], *, open_losses: int, now: datetime,
    differences: int = 0, fold: FoldShown | None = None,
) -> str:  # fmt: skip
    """One line for each sample; what is not known has none. `differences`: of the last reconciliation."""
    samples = [*_samples(status, open_losses=open_losses, now=now), *_lags(partitions)]
    samples += ["# TYPE sluice_metering_differences gauge", f"sluice_metering_differences {differences}"]
    samples += [] if fold is None else _of_fold(fold, now)
    return "\n".join(samples) + "\n"


def _samples(status: MeteringStatus, *, open_losses: int, now: datetime) -> Iterator[str]:
    yield "# TYPE sluice_metering_state gauge"
    for state in STATES:
        yield f'sluice_metering_state{{state="{state}"}} {int(state == status.state)}'
    for name, moment in (
        ("complete", status.complete_to),
        ("final", status.final_to),
        ("moved", status.moved_at),
        ("seen", status.seen_at),
    ):
        if moment is not None:
            yield f"# TYPE sluice_metering_{name}_age_seconds gauge"
            yield f"sluice_metering_{name}_age_seconds {(now - moment).total_seconds():.3f}"
    if status.batch_ms is not None:
        yield "# TYPE sluice_metering_batch_seconds gauge"
        yield f"sluice_metering_batch_seconds {status.batch_ms / 1000}"
    totals = (("", status.records), ("refused_", status.bad_records), ("early_", status.early_records))
    for name, value in totals:
        yield f"# TYPE sluice_metering_{name}records_total counter"
        yield f"sluice_metering_{name}records_total {value}"
    yield "# TYPE sluice_metering_open_losses gauge"
    yield f"sluice_metering_open_losses {open_losses}"


def _of_fold(fold: FoldShown, now: datetime) -> Iterator[str]:
    """How far days are folded; whether a day waits for something; rows by topic, boot and hour."""
    known: dict[str, float] = {"fold_waiting": int(bool(fold.reason))}
    if fold.folded_to is not None:
        known["folded_age_seconds"] = (now - fold.folded_to).total_seconds()
    if fold.kept is not None:
        known["key_rows"] = fold.kept
    for name, value in known.items():
        yield f"# TYPE sluice_metering_{name} gauge"
        yield f"sluice_metering_{name} {value}"


def _lags(partitions: Iterable[PartitionProgress]) -> Iterator[str]:
    rows = list(partitions)
    several = len({row.cluster for row in rows}) > 1
    yield "# TYPE sluice_metering_lag_records gauge"
    for row in rows:
        cluster = f'cluster="{row.cluster}",' if several else ""
        yield f'sluice_metering_lag_records{{{cluster}partition="{row.partition}"}} {row.lag}'


def jobs_text(jobs: Iterable[JobShown], *, now: datetime) -> str:
    """How the jobs of the pipeline are: gauges, since runs are forgotten after a while."""
    found: dict[str, list[str]] = {name: [] for name in _OF_JOBS}
    for job in jobs:
        for name, value in _of_job(job, now):
            found[name].append(f'sluice_job_{name}{{job="{job.name}"}} {value}')
    lines = [
        line for name, samples in found.items() if samples for line in (f"# TYPE sluice_job_{name} gauge", *samples)
    ]
    return "\n".join(lines) + "\n"


_OF_JOBS = (
    "running", "failures", "waiting", "lag_seconds", "last_success_age_seconds", "last_duration_seconds", "last_rows",
)  # fmt: skip


def _of_job(job: JobShown, now: datetime) -> Iterator[tuple[str, float]]:
    yield "running", int(job.state == State.RUNNING)
    yield "failures", job.failures
    yield "waiting", job.waiting
    if job.lag_s is not None:
        yield "lag_seconds", job.lag_s
    if job.succeeded is not None and job.succeeded.ended_at is not None:
        yield "last_success_age_seconds", (now - job.succeeded.ended_at).total_seconds()
    if job.last is not None and job.last.state not in (State.RUNNING, DIED):
        yield "last_duration_seconds", job.last.duration_s or 0
        yield "last_rows", job.last.rows
