"""Celery's edge of alarms."""

from __future__ import annotations

from controlplane.alarms import evaluation, throttling, upkeep
from controlplane.alarms.delivery import outbox
from controlplane.celery import app


@app.task(name="alarms.evaluate")
def alarms_evaluate() -> None:
    """Look at every alarm. Beat calls it every 30 s."""
    evaluation.evaluate()


@app.task(name="alarms.throttling")
def alarms_throttling() -> None:
    """Make spells of throttled intervals, for the timeline. Beat calls it every 30 s."""
    throttling.spells_join()


@app.task(name="alarms.send")
def alarms_send() -> None:
    """Send the messages that are due. Beat calls it every 5 s."""
    outbox.send_due()


@app.task(name="alarms.keep_up")
def alarms_keep_up() -> None:
    """Forget what is old. Beat calls it every ten minutes."""
    upkeep.keep_up()
