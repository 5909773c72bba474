"""Celery's edge of rebalancing."""

from __future__ import annotations

from controlplane.celery import app
from controlplane.rebalancing import upkeep


@app.task(name="rebalancing.keep_up")
def rebalances_keep_up() -> None:
    """Expire proposals, and take back throttles that were left. Beat calls it every minute."""
    upkeep.keep_up()
