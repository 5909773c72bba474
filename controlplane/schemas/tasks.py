"""Celery's edge of schemas."""

from __future__ import annotations

from controlplane.celery import app
from controlplane.schemas import services


@app.task(name="schemas.tidy")
def tidy() -> None:
    """Schemas of topics that are gone. Beat calls it every ten minutes."""
    services.tidy()
