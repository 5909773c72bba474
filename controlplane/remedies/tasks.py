"""Celery's edge of remedies."""

from __future__ import annotations

from controlplane.celery import app
from controlplane.remedies import neighbours, witnesses


@app.task(name="remedies.witnesses_take")
def witnesses_take() -> None:
    """Ask who moves most of instances that wait. Beat calls it every 15 s."""
    witnesses.witnesses_take()


@app.task(name="remedies.minutes_take")
def minutes_take() -> None:
    """Keep how brokers spent the last minute. Beat calls it every 30 s; the second time finds it there."""
    neighbours.minutes_take()


@app.task(name="remedies.purge")
def purge() -> None:
    """Forget who moved most after a week, and minutes after a day. Beat calls it every ten minutes."""
    witnesses.witnesses_purge()
    neighbours.minutes_purge()
