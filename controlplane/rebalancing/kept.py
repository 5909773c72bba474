"""How evenly clusters are loaded, as a task saw it last: pages and metrics read that and ask nobody.

To look at a cluster is a question to every broker, and seconds where there are 50,000 partitions. So beat has it done once a
minute, and the document is kept in the cache for an hour.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from django.core.cache import cache

from controlplane.clusters.services import cluster_list
from controlplane.core import caching
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import ClusterUnavailable
from controlplane.core.kept import AWAY, keep, kept
from controlplane.rebalancing.selectors import balance_of

if TYPE_CHECKING:
    from controlplane.clusters.models import PhysicalCluster
    from controlplane.rebalancing.selectors import Balance

LOG = logging.getLogger(__name__)
KEPT_S = 3600
LONGEST_LOOK_S = 600
"""After so long whoever was looking has died."""
MOST_SHORT = 100
"""Tenants that are named; their number is, in any case."""


def document_of(balance: Balance) -> dict[str, Any]:
    """As REST shows it."""
    return {
        "brokers": [
            {
                "broker": load.broker,
                "away": load.broker in balance.away,
                "loads": {str(goal): load.of[goal] for goal in load.of},
            }
            for load in balance.brokers
        ],
        "averages": {str(goal): value for goal, value in balance.averages.items()},
        "short": [
            {
                "instance": each.instance,
                "limit_bytes_per_s": each.limit_bytes_per_s,
                "usable_bytes_per_s": each.usable_before,
            }
            for each in balance.short
        ],
        "notes": list(balance.notes),
    }


def look(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """At every cluster. One that does not answer keeps what was seen of it last."""
    for cluster in cluster_list():
        if not _begins(cluster):
            continue
        try:
            document = document_of(balance_of(cluster))
        except ClusterUnavailable as error:
            LOG.warning("how evenly %s is loaded is not known: %s", cluster, error)
            continue
        finally:
            _ends(cluster)
        shown = {**document, "short": document["short"][:MOST_SHORT], "short_count": len(document["short"])}
        seen = {"at": clock.now(), "document": shown}
        keep(_key(cluster), seen, KEPT_S, LOG, f"how evenly {cluster} is loaded is not kept")


def seen_last(cluster: PhysicalCluster) -> dict[str, Any] | None:
    """`at` and `document`; None: a cluster that nobody has looked at for an hour."""
    found: dict[str, Any] | None = kept(_key(cluster), LOG, f"how evenly {cluster} is loaded cannot be read")
    return found


def _begins(cluster: PhysicalCluster) -> bool:
    """Whether nobody else is looking: with silent brokers a look takes longer than the minute until the next one."""
    try:
        return bool(cache.add(_looking(cluster), True, timeout=LONGEST_LOOK_S))
    except AWAY:
        return True


def _ends(cluster: PhysicalCluster) -> None:
    try:
        with caching.insisting():  # else nobody looks for ten minutes
            cache.delete(_looking(cluster))
    except AWAY as error:
        LOG.warning("the next look at %s has to wait: %s", cluster, error)


def _key(cluster: PhysicalCluster) -> str:
    return f"balance:{cluster.pk}"


def _looking(cluster: PhysicalCluster) -> str:
    return f"balance:{cluster.pk}:looking"
