"""Celery's edge of instances."""

from __future__ import annotations

import logging

from controlplane.celery import app
from controlplane.clusters import coordination, zookeeper
from controlplane.clusters.services import cluster_list
from controlplane.core.errors import ClusterUnavailable
from controlplane.instances import reconcile as reconciler

LOG = logging.getLogger(__name__)


@app.task(name="instances.reconcile")
def reconcile() -> None:
    """Look after every instance. Beat calls it every few seconds."""
    reconciler.reconcile_all()


@app.task(name="instances.changes_prune")
def changes_prune() -> None:
    """Keep /sluice/changes of every cluster short."""
    for cluster in cluster_list():
        try:
            coordination.changes_prune(zookeeper.tree(cluster.address))
        except ClusterUnavailable as error:  # its brokers go on; the other clusters' changes are pruned all the same
            LOG.warning("cluster %s: %s", cluster, error)
