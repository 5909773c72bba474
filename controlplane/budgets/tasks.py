"""Celery's edge of budgets."""

from __future__ import annotations

from controlplane.budgets import evaluation
from controlplane.celery import app


@app.task(name="budgets.evaluate")
def budgets_evaluate() -> None:
    """Look at every budget. Beat calls it every five minutes."""
    evaluation.evaluate()
