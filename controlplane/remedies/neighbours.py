"""Noisy neighbours: brokers' loop time by the minute, scores of what was slow meanwhile, and who the neighbours were.

Once a minute each master is asked, broker by broker, for the windows of ten seconds that were told of the minute before: when all
six are there, or else what there is half a minute later. Of each instance and broker a row is kept for a day: how slow producing
and fetching were in the ten seconds in which each was slowest, what others had of the loop then, and the time that it worked for
the instance in the whole minute. The score is worked out then, from the rows of the hour before, of those alone that are slow
enough to have one.

A tenant is told how much of a broker others had, and never who they are, nor how many: that is for operators.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from controlplane.clusters import master
from controlplane.clusters.selectors import broker_list
from controlplane.clusters.services import cluster_list
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Unavailable
from controlplane.history.forgetting import forget
from controlplane.instances.models import Instance
from controlplane.instances.selectors import instance_get
from controlplane.remedies.models import NeighbourMinute
from controlplane.remedies.scores import (
    LEAST_MORE_US,
    LEAST_SCORE,
    MINUTE_S,
    NONE,
    Kind,
    Minute,
    Score,
    Slow,
    Spell,
    score_of,
    spells,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from django.db.models import QuerySet

    from controlplane.clusters.models import PhysicalCluster
    from controlplane.tenants.models import Organisation
    from quota.contracts.loop_time import LoopWindow

LOG = logging.getLogger(__name__)
SETTLED_S = 15
"""After a minute's end: windows are told with the first report behind theirs."""
LATE_S = 40
"""After a minute's end: what is not there by then does not come any more."""
WINDOWS = 6
MINUTES_BACK = 2
"""Asked for: whoever was late by a minute finds a part of it."""
HOUR_S = 3600
PURGED_AT_ONCE_S = 600
KEPT = timedelta(days=1)
ROWS_AT_ONCE = 500
LEAST_KEPT_US = 1_000
"""Of the loop in a minute: an instance that asked nothing and used less is nobody's neighbour."""
MOST_SPELLS, MOST_MINUTES = 50, 2_000
MOST_NAMED = 5
LEAST_NAMED_US = 600_000
"""Of the loop in a minute, a hundredth: who used less is not named to operators."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """For operators: who had the broker meanwhile."""

    instance: str
    percent: int  # of the broker's time in that minute


@dataclass(frozen=True, slots=True)
class Noise:
    """A spell, in words and with its neighbours; to tenants there are none."""

    spell: Spell
    neighbours: tuple[Neighbour, ...] = ()

    @property
    def started_at(self) -> datetime:
        """The first minute's beginning."""
        return datetime.fromtimestamp(self.spell.started_at, UTC)

    @property
    def ended_at(self) -> datetime:
        """The last minute's end."""
        return datetime.fromtimestamp(self.spell.ended_at, UTC)

    @property
    def score(self) -> int:
        """The highest."""
        return self.spell.worst.score.score

    @property
    def p99_ms(self) -> float:
        """Of the worst minute."""
        return round(self.spell.p99_us / 1000, 1)

    @property
    def usual_ms(self) -> float:
        """Of the hour before it."""
        return round(self.spell.worst.score.usual_us / 1000, 1)

    @property
    def sentence(self) -> str:
        """In plain words."""
        start, end = f"{self.started_at:%H:%M}", f"{self.ended_at:%H:%M}"  # UTC
        broker, took, usual = self.spell.worst.broker, f"{self.p99_ms:g}", f"{self.usual_ms:g}"
        percent = self.spell.others_percent
        if self.spell.worst.score.kind is Kind.FETCH:
            return (
                f"On broker {broker} between {start} and {end} UTC fetches took {took} ms instead of {usual} ms; {percent} % of "
                "the broker's time went to other instances."
            )
        return (
            f"On broker {broker} between {start} and {end} UTC producing took {took} ms instead of {usual} ms; {percent} % of "
            "the broker's time went to other instances."
        )


# --- keeping ----------------------------------------------------------------------------------------------------------


