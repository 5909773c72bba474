"""Asking brokers who moves what of an instance while it has to wait, and keeping that for as long as throttled intervals.

Brokers know who moves what as a mean over the last half minute to two minutes, and forget it; nothing is reported by the second.
So they are asked while somebody waits, or just has: an interval lasts a minute at most and is told within half a minute.

An instance is asked about once in `AGAIN`, `MOST_AT_ONCE` of them in a round, those first that nobody has asked about for
longest, and none any more when a round has taken `ROUND_S`. A broker that does not answer is not in the document; where none
does, nothing is kept.
"""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.models import Max

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import ClusterUnavailable
from controlplane.instances.models import Instance, InstanceState
from controlplane.kafka import connections
from controlplane.quotas.models import RecordedInterval
from controlplane.quotas.moments import text_of
from controlplane.quotas.services import KEPT
from controlplane.remedies.models import Witness
from controlplane.remedies.who import witness_of

if TYPE_CHECKING:
    from datetime import datetime

LOG = logging.getLogger(__name__)
RECENT = timedelta(seconds=100)
"""Since an interval began: it lasts a minute at most, and what is told of it is on its way for half a minute."""
AGAIN = timedelta(seconds=45)
MOST_AT_ONCE = 20
ROUND_S = 8.0
ROWS = 200
"""Of each kind, of each broker; what moves less is in the sums."""


def witnesses_take(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Of every instance in which somebody waits by its bandwidth, its requests or a rule; how many were asked about."""
    until = time.monotonic() + ROUND_S
    taken = 0
    for instance in _waiting(clock.now()):
        if time.monotonic() >= until:
            break
        taken += _taken(instance, clock.now())
    return taken


def witnesses_purge(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Forget those that are older than the intervals are."""
    Witness.objects.filter(at__lt=text_of(clock.now() - KEPT)).delete()


def _waiting(now: datetime) -> list[Instance]:
    rows = RecordedInterval.objects.filter(started_at__gte=text_of(now - RECENT), throttled_ms__gt=0)
    names = set(rows.order_by().values_list("instance", flat=True).distinct())
    asked = Witness.objects.filter(instance__in=names, at__gte=text_of(now - KEPT))
    last = dict(asked.order_by().values("instance").annotate(last=Max("at")).values_list("instance", "last"))
    due = sorted(
        (name for name in names if last.get(name, "") < text_of(now - AGAIN)), key=lambda name: last.get(name, "")
    )
    running = Instance.objects.unscoped("everyone who waits is asked about").filter(state=InstanceState.RUNNING)
    found = running.select_related("cluster").in_bulk(due[:MOST_AT_ONCE])
    return [found[name] for name in due if name in found]


def _taken(instance: Instance, now: datetime) -> int:
    try:
        told = connections.read(instance.cluster.address, instance.id, most_connections=ROWS, most_talkers=ROWS)
    except ClusterUnavailable as error:
        LOG.debug("nobody says who moves most of %s: %s", instance.id, error)
        return 0
    row = Witness(instance=instance.id, at=text_of(now), document=witness_of(told.answers))
    Witness.objects.bulk_create([row], ignore_conflicts=True)
    return 1
