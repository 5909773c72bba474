"""Celery's edge of metering."""

from __future__ import annotations

from controlplane.celery import app
from controlplane.metering import elastic, folding


@app.task(name="metering.elastic_pull")
def elastic_pull() -> None:
    """Take over from the masters what is billed of elastic bandwidth. Beat calls it every 10 s."""
    elastic.elastic_pull()


@app.task(name="metering.elastic_purge")
def elastic_purge() -> None:
    """Forget what is older than is kept. Beat calls it every hour."""
    elastic.elastic_purge()


@app.task(name="metering.days_fold")
def days_fold() -> None:
    """Fold days that are over, and delete key rows that nobody needs any more. Beat calls it every two minutes."""
    folding.days_fold()
