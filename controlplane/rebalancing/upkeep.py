"""What the clock does with proposals: they expire, and a throttle that a failure left behind is taken back."""

from __future__ import annotations

import logging

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import ClusterUnavailable
from controlplane.kafka import placement_door
from controlplane.rebalancing import throttling
from controlplane.rebalancing.models import OVER, UNDER_WAY, Rebalance, RebalanceState

LOG = logging.getLogger(__name__)


def keep_up(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Called by beat."""
    proposed = Rebalance.objects.filter(state=RebalanceState.PROPOSED, expires_at__lte=clock.now())
    proposed.update(state=RebalanceState.EXPIRED)
    for row in Rebalance.objects.filter(state__in=OVER, throttle_in_force__isnull=False).select_related("cluster"):
        if Rebalance.objects.filter(cluster=row.cluster, state__in=UNDER_WAY).exists():
            continue  # the rates of brokers are another one's now, or about to be: they go with that
        try:
            throttling.release(row, placement_door.door(row.cluster.address))
        except ClusterUnavailable as error:
            LOG.warning("the throttle of %s is still in force: %s", row, error)
