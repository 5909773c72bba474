"""Rebalances of consumer groups, as the rounds of lag see them: one row for a group and hour, which says how often.

A group that rebalances all day is one event an hour, and not one a minute. Groups are as many as a tenant likes, and rows are
not: of an instance MOST_GROUPS begin a row in an hour, the first that are seen; what is one too many is logged and in no row.
"""

from __future__ import annotations

import logging
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.models import F

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.portions import portions
from controlplane.history.lag.rows import digest_of
from controlplane.history.models import GroupRebalances

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

LOG = logging.getLogger(__name__)
MOST_GROUPS = 200
"""Of an instance, in an hour."""
KEPT = timedelta(days=90)
INSTANCES_AT_ONCE, ROWS_AT_ONCE = 100, 500
PORTION, PORTIONS = 2_000, 20


def rebalances_keep(rebalanced: Mapping[str, Collection[str]], now: datetime) -> None:
    """Once more each of these groups, by instance."""
    hour = now.replace(minute=0, second=0, microsecond=0)
    for part in portions(sorted(rebalanced), INSTANCES_AT_ONCE):
        _written({name: rebalanced[name] for name in part}, hour, now)


def _written(rebalanced: Mapping[str, Collection[str]], hour: datetime, now: datetime) -> None:
    rows = GroupRebalances.objects.filter(instance__in=list(rebalanced), hour=hour)
    there = {(instance, digest): pk for instance, digest, pk in rows.values_list("instance", "digest", "pk")}
    taken = Counter(instance for instance, _ in there)
    again: list[int] = []
    new: list[GroupRebalances] = []
    for instance, names in rebalanced.items():
        left_out = 0
        for group in sorted(names):
            pk = there.get((instance, digest_of(group)))
            if pk is not None:
                again.append(pk)
            elif taken[instance] < MOST_GROUPS:
                taken[instance] += 1
                new.append(_row(instance, group, hour, now))
            else:
                left_out += 1
        if left_out:
            LOG.info("rebalances of %d groups of %s have no event: %d have one", left_out, instance, MOST_GROUPS)
    for part in portions(again, ROWS_AT_ONCE):
        GroupRebalances.objects.filter(pk__in=part).update(times=F("times") + 1, seen_at=now)
    GroupRebalances.objects.bulk_create(new, batch_size=ROWS_AT_ONCE, ignore_conflicts=True)


def _row(instance: str, group: str, hour: datetime, now: datetime) -> GroupRebalances:
    return GroupRebalances(
        instance=instance, digest=digest_of(group), group=group, hour=hour, times=1, began_at=now, seen_at=now
    )


def rebalances_purge(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Forget those that began 90 days ago."""
    old = GroupRebalances.objects.filter(began_at__lt=clock.now() - KEPT)
    for _ in range(PORTIONS):  # the rest is for the next call
        keys = list(old.order_by("began_at").values_list("pk", flat=True)[:PORTION])
        if not keys:
            break
        old.filter(pk__in=keys).delete()
