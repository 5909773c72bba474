"""Sampling brokers, and forgetting it. Each may be repeated, and done by two workers at once: it changes nothing.

Nobody is asked: what the masters said within the last minute, and how the clusters were seen to be loaded, stands in the cache.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from controlplane.clusters.services import cluster_list
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.fleet.models import BrokerSample
from controlplane.history.forgetting import forget
from controlplane.quotas.figures import brokers_last, matrices_last
from controlplane.quotas.matrix import LOOP
from controlplane.rebalancing.kept import seen_last
from controlplane.rebalancing.planner.model import Goal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from controlplane.clusters.models import PhysicalCluster

LOG = logging.getLogger(__name__)
STEP_S = 60
KEPT_S = 26 * 3600
"""Whoever asks for the last day asks a moment later than he means."""
FRESH = timedelta(seconds=90)
"""Older words of a master are of another minute."""
DISKS_FRESH = timedelta(minutes=10)
"""To look at disks is a question to every broker: it is done now and then, and they fill up slowly."""
PORTION_S = 3600


def sample(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Keep what is known of every broker now; how many brokers that were."""
    now = clock.now()
    at = int(now.timestamp()) // STEP_S * STEP_S
    if BrokerSample.objects.filter(at=at).exists():
        return 0
    rows = [row for cluster in cluster_list() for row in _samples_of(cluster, at, now)]
    BrokerSample.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)


def purge(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Remove what is older than anybody may ask for."""
    forget(BrokerSample, int(clock.now().timestamp()) - KEPT_S, PORTION_S)


def _samples_of(cluster: PhysicalCluster, at: int, now: datetime) -> list[BrokerSample]:
    known, said_at = brokers_last(cluster.address)
    if said_at is None or now - said_at > FRESH:
        return []
    loops, disks = _loops(cluster, now), _disks(cluster, now)
    found = []
    for broker, row in sorted(known.items()):
        try:
            found.append(_sampled(cluster.pk, at, row, loops.get(broker), disks.get(broker)))
        except (KeyError, TypeError, ValueError, AttributeError) as error:  # one broker must not cost the others theirs
            LOG.warning("no sample of broker %.12s of %s: %r", broker, cluster, error)
    return found


def _sampled(cluster_id: int, at: int, row: Mapping[str, Any], loop_us: int | None, disk: int | None) -> BrokerSample:
    flows: dict[str, int] = {}
    for direction in ("produce", "consume"):
        flows[f"{direction}_bytes_per_s"] = int(row[direction]["flow"])
        flows[f"{direction}_allocated_bytes_per_s"] = int(row[direction]["allocation"])
    return BrokerSample(
        cluster=cluster_id,
        broker=int(row["broker"]),
        at=at,
        reporting=bool(row["reporting"]),
        leaders=int(row["leaders"]),
        instances=int(row["instances"]),
        loop_us_per_s=loop_us,
        disk_bytes=disk,
        behind=int((row.get("missing") or {}).get("replicas_behind", 0)),
        **flows,
    )


def _loops(cluster: PhysicalCluster, now: datetime) -> dict[int, int]:
    found = matrices_last(cluster.address, [LOOP])
    return found[0][LOOP].by_broker() if found is not None and now - found[1] <= FRESH else {}


def _disks(cluster: PhysicalCluster, now: datetime) -> dict[int, int]:
    seen = seen_last(cluster)
    if seen is None or now - seen["at"] > DISKS_FRESH:
        return {}
    return {row["broker"]: row["loads"][str(Goal.DISK)] for row in seen["document"]["brokers"] if not row["away"]}
