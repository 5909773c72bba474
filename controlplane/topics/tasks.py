"""Celery's edge of topics."""

from __future__ import annotations

from controlplane.celery import app
from controlplane.topics import notes


@app.task(name="topics.notes_tidy")
def notes_tidy() -> None:
    """Notes of topics that are gone. Beat calls it every ten minutes."""
    notes.tidy()
