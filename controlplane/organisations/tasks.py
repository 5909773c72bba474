"""Celery's edge of organisations."""

from __future__ import annotations

from controlplane.celery import app
from controlplane.organisations import removal


@app.task(name="organisations.look_after")
def organisations_look_after() -> None:
    """Tell owners which organisations are about to be deleted, and delete those whose time is over. Beat calls it each minute."""
    removal.look_after()
