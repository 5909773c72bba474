"""A short round of each cluster's groups each ten seconds, between those of the minutes, for the history of the last hour.

What brokers have in memory is asked for: which groups there are, their offsets, a hundred groups in a request, and where
partitions end. Of what has moved a few hundred places are dated and sized (`groups.rounds.SHORT`); what is known of the others is
of the round before, and a group of which it is not known has no age, or no bytes, in that step.

One worker at a time looks at a cluster: while a round takes long, steps are left out, and are gaps. A short round asks for
nothing more after eight seconds, and after it nobody looks for as long as it has taken: a cluster that answers slowly keeps one
worker busy for about half of the time, which operations, health and mails would else wait for.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from django.db.models import Q

from controlplane.clusters.services import for_each_cluster
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Unavailable
from controlplane.core.kept import keep, kept
from controlplane.groups.rounds import SHORT, round_of
from controlplane.history.lag.known import AHEAD_S
from controlplane.history.lag.samples import samples_keep
from controlplane.history.models import LagMark
from controlplane.history.resolutions import SAMPLES, floor
from controlplane.instances.models import Instance, InstanceState

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from controlplane.clusters.models import PhysicalCluster

LOG = logging.getLogger(__name__)
KNOWN_FOR_S = 600
BUSY_S = 60
"""Nobody else looks for so long after a worker has begun, unless it says that it is done."""


def look(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Keep the lag of every group for these ten seconds, unless they are taken; of how many groups that was."""
    return sum(for_each_cluster(lambda cluster: _look_at(cluster, clock), "a look at the lag of groups"))


def _look_at(cluster: PhysicalCluster, clock: Clock) -> int:
    at = step_now(clock)
    if not look_begin(cluster, at):
        return 0
    begun = time.monotonic()
    try:
        return _looked(cluster, at, clock)
    finally:
        look_end(cluster, at, free_s=clock.now().timestamp() + time.monotonic() - begun)


def step_now(clock: Clock) -> int:
    """When the ten seconds of now began."""
    return floor(int(clock.now().timestamp()), SAMPLES.step_s)


def look_begin(cluster: PhysicalCluster, at: int, *, first: bool = False) -> bool:
    """Whether nobody else has a cluster's ten seconds, or looks at it now. `first`: whoever does so."""
    free = Q() if first else Q(at__lte=at) | Q(at__gt=at + AHEAD_S)
    ours = LagMark.objects.filter(free, pk=_name(cluster))
    if ours.update(at=at + BUSY_S):
        return True
    _, is_new = LagMark.objects.get_or_create(name=_name(cluster), defaults={"at": at + BUSY_S})
    return is_new


def look_end(cluster: PhysicalCluster, at: int, *, free_s: float = 0.0) -> None:
    """The next ten seconds are free, or those of that moment, if it is later; unless another has taken the cluster meanwhile."""
    free = min(max(at + SAMPLES.step_s, floor(int(free_s), SAMPLES.step_s)), at + BUSY_S)
    LagMark.objects.filter(pk=_name(cluster), at=at + BUSY_S).update(at=free)


def _name(cluster: PhysicalCluster) -> str:
    return f"look at cluster {cluster.pk}"


def running_of(cluster: PhysicalCluster) -> list[str]:
    """Instances of which there are samples and minutes."""
    running = Instance.objects.unscoped("everyone's groups are sampled").filter(
        state=InstanceState.RUNNING, cluster=cluster
    )
    return list(running.order_by("pk").values_list("pk", flat=True))


def dated_known(cluster: PhysicalCluster) -> Mapping[Any, int]:
    """Timestamps of the records that rounds have dated lately."""
    return kept(f"lag:dated:{cluster.pk}", LOG, "records are dated again") or {}


def sized_known(cluster: PhysicalCluster) -> Mapping[Any, int]:
    """Bytes that rounds have asked for lately."""
    return kept(f"lag:sized:{cluster.pk}", LOG, "bytes are asked for again") or {}


def known_keep(cluster: PhysicalCluster, dated: Mapping[Any, int], sized: Mapping[Any, int]) -> None:
    """For the next round."""
    keep(f"lag:dated:{cluster.pk}", dict(dated), KNOWN_FOR_S, LOG, "records will be dated again")
    keep(f"lag:sized:{cluster.pk}", dict(sized), KNOWN_FOR_S, LOG, "bytes will be asked for again")


def _looked(cluster: PhysicalCluster, at: int, clock: Clock) -> int:
    names = running_of(cluster)
    if not names:
        return 0
    dated, sized = dated_known(cluster), sized_known(cluster)
    try:
        found = round_of(cluster.address, names, known=dated, known_sizes=sized, effort=SHORT, clock=clock)
    except Unavailable as error:
        LOG.warning("no lag of the groups of cluster %s in these ten seconds: %s", cluster, error)
        return 0
    # A short round may have left out groups that the next whole one asks about: what was known of these stays.
    known_keep(cluster, {**dated, **found.dated}, {**sized, **found.sized})
    samples_keep(found, at, round(found.seen.timestamp()))
    return sum(len(groups) for groups in found.lags.values())
