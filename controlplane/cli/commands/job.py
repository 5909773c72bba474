"""Jobs of the pipeline, for operators of the service."""

from __future__ import annotations

from typing import Annotated

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import said
from controlplane.cli.options import Commands, Limit
from controlplane.cli.session import of
from controlplane.cli.tables import columns

app = Commands("For operators of the service: jobs of the pipeline.")
LISTED = columns(
    "name", "kind", "done_to", "lag_s", "next_at", "failures", "waiting", last="last.state", ended="last.ended_at"
)
RUNS = columns("id", "job", "what", "state", "asked_by", "started_at", "duration_s", "rows", "done_to", "reason")
Job = Annotated[str, typer.Argument(metavar="JOB", help="Its name, such as quota_report.")]


@app.add("list")
def listed(ctx: typer.Context) -> None:
    """Each with its last run, when the next begins, and how far it is behind."""
    of(ctx).listed(ops.JOBS, LISTED, limit=None)


@app.add("runs")
def runs(ctx: typer.Context, job: Job, limit: Limit = None) -> None:
    """Runs of a job, the newest first; they are kept for 400 days."""
    of(ctx).listed(ops.JOB_RUNS, RUNS, limit=limit, job=job)


@app.add("run", rehearses=True)
def run(
    ctx: typer.Context,
    job: Job,
    what: Annotated[
        str | None, typer.Option(help="One of the last 14 days again, YYYY-MM-DD; by default what is due.")
    ] = None,
) -> None:
    """Run a job as soon as the runner is free."""
    of(ctx).change(ops.JOB_RUN, body=said(what=what), job=job)
