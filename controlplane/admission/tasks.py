"""Celery's edge of admission."""

from __future__ import annotations

from controlplane.admission import prepaid, scheduling
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
