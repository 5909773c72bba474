"""Celery's edge of quotas."""

from __future__ import annotations

from controlplane.celery import app
from controlplane.quotas import services


@app.task(name="quotas.throttling_pull")
def throttling_pull() -> None:
    """Take throttled intervals over from the masters. Beat calls it every 10 s."""
    services.throttling_pull()


@app.task(name="quotas.throttling_purge")
def throttling_purge() -> None:
    """Forget those older than a week. Beat calls it every ten minutes."""
    services.throttling_purge()
