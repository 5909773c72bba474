"""One round of each cluster's groups a minute, as rows. Of repetitions, and of two workers at once, the first has the minute.

A group whose figures are those of the minute before has that minute's row made longer; one update does it for all of them. Where
a cluster does not answer, or a group is gone, there is nothing: a gap, never a zero.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import transaction
from django.db.models import Q

from controlplane.clusters.services import for_each_cluster
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Unavailable
from controlplane.core.kept import keep, kept
from controlplane.core.portions import portions
from controlplane.groups.rebalances import FORGOTTEN_S
from controlplane.groups.rounds import gone_of, rebalanced_of, round_of
from controlplane.history.lag.expiry import expiry_keep
from controlplane.history.lag.known import AHEAD_S, groups_back, groups_gone, groups_to_miss
from controlplane.history.lag.looks import (
    dated_known,
    known_keep,
    look_begin,
    look_end,
    running_of,
    sized_known,
    step_now,
)
from controlplane.history.lag.rates import TOGETHER_S, Moved, Seen, moved_between
from controlplane.history.lag.rebalances import rebalances_keep
from controlplane.history.lag.rows import RUN_S, digest_of
from controlplane.history.lag.samples import figures_of, samples_keep
from controlplane.history.models import LagGroup, LagMark, LagMinutes
from controlplane.history.resolutions import MINUTES, floor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.clusters.models import PhysicalCluster
    from controlplane.groups.rounds import Round
    from controlplane.history.lag.samples import Figures

LOG = logging.getLogger(__name__)
AT_ONCE = 500


class Minute(NamedTuple):
    """What a row has of a group: its lag, as a sample has it, and records that moved in a minute."""

    messages: int
    oldest_ms: int | None
    size: int | None = None
    consumed: int | None = None
    produced: int | None = None

    @classmethod
    def of(cls, lag: Figures, moved: Moved) -> Minute:
        """Of one round."""
        return cls(*lag, *moved)


def sample(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Keep the lag of every group of the instances that run now; of how many groups that was."""
    return sum(for_each_cluster(lambda cluster: _minute_of(cluster, clock), "the lag of groups"))


def _minute_of(cluster: PhysicalCluster, clock: Clock) -> int:
    at = floor(int(clock.now().timestamp()), MINUTES.step_s)
    if not _is_first(cluster, at):
        return 0
    step = step_now(clock)
    look_begin(cluster, step, first=True)
    try:
        return _sample_of(cluster, at, step, clock)
    finally:
        look_end(cluster, step)


def _is_first(cluster: PhysicalCluster, at: int) -> bool:
    """Whether nobody else has a cluster's minute."""
    mark, _ = LagMark.objects.get_or_create(name=f"minute of cluster {cluster.pk}", defaults={"at": 0})
    free = Q(at__lt=at) | Q(at__gt=at + AHEAD_S)
    return LagMark.objects.filter(free, pk=mark.pk).update(at=at) == 1


def _sample_of(cluster: PhysicalCluster, at: int, step: int, clock: Clock) -> int:
    names = running_of(cluster)
    if not names:
        return 0
    begun_s = int(clock.now().timestamp())
    try:
        found = round_of(
            cluster.address, names, known=dated_known(cluster), known_sizes=sized_known(cluster), clock=clock
        )
    except Unavailable as error:
        LOG.warning("no lag of the groups of cluster %s: %s", cluster, error)
        return 0
    taken_s = round(found.seen.timestamp())
    known_keep(cluster, found.dated, found.sized)
    moved = _moved(cluster, Seen(taken_s, found.positions))
    lags = {
        (instance, group): Minute.of(figures_of(lag, taken_s), moved.get((instance, group), Moved()))
        for instance, groups in found.lags.items()
        for group, lag in groups.items()
    }
    ids = _ids(lags)
    _written({ids[name]: figures for name, figures in lags.items()}, at, taken_s - at)
    groups_back(sorted(ids.values()), begun_s)
    samples_keep(found, step, taken_s)
    expiry_keep(cluster.address, found, clock.now())
    try:
        _gone_noted(cluster, names, found, begun_s)
    except Exception:  # the lag is kept, and other clusters wait for theirs
        LOG.exception("which groups of cluster %s are gone is not known", cluster)
    try:
        _rebalances_sampled(cluster, names, found, clock)
    except Exception:  # likewise
        LOG.exception("rebalances of the groups of cluster %s are not known", cluster)
    return len(lags)