def minutes_take(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Keep what brokers told of the last minutes, each once; how many rows that was."""
    now_s = int(clock.now().timestamp())
    last = (now_s - SETTLED_S) // MINUTE_S * MINUTE_S - MINUTE_S
    taken = 0
    for cluster in cluster_list():
        for at in range(last - (MINUTES_BACK - 1) * MINUTE_S, last + 1, MINUTE_S):
            taken += _taken(cluster, at, is_late=now_s >= at + MINUTE_S + LATE_S)
    return taken


def minutes_purge(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Forget those that are more than a day old."""
    forget(NeighbourMinute, int((clock.now() - KEPT).timestamp()), PURGED_AT_ONCE_S)


def _taken(cluster: PhysicalCluster, at: int, *, is_late: bool) -> int:
    kept = NeighbourMinute.objects.filter(cluster=cluster.pk, at=at).values_list("broker", flat=True).distinct()
    wanted = sorted({row.broker_id for row in broker_list(cluster)} - set(kept))
    try:
        told = {broker: master.loop_times(cluster.address, broker, at) for broker in wanted}
    except Unavailable as error:
        LOG.debug("nobody says how brokers of %s spent their time: %s", cluster, error)
        return 0
    slows = {
        (name, broker): found
        for broker, windows in told.items()
        if is_late or len(windows) >= WINDOWS
        for name, found in _slowest(windows).items()
    }
    scores = _scores(cluster.pk, at, slows)
    rows = []
    for (name, broker), minute in sorted(slows.items()):
        score = scores.get((name, broker), NONE)
        slow = minute.with_score(score)
        rows.append(
            NeighbourMinute(
                cluster=cluster.pk,
                instance=name,
                broker=broker,
                at=at,
                produce_p99_us=slow.produce_p99_us,
                fetch_p99_us=slow.fetch_p99_us,
                own_us=slow.own_us,
                others_us=slow.others_us,
                elapsed_us=slow.elapsed_us,
                minute_us=minute.minute_us,
                score=score.score,
                kind=score.kind.value,
                usual_us=score.usual_us,
            )
        )
    NeighbourMinute.objects.bulk_create(rows, batch_size=ROWS_AT_ONCE, ignore_conflicts=True)
    return len(rows)


@dataclass(frozen=True, slots=True)
class _Minute:
    """Of an instance on a broker: of each kind of requests the ten seconds in which they were slowest."""

    produce: Slow
    fetch: Slow
    minute_us: int  # that the loop worked for it, of a whole minute

    @property
    def kinds(self) -> tuple[Slow, Slow]:
        """Each without the other kind."""
        return self.produce.only(Kind.PRODUCE), self.fetch.only(Kind.FETCH)

    def with_score(self, score: Score) -> Slow:
        """As it is kept: both percentiles, and the time of the kind that has the score, or is slower."""
        is_fetch = self.fetch.fetch_p99_us > self.produce.produce_p99_us
        if score.score:
            is_fetch = score.kind is Kind.FETCH
        time = self.fetch if is_fetch else self.produce
        return replace(time, produce_p99_us=self.produce.produce_p99_us, fetch_p99_us=self.fetch.fetch_p99_us)


def _slowest(windows: Mapping[int, LoopWindow]) -> dict[str, _Minute]:
    """By instance. Of a minute of which less was told, what the loop worked is taken for as much in all of it."""
    slows: dict[str, list[Slow]] = defaultdict(list)
    for _, window in sorted(windows.items()):
        for name, use in window.rows.items():
            others_us = max(0, window.all_us - use.own_us)
            slows[name].append(Slow(use.produce_p99_us, use.fetch_p99_us, use.own_us, others_us, window.elapsed_us))
    elapsed_us = max(1, sum(window.elapsed_us for window in windows.values()))
    found = {}
    for name, some in slows.items():
        minute = _Minute(
            max(some, key=lambda each: each.produce_p99_us),
            max(some, key=lambda each: each.fetch_p99_us),
            round(MINUTE_S * 1_000_000 * sum(each.own_us for each in some) / elapsed_us),
        )
        if minute.produce.produce_p99_us or minute.fetch.fetch_p99_us or minute.minute_us >= LEAST_KEPT_US:
            found[name] = minute
    return found


def _scores(cluster: int, at: int, minutes: Mapping[tuple[str, int], _Minute]) -> dict[tuple[str, int], Score]:
    """Of those that can have one: slow enough, while others had enough of the broker."""
    wanted = {
        key
        for key, minute in minutes.items()
        if any(
            max(slow.produce_p99_us, slow.fetch_p99_us) > LEAST_MORE_US
            and 100 * slow.others_us >= LEAST_SCORE * slow.elapsed_us
            for slow in minute.kinds
        )
    }
    if not wanted:
        return {}
    before: dict[tuple[str, int], list[Slow]] = defaultdict(list)
    rows = NeighbourMinute.objects.filter(cluster=cluster, at__gte=at - HOUR_S, at__lt=at, score__lt=LEAST_SCORE)
    for row in rows.filter(instance__in={name for name, _ in wanted}).iterator():
        if (row.instance, row.broker) in wanted:
            before[row.instance, row.broker].append(_slow(row))
    return {
        key: max((score_of(slow, before.get(key, ())) for slow in minutes[key].kinds), key=lambda each: each.score)
        for key in wanted
    }


def _slow(row: NeighbourMinute) -> Slow:
    return Slow(row.produce_p99_us, row.fetch_p99_us, row.own_us, row.others_us, row.elapsed_us)


# --- telling ----------------------------------------------------------------------------------------------------------


def noise_get(*, organisation: Organisation, instance_id: str, start: datetime, end: datetime) -> list[Noise]:
    """Of an instance, the newest first, of minutes that began in [start, end); nobody is named. Raises NotFound."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    return noise_of(instance, start, end)


def noise_of(instance: Instance, start: datetime, end: datetime) -> list[Noise]:
    """The same, of an instance that the caller has from a selector."""
    rows = NeighbourMinute.objects.filter(instance=instance.id, cluster=instance.cluster_id)
    return [Noise(spell) for spell in _spells(_between(rows, start, end))]


def noise_everywhere(*, start: datetime, end: datetime, instance: Instance | None = None) -> list[Noise]:
    """For operators: of all instances, or of one, with those that had most of the broker meanwhile."""
    wanted = NeighbourMinute.objects.all() if instance is None else NeighbourMinute.objects.filter(instance=instance.id)
    rows = list(_between(wanted, start, end))
    clusters = {(row.instance, row.broker, row.at): row.cluster for row in rows}
    found = _spells(rows)
    places = {
        (clusters[spell.worst.instance, spell.worst.broker, spell.worst.at], spell.worst.broker, spell.worst.at)
        for spell in found
    }
    named = _neighbours(places)
    noise = []
    for spell in found:
        worst = spell.worst
        place = (clusters[worst.instance, worst.broker, worst.at], worst.broker, worst.at)
        others = [each for each in named.get(place, ()) if each.instance != worst.instance]
        noise.append(Noise(spell, tuple(others[:MOST_NAMED])))
    return noise


def _between(rows: QuerySet[NeighbourMinute], start: datetime, end: datetime) -> QuerySet[NeighbourMinute]:
    between = rows.filter(at__gte=int(start.timestamp()), at__lt=int(end.timestamp()), score__gte=LEAST_SCORE)
    return between.order_by("-at", "-score")[:MOST_MINUTES]


def _spells(rows: Iterable[NeighbourMinute]) -> Sequence[Spell]:
    minutes = [
        Minute(row.instance, row.broker, row.at, _slow(row), Score(row.score, Kind(row.kind), row.usual_us))
        for row in rows
    ]
    return spells(minutes)[:MOST_SPELLS]


def _neighbours(places: set[tuple[int, int, int]]) -> dict[tuple[int, int, int], list[Neighbour]]:
    """By cluster, broker and minute, who had most first: one more than are named, since one may be who was slow."""
    if not places:
        return {}
    rows = NeighbourMinute.objects.filter(
        cluster__in={cluster for cluster, _, _ in places},
        broker__in={broker for _, broker, _ in places},
        at__in={at for _, _, at in places},
        minute_us__gte=LEAST_NAMED_US,
    )
    found: dict[tuple[int, int, int], list[Neighbour]] = defaultdict(list)
    for row in rows.order_by("-minute_us", "instance").iterator():
        place = (row.cluster, row.broker, row.at)
        if place in places and len(found[place]) <= MOST_NAMED:
            found[place].append(Neighbour(row.instance, min(100, round(row.minute_us / (MINUTE_S * 10_000)))))
    return found
