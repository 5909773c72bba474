"""Celery's edge of rebalancing."""

from __future__ import annotations

from controlplane.celery import app
from controlplane.rebalancing import automatic, kept, upkeep


@app.task(name="rebalancing.keep_up")
def rebalances_keep_up() -> None:
    """Expire proposals, and take back throttles that were left. Beat calls it every minute."""
    upkeep.keep_up()


@app.task(name="rebalancing.look")
def balance_look() -> None:
    """See how evenly clusters are loaded, for pages and metrics. Beat calls it every minute."""
    kept.look()


@app.task(name="rebalancing.look_after")
def clusters_look_after() -> None:
    """Propose and carry out what begins by itself. Beat calls it every minute."""
    automatic.look_after()
