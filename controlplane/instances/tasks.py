"""Celery's edge of instances."""

from __future__ import annotations

import logging

from controlplane.celery import app
from controlplane.clusters import coordination, proposals, zookeeper
from controlplane.clusters.services import cluster_list
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import ClusterUnavailable, ConcurrentChange
from controlplane.instances import kafka_changes, lifecycle
from controlplane.instances import reconcile as reconciler
from controlplane.instances.services import proposal_expired

LOG = logging.getLogger(__name__)


@app.task(name="instances.reconcile")
def reconcile() -> None:
    """Look after every instance. Beat calls it every few seconds."""
    reconciler.reconcile_all()


@app.task(name="instances.grace_periods_end")
def grace_periods_end() -> None:
    """Tell owners what is about to be destroyed, and destroy what was isolated for its grace period."""
    lifecycle.ends_foretell()
    lifecycle.grace_periods_end()


@app.task(name="instances.kafka_changes_read")
def kafka_changes_read() -> None:
    """Take what Kafka clients have changed into the audit trails. Beat calls it every 10 s."""
    kafka_changes.changes_read_all()


@app.task(name="instances.changes_prune")
def changes_prune() -> None:
    """Keep /sluice/changes of every cluster short."""
    for cluster in cluster_list():
        try:
            coordination.changes_prune(zookeeper.tree(cluster.address))
        except ClusterUnavailable as error:  # its brokers go on; the other clusters' changes are pruned all the same
            LOG.warning("cluster %s: %s", cluster, error)


@app.task(name="instances.proposals_expire")
def proposals_expire() -> None:
    """Discard the proposals whose time is over. Brokers have stopped judging them by their own clocks."""
    now_ms = int(SYSTEM_CLOCK.now().timestamp() * 1000)
    for cluster in cluster_list():
        try:
            tree = zookeeper.tree(cluster.address)
            for instance_id, proposal_id in proposals.proposals_ended(tree, now_ms):
                if proposals.proposal_remove(tree, instance_id, proposal_id):
                    proposal_expired(instance_id, proposal_id)
        except (ClusterUnavailable, ConcurrentChange) as error:  # the next round comes
            LOG.warning("cluster %s: %s", cluster, error)
