"""Rows that nothing changes any more go to the store, oldest first; what the database needs no longer is removed from it.

A minute is written some five minutes after its end, an hour seven; rows of requests one minute after. Each moment is written by
itself, and then the span reaches beyond it. So where an answer is lost, only the newest samples of a series are sent again, as
they were, which every store takes without a word. While the store is away rows stay in the database, as long as they would
without a store (15 days, 400 days), and are written in order once it answers. What a store refuses, because it is too old for it,
say, stays in the database as long, and is read from there: the next span begins after it.

One worker at a time writes, since a second one would be told that its samples are out of order.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import F, Min

from controlplane.clusters.services import cluster_list
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.history.forgetting import forget
from controlplane.history.models import (
    Hour,
    Minute,
    RequestHour,
    RequestMark,
    RequestMinute,
    RolledUp,
    StoredSpan,
    StoreWriter,
)
from controlplane.history.requests.sampling import finish, mark_name
from controlplane.history.resolutions import DAY_S, HOURS, MINUTES, Resolution, floor
from controlplane.history.store.client import Store, StoreAway, StoreRefused, store_installed
from controlplane.history.store.series import points_of_flow, points_of_requests, stands_at
from controlplane.history.store.spans import FLOW, REQUESTS
from controlplane.history.store.wire import Point, body_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOG = logging.getLogger(__name__)
BUDGET_S = 10.0
"""Of one run; the next one goes on."""
MOMENT_S = 60.0
"""A moment that takes longer is given up, and begun again: the store is too slow for what there is."""
LEASE_S = 600
"""A worker that was killed keeps others waiting no longer. More than the two of above together."""
AGAIN_S = 300
"""So many of the newest minutes may be made again (`services.ROLLED`); an hour is made again for a minute after that."""
SETTLED_S = 2_400
"""Requests of a cluster that was silent for so long have been added up, or given up (`requests.sampling.finish`)."""
POINTS_AT_ONCE = 20_000
"""In one request: some 2 MB, before it is compressed."""
ROWS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Level:
    """Rows of one length. Of those in the store the database keeps those of the last `here_s`."""

    name: str
    model: Any
    resolution: Resolution
    points: Callable[[Any, int], Iterator[Point]]
    here_s: int
    portion_s: int


LEVELS = (
    # Reports of the last 14 days are made of these by statements of their own (`metering.pipeline.quota_tables`).
    Level(FLOW[MINUTES], Minute, MINUTES, points_of_flow, MINUTES.kept_s + MINUTES.grace_s, 600),
    # Fleet shows a day of these.
    Level(FLOW[HOURS], Hour, HOURS, points_of_flow, 2 * DAY_S, 6 * 3600),
    Level(REQUESTS[MINUTES], RequestMinute, MINUTES, points_of_requests, 2 * 3600, 600),
    Level(REQUESTS[HOURS], RequestHour, HOURS, points_of_requests, 2 * DAY_S, 6 * 3600),
)


def write(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Write what is due, as far as `BUDGET_S` goes; how many moments that was. Nothing without a store."""
    store, now_s = store_installed(), int(clock.now().timestamp())
    mine = now_s + LEASE_S
    if store is None or not _claimed(now_s, mine):
        return 0
    try:
        return _written(store, clock, monotonic() + BUDGET_S)
    except StoreAway as error:
        LOG.warning("the metrics store does not answer, the history stays in the database until it does: %s", error)
        return 0
    finally:
        StoreWriter.objects.filter(until=mine).update(until=0)  # not what another has claimed since


