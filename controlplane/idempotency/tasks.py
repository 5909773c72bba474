"""Celery's edge of repeatable calls."""

from __future__ import annotations

from controlplane.celery import app
from controlplane.idempotency import services


@app.task(name="idempotency.purge")
def calls_purge() -> None:
    """Forget calls older than 24 hours. Beat calls it every ten minutes."""
    services.calls_purge()
