"""How much an instance stores now, as far as it is known for certain: before anything is deleted or bought.

A page may show the last figures with their age. A policy may not act on them: so the figure is of now, of a master that has
heard every broker that lives. A broker that is away does not report and stores what it stored; one that lives and does not
report may store anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.clusters import coordination, master, zookeeper
from controlplane.core.errors import MasterUnavailable

if TYPE_CHECKING:
    from controlplane.instances.models import Instance


def used_bytes(instance: Instance) -> int:
    """On disk, every replica counted. Raises MasterUnavailable, ClusterUnavailable where that is not known."""
    cluster = instance.cluster.address
    document = master.allocation(cluster, instance.id)
    used = document.get("storage_used_bytes")
    if isinstance(used, bool) or not isinstance(used, int) or document.get("learning"):
        raise MasterUnavailable("the flow master has not heard yet how much brokers store")
    reporting = {row.get("broker") for row in master.brokers(cluster) if row.get("reporting")}
    if any(broker.id not in reporting for broker in coordination.live_brokers(zookeeper.tree(cluster))):
        raise MasterUnavailable("not every broker reports how much it stores")
    return used