def purge_written(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Remove what is in the store and needed here no longer, and what was noted of rows that have expired everywhere."""
    now_s = int(clock.now().timestamp())
    StoredSpan.objects.filter(until__lt=HOURS.oldest(now_s), at__lt=F("until")).delete()
    store = store_installed()
    if store is None:
        return
    for level in LEVELS:
        for span in StoredSpan.objects.filter(store=store.digest, name=level.name):
            limit = floor(min(span.until, now_s - level.here_s), level.resolution.step_s)
            if limit <= span.at:
                continue
            if span.purged < limit:  # said before it is done: rows that are not said to be here are asked of the store
                StoredSpan.objects.filter(pk=span.pk, purged__lt=limit).update(purged=limit)
            forget(level.model, limit, level.portion_s, since=span.at)


def _claimed(now_s: int, mine: int) -> bool:
    StoreWriter.objects.get_or_create(name="writer", defaults={"until": 0})
    free = StoreWriter.objects.filter(name="writer", until__lt=now_s) | StoreWriter.objects.filter(
        name="writer", until__gt=now_s + 2 * LEASE_S
    )  # of a clock that was far ahead: one that is so by a moment has its turn
    return bool(free.update(until=mine))


def _written(store: Store, clock: Clock, until_s: float) -> int:
    """The levels take turns, moment by moment, so that what is written stays about as old everywhere."""
    finish(clock=clock)  # of clusters that were silent the last minute: after this no row of requests comes late
    count, now_s = 0, int(clock.now().timestamp())
    finals = {level.name: final for level in LEVELS if (final := _final(level, now_s)) is not None}
    due = [(level, _span(store, level, finals[level.name])) for level in LEVELS if level.name in finals]
    while due and monotonic() < until_s:
        level, span = min(due, key=lambda each: each[1].until + each[0].resolution.step_s)
        if _moment_written(store, level, span, finals[level.name]):
            count += 1
        if span.until >= finals[level.name]:
            due.remove((level, span))
    return count


def _span(store: Store, level: Level, final: int) -> StoredSpan:
    """The last one; the first time, one that begins now: what was before stays in the database until it expires."""
    mine = StoredSpan.objects.filter(store=store.digest, name=level.name)
    return mine.order_by("at").last() or StoredSpan.objects.create(
        store=store.digest, name=level.name, at=final, until=final, purged=final
    )


def _moment_written(store: Store, level: Level, span: StoredSpan, final: int) -> bool:
    """Of the next rows, all of one moment. Whether there were any. Raises StoreAway."""
    step_s = level.resolution.step_s
    rows = level.model.objects.filter(at__gte=span.until, at__lt=final)
    at = rows.aggregate(least=Min("at"))["least"]
    if at is None:
        _reached(span, max(final, span.until))
        return False
    try:
        until_s = monotonic() + MOMENT_S
        for body in _bodies(level, at):
            store.write(body)
            if monotonic() > until_s:
                raise StoreAway(f"{level.name} of {at} take it more than {MOMENT_S:.0f} s")
    except StoreRefused as error:
        LOG.error(  # noqa: TRY400  # the store's own words say it all
            "the metrics store refuses the %s of %d, they stay in the database: %s", level.name, at, error
        )
        _passed_over(span, at, at + step_s)
        return True
    _reached(span, at + step_s)
    return True


def _bodies(level: Level, at: int) -> Iterator[bytes]:
    stands = stands_at(at, level.resolution.step_s)
    points: list[Point] = []
    for row in level.model.objects.filter(at=at).order_by("instance").iterator(ROWS_AT_ONCE):
        points += level.points(row, level.resolution.step_s)
        if len(points) >= POINTS_AT_ONCE:
            yield body_of(points, stands)
            points = []
    if points:
        yield body_of(points, stands)


def _reached(span: StoredSpan, until: int) -> None:
    span.until = until
    span.save(update_fields=["until"])


def _passed_over(span: StoredSpan, at: int, until: int) -> None:
    """[at, until) is in no span."""
    with transaction.atomic():
        if span.at == span.until:
            StoredSpan.objects.filter(pk=span.pk).delete()
        elif span.until < at:
            _reached(span, at)
        new = StoredSpan.objects.create(store=span.store, name=span.name, at=until, until=until, purged=until)
    span.pk, span.at, span.until, span.purged = new.pk, new.at, new.until, new.purged


def _final(level: Level, now_s: int) -> int | None:
    """Up to when rows have been made that nothing changes any more; None: there are none."""
    step_s = level.resolution.step_s
    if level.model in (RequestMinute, RequestHour):
        there = [mark_name(cluster.pk) for cluster in cluster_list()]
        rolled = list(RequestMark.objects.filter(pk__in=there, rolled__gt=0).values_list("rolled", flat=True))
        if not rolled:
            return None
        return floor(min(now_s, *(max(each, now_s - SETTLED_S) for each in rolled)), step_s)
    until = dict(RolledUp.objects.values_list("pk", "until"))
    minutes = until.get(MINUTES.step_s)
    if minutes is None or step_s not in until:
        return None
    if level.model is Minute:
        return floor(min(now_s, minutes) - AGAIN_S, step_s)
    return floor(min(until[step_s], minutes - AGAIN_S - MINUTES.step_s, now_s), step_s)
