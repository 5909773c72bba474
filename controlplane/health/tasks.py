"""Celery's edge of health."""

from __future__ import annotations

from controlplane.celery import app
from controlplane.health import services


@app.task(name="health.observe")
def health_observe() -> None:
    """Look at every instance. Beat calls it every 5 s."""
    services.health_observe()
