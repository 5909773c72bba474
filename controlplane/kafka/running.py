"""The brokers that are there to be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.clusters import coordination, zookeeper
from controlplane.core.errors import ClusterUnavailable

if TYPE_CHECKING:
    from controlplane.clusters.address import ClusterAddress
    from controlplane.clusters.coordination import LiveBroker


def brokers(cluster: ClusterAddress) -> list[LiveBroker]:
    """Those that are registered. Raises ClusterUnavailable, also where there is none."""
    found = coordination.live_brokers(zookeeper.tree(cluster))
    if not found:
        raise ClusterUnavailable("no broker is running")
    return found
