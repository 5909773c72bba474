"""Celery's edge of instances."""

from __future__ import annotations

from controlplane.celery import app
from controlplane.clusters import coordination, zookeeper
from controlplane.instances import reconcile as reconciler


@app.task(name="instances.reconcile")
def reconcile() -> None:
    """Look after every instance. Beat calls it every few seconds."""
    reconciler.reconcile_all()


@app.task(name="instances.changes_prune")
def changes_prune() -> None:
    """Keep /sluice/changes short."""
    coordination.changes_prune(zookeeper.tree())
