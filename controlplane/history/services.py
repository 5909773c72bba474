"""Sampling, rolling up and forgetting. Each may be repeated, and done by two workers at once: it changes nothing.

sample   one question for 200 instances to each master, and one look at the database, however many instances there are. A
         sample is its instance's and its ten seconds' only one. Where a master does not answer, has just become one, or says
         of an instance what nobody understands, there is none: a gap, never a zero.
roll up  minutes from samples, hours from minutes, in portions, each with the moment up to which that has been done. A step is
         made once it is over, and again for a while: a worker may have been slow, and throttled intervals are told after their
         end. After a pause it goes on where it was.
purge    rows that nobody can ask for any more, in portions; never one that has not been rolled up.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from django.db import connection, transaction
from django.db.models import Min

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.portions import portions
from controlplane.history.forgetting import forget
from controlplane.history.models import (
    Hour,
    Minute,
    RequestDay,
    RequestGap,
    RequestHour,
    RequestMinute,
    RequestSample,
    RequestTotal,
    RolledUp,
    Sample,
)
from controlplane.history.requests.sampling import finish
from controlplane.history.resolutions import HOURS, MINUTES, SAMPLES, Resolution, floor
from controlplane.history.rows import figures_of
from controlplane.history.statements import rolled_up, throttled_set
from controlplane.history.store.writing import purge_written
from controlplane.history.waiting import waited_by_step
from controlplane.instances.models import Instance, InstanceState
from controlplane.quotas.figures import figures_keep
from quota.contracts.report import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controlplane.history.models import Row

LOG = logging.getLogger(__name__)
ROWS_AT_ONCE = 200
PORTIONS_AT_ONCE = 60
"""In one run of a task: five hours of minutes, two and a half days of hours."""


@dataclass(frozen=True, slots=True)
class Level:
    """Rows of one length, from which they are made, and how much at once.

    The last `again_s` before what is new are made again, with it, and without anything new up to `settled_s` after a step's end.
    """

    model: type[Row]
    resolution: Resolution
    source: type[Row]
    portion_s: int
    again_s: int
    settled_s: int


ROLLED = (
    Level(Minute, MINUTES, Sample, portion_s=600, again_s=300, settled_s=300),
    Level(Hour, HOURS, Minute, portion_s=3600, again_s=3600, settled_s=600),
)
REQUESTS_KEPT = (
    (RequestSample, SAMPLES, 60),
    (RequestMinute, MINUTES, 600),
    (RequestHour, HOURS, 6 * 3600),
    (RequestDay, HOURS, 24 * 3600),
)
"""Rows of requests, how long they are kept, and how many seconds of them are removed at once."""
KEPT = ((Sample, SAMPLES, ROLLED[0], 60), (Minute, MINUTES, ROLLED[1], 600), (Hour, HOURS, None, 6 * 3600))
"""Rows, how long they are kept, what is made of them, and how many seconds of them are removed at once."""


def sample(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Keep what the masters say of every instance that runs now; how many instances that were."""
    at = floor(int(clock.now().timestamp()), SAMPLES.step_s)
    if Sample.objects.filter(at=at).exists():
        return 0
    documents = figures_keep(clock=clock)
    running = Instance.objects.unscoped("everyone's figures are sampled").filter(state=InstanceState.RUNNING)
    sizes = dict(running.values_list("pk", "storage_gib"))
    rows = [
        row for name, gib in sizes.items() if name in documents and (row := _sampled(name, at, documents[name], gib))
    ]
    Sample.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)


def _sampled(name: str, at: int, document: Mapping[str, Any], storage_gib: float) -> Sample | None:
    if document.get("learning"):  # a new master: brokers have not told it everything yet
        return None
    try:
        return Sample(instance=name, at=at, **figures_of(document, storage_gib))
    except (KeyError, TypeError, ValueError, AttributeError) as error:  # one instance must not cost the others theirs
        LOG.warning("no sample of %s: %r", name, error)
        return None


def roll_up(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Make minutes and hours of what has come, as far as `PORTIONS_AT_ONCE` go."""
    now_s = int(clock.now().timestamp())
    for level in ROLLED:
        for _ in range(PORTIONS_AT_ONCE):
            if not _portion_rolled_up(level, now_s):
                break


def _portion_rolled_up(level: Level, now_s: int) -> bool:
    """Whether there may be more."""
    step_s = level.resolution.step_s
    end = floor(now_s, step_s)
    if level.source is Minute:  # an hour is over when its minutes have been made
        end = min(end, floor(_done(ROLLED[0], end), step_s))
    done = _done(level, end)
    if done >= end and now_s - end > level.settled_s:
        return False
    start = done - level.again_s
    following = _oldest(level.source, start)  # of a pause there is nothing to be made
    until = min(max(done + level.portion_s, end if following is None else floor(following, step_s)), end)
    if start >= until:
        return False
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(rolled_up(level.source, level.model, step_s), [start, until])
        if level.model is Minute:
            _throttled_set(start, until)
        RolledUp.objects.filter(pk=step_s, until__lt=until).update(until=until)
    return until < end


def _done(level: Level, end: int) -> int:
    """Up to when; the first time, up to the oldest row that there is."""
    step_s = level.resolution.step_s
    found = RolledUp.objects.filter(pk=step_s).first()
    if found is None:
        oldest = _oldest(level.source, 0)
        begins = end if oldest is None else min(end, floor(oldest, step_s))
        found, _ = RolledUp.objects.get_or_create(pk=step_s, defaults={"until": begins})
    return min(found.until, end)  # a clock that was ahead has made steps that are still to come


def _oldest(model: type[Row], start: int) -> int | None:
    """When the first row from then on begins."""
    found: int | None = model._default_manager.filter(at__gte=start).aggregate(least=Min("at"))["least"]  # noqa: SLF001
    return found


def _throttled_set(start: int, until: int) -> None:
    waited = waited_by_step(start, until, MINUTES.step_s)
    minutes = sorted({(instance, at) for instance, _, at in waited})
    with connection.cursor() as cursor:
        for part in portions(minutes, ROWS_AT_ONCE):
            rows: list[tuple[Any, ...]] = [
                (instance, at, *(waited.get((instance, direction, at), 0) for direction in DIRECTIONS))
                for instance, at in part
            ]
            cursor.execute(throttled_set(len(part)), list(chain.from_iterable(rows)))


def purge(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Remove what is older than anybody may ask for."""
    now_s = int(clock.now().timestamp())
    done = dict(RolledUp.objects.values_list("pk", "until"))
    for model, resolution, level, portion_s in KEPT:
        limit = resolution.oldest(now_s)
        if level is not None:  # what may be rolled up again stays whole
            limit = min(limit, done.get(level.resolution.step_s, 0) - level.again_s)
        forget(model, limit, portion_s)
    finish(clock=clock)
    for rows, resolution, portion_s in REQUESTS_KEPT:
        forget(rows, resolution.oldest(now_s), portion_s)
    for ended in (RequestTotal, RequestGap):
        ended.objects.filter(until__lt=HOURS.oldest(now_s)).delete()
    purge_written(clock=clock)