def _moved(cluster: PhysicalCluster, now: Seen) -> Mapping[tuple[str, str], Moved]:
    """Since the round before, whoever has made it: a few numbers of each group are kept for the next one."""
    key = f"lag:positions:{cluster.pk}"
    before = kept(key, LOG, "records since the last round are not known")
    keep(key, tuple(now), TOGETHER_S, LOG, "records until the next round will not be known")
    return moved_between(None if before is None else Seen(*before), now)


def _gone_noted(cluster: PhysicalCluster, names: Sequence[str], found: Round, begun_s: int) -> None:
    """Of groups that were there within the hour and are listed by nobody: those that their coordinators say are gone."""
    missed = groups_to_miss(instance_ids=names, now_s=begun_s).values_list("instance", "name", "pk")
    keys = {(instance, group): pk for instance, group, pk in missed if group not in found.lags.get(instance, {})}
    if not keys:
        return
    try:
        gone = gone_of(cluster.address, list(keys), found.listed)
    except Unavailable as error:
        LOG.warning("which groups of cluster %s are gone is not known: %s", cluster, error)
        return
    groups_gone(sorted(keys[each] for each in gone), begun_s)


def _rebalances_sampled(cluster: PhysicalCluster, names: Sequence[str], found: Round, clock: Clock) -> None:
    """Behind the lag, which is what rounds are for: brokers may take seconds for it."""
    key, now_s = f"lag:looks:{cluster.pk}", int(clock.now().timestamp())
    before = kept(key, LOG, "rebalances since the last round are not known") or {}
    rebalanced, looks = rebalanced_of(cluster.address, names, found.listed, before, now_s)
    keep(key, dict(looks), FORGOTTEN_S, LOG, "rebalances until the next round will not be known")
    rebalances_keep(rebalanced, clock.now())


def _ids(names: Mapping[tuple[str, str], Any]) -> dict[tuple[str, str], int]:
    """Of the groups' rows, made where there is none."""
    found: dict[tuple[str, str], int] = {}
    for part in portions(sorted(names), AT_ONCE):
        by_digest = {(instance, digest_of(group)): (instance, group) for instance, group in part}
        known = _known(by_digest)
        missing = [key for key in by_digest if key not in known]
        if missing:
            LagGroup.objects.bulk_create(
                [LagGroup(instance=key[0], digest=key[1], name=by_digest[key][1]) for key in missing],
                ignore_conflicts=True,
            )
            known |= _known(dict.fromkeys(missing))
        found |= {by_digest[key]: pk for key, pk in known.items()}
    return found


def _known(keys: Mapping[tuple[str, str], Any]) -> dict[tuple[str, str], int]:
    rows = LagGroup.objects.filter(
        instance__in={instance for instance, _ in keys}, digest__in=[digest for _, digest in keys]
    )
    found = {(row[0], row[1]): row[2] for row in rows.values_list("instance", "digest", "pk")}
    return {key: pk for key, pk in found.items() if key in keys}


def _written(lags: Mapping[int, Minute], at: int, late_s: int) -> None:
    """A group that has the minute keeps it: after a mark of a clock that was ahead, two may have taken it."""
    before = at - MINUTES.step_s
    begins = floor(at, RUN_S[MINUTES])  # a run does not go beyond its hour
    for portion in portions(sorted(lags), AT_ONCE):
        there = LagMinutes.objects.filter(group__in=portion, until__in=(before, at), at__gte=begins)
        rows = list(there.values_list("group", "until", *Minute._fields))
        taken = {group for group, until, *_ in rows if until == at}
        part = [group for group in portion if group not in taken]
        seen: dict[int, Minute] = {group: Minute(*figures) for group, until, *figures in rows if until == before}
        same = [group for group in part if seen.get(group) == lags[group]]
        others = [
            LagMinutes(group=group, at=at, until=at, late_s=late_s, **lags[group]._asdict())
            for group in part
            if seen.get(group) != lags[group]
        ]
        with transaction.atomic():
            if same:
                LagMinutes.objects.filter(group__in=same, until=before, at__gte=begins).update(until=at)
            LagMinutes.objects.bulk_create(others, ignore_conflicts=True)
