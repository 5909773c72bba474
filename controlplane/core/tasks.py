"""Celery's edge of operations, of the audit trail and of the pulse: all tasks only look into the database."""

from __future__ import annotations

from controlplane.celery import app
from controlplane.core import audit_sealing, operations, pulse

OFFER_AT_MOST = 100


@app.task(name="core.operations_offer")
def operations_offer() -> None:
    """Wake workers for every operation that is runnable or whose worker has died. Beat calls it every 2 s."""
    operations.wake(list(operations.runnable().values_list("pk", flat=True)[:OFFER_AT_MOST]))


@app.task(name="core.operation_run")
def operation_run(operation_id: str) -> None:
    """Carry one operation on, if nobody else does."""
    operations.run(operation_id)


@app.task(name="core.audit_seal")
def audit_seal() -> None:
    """Chain entries of the audit trail whose process died before it did. Beat calls it every 10 s."""
    audit_sealing.extend_all()


@app.task(name="core.pulse")
def worker_pulse() -> None:
    """A worker is there. Beat calls it every 2 s."""
    pulse.pulse_note()
