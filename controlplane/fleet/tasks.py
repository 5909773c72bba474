"""Celery's edge of the fleet."""

from __future__ import annotations

from controlplane.celery import app
from controlplane.fleet import services


@app.task(name="fleet.sample")
def fleet_sample() -> None:
    """Take a sample of every broker, unless this minute has one. Beat calls it every 20 s."""
    services.sample()


@app.task(name="fleet.purge")
def fleet_purge() -> None:
    """Remove what has expired. Beat calls it every ten minutes."""
    services.purge()
