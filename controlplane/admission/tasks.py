"""Celery's edge of admission."""

from __future__ import annotations

from controlplane.admission import elastic, prepaid, scheduling
from controlplane.celery import app


@app.task(name="admission.changes_carry_out")
def changes_carry_out() -> None:
    """Make the scheduled changes whose time has come, and say what has become of them. Beat calls it every few seconds."""
    scheduling.changes_carry_out()
    scheduling.changes_tell()


@app.task(name="admission.prepaid_look")
def prepaid_look() -> None:
    """Tell what is paid in advance and ends soon, and renew, isolate or go on with what has ended. Beat calls it each minute."""
    prepaid.prepaid_look()


@app.task(name="admission.elastic_look")
def elastic_look() -> None:
    """Switch elastic bandwidth off where its budget is used up, and on again in a new month. Beat calls it each minute."""
    elastic.elastic_look()
