"""Celery's edge of policies."""

from __future__ import annotations

from controlplane.celery import app
from controlplane.policies import evaluation


@app.task(name="policies.evaluate")
def policies_evaluate() -> None:
    """Look at every policy. Beat calls it once a minute."""
    evaluation.evaluate()
