"""The newest figures that are known of instances, and of groups: what alarms judge, and what a tenant's Prometheus reads.

What is not fresh is absent, never zero: a master that is away leaves no samples, and a group that is gone leaves no minutes. One
that is known to be deleted is absent at once. Of
an instance there is its newest sample, and throttled time, which is told half a minute late (`selectors.TOLD_WITHIN_S`): so it is
that of the newest step of which it is known, or of a longer time that ends with this step. A clock that was ahead may have left
rows of later: they are not of now.

A few statements for all instances together, however many there are. The caller has them from a selector within an organisation,
or is the machinery of all.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.db.models import F, OuterRef, Q, Subquery

from controlplane.groups.earlier import Earlier
from controlplane.groups.rounds import MOST_GROUPS
from controlplane.history.lag.rows import GONE_AFTER_S, RUN_S, age_s, digest_of
from controlplane.history.metrics import MEASURED, SET, WAITED
from controlplane.history.models import LagGroup, LagMinutes, Sample
from controlplane.history.requests.figures import values_of
from controlplane.history.requests.reading import lately
from controlplane.history.resolutions import MINUTES, SAMPLES, floor
from controlplane.history.selectors import TOLD_WITHIN_S
from controlplane.history.waiting import waited_by_step

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from django.db.models import QuerySet

    from controlplane.history.selectors import Number
    from controlplane.history.waiting import Waited

FRESH_S = 60
"""What is older is not of now. Throttled time has to be of that time as well, though it ends half a minute ago."""
LAG_FRESH_S = 3 * MINUTES.step_s
_COLUMNS = ("instance", "at", *MEASURED, *SET)


@dataclass(frozen=True, slots=True)
class Latest:
    """Of one instance. `at`: when its newest sample was taken; None: there is none that is fresh.

    `values` by the metrics' names in the history. Of a limit or an allocation None is unlimited where there is a sample; what is
    absent is not known.
    """

    at: int | None = None
    values: Mapping[str, Number] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LatestLag:
    """Of one group in its last minute; None: the age of its oldest unread record, its bytes, or what moved are not known.

    `consumed` and `produced` are records in a minute (`lag.rates`).
    """

    messages: int
    seconds: float | None
    size: int | None = None
    taken_s: int = field(default=0, compare=False)  # when
    consumed: int | None = None
    produced: int | None = None


def latest_get(
    names: Sequence[str],
    now_s: int,
    *,
    fresh_s: int = FRESH_S,
    waited_s: int = SAMPLES.step_s,
    with_requests: bool = False,
) -> dict[str, Latest]:
    """Of each of these instances. Throttled time is that of the last `waited_s` seconds that are known, in ms a second.

    So are requests, if they are wanted; None of a latency: there was no such request.
    """
    step_s = SAMPLES.step_s
    begins = floor(now_s - max(fresh_s, FRESH_S), step_s) - waited_s
    rows = Sample.objects.filter(instance__in=names, at__gte=begins, at__lte=now_s).order_by("at").values(*_COLUMNS)
    samples: defaultdict[str, dict[int, Mapping[str, Any]]] = defaultdict(dict)
    for row in rows:
        samples[row["instance"]][row["at"]] = row
    known_to = floor(now_s - TOLD_WITHIN_S, step_s)
    waited = _by_instance(waited_by_step(begins, known_to, step_s, instances=names))
    requests = lately(names, now_s, waited_s, FRESH_S) if with_requests else {}
    oldest = floor(now_s - FRESH_S, step_s)
    found = {}
    for name in names:
        ours = samples.get(name, {})
        newest = max((at for at in ours if at >= floor(now_s - fresh_s, step_s)), default=None)
        values: dict[str, Number] = {}
        if newest is not None:
            values = {metric: ours[newest][metric] for metric in (*MEASURED, *SET)}
        throttled = _throttled(ours, waited.get(name, {}), range(oldest, known_to, step_s), waited_s)
        counted = values_of(requests[name], waited_s) if name in requests else {}
        found[name] = Latest(newest, {**values, **throttled, **counted})
    return found


def lags_get(wanted: Collection[tuple[str, str]], now_s: int) -> dict[tuple[str, str], LatestLag]:
    """By instance and group: of those groups of which there is a fresh minute."""
    keys = {(instance, digest_of(group)): (instance, group) for instance, group in wanted}
    if not keys:
        return {}
    rows = _there(instance__in={instance for instance, _ in keys}, digest__in={digest for _, digest in keys})
    ours = {
        pk: keys[instance, digest]
        for pk, instance, digest in rows.values_list("pk", "instance", "digest")
        if (instance, digest) in keys
    }
    return {ours[pk]: _lag(row) for pk, row in _last_minutes(list(ours), now_s).items()}


def lags_of(instance: str, now_s: int, most: int) -> dict[str, LatestLag]:
    """By name: of an instance's groups of which there is a fresh minute, `most` of them, those furthest behind."""
    ours = _there(instance=instance)
    last = _last_minutes(ours.values("pk"), now_s)
    worst = sorted(last, key=lambda pk: (-last[pk].messages, pk))[:most]
    names = dict(ours.filter(pk__in=worst).values_list("pk", "name"))
    return {names[pk]: _lag(last[pk]) for pk in worst if pk in names}  # one may have been purged since


Largest = tuple[float, str]
"""A figure, and the name of the group whose it is."""


def worst_get(names: Sequence[str], now_s: int) -> dict[str, dict[str, Largest]]:
    """Of those of these instances of which any group has a fresh minute: the largest of each figure of the history of lag.

    By the metric's name; one that is known of no group is absent. Of groups that have as much, that which was seen first.
    """
    if not names:
        return {}
    of = dict(_there(instance__in=names).values_list("pk", "instance"))
    last = _last_minutes(_there(instance__in=names).values("pk"), now_s)
    largest: dict[str, dict[str, tuple[float, int]]] = {}
    for pk in sorted(last):
        if pk not in of:  # it came between the two statements
            continue
        ours = largest.setdefault(of[pk], {})
        for metric, value in _figures(last[pk]):
            if value is not None and (metric not in ours or value > ours[metric][0]):
                ours[metric] = float(value), pk
    wanted = {pk for ours in largest.values() for _, pk in ours.values()}
    called = dict(LagGroup.objects.filter(pk__in=wanted).values_list("pk", "name"))
    return {
        name: {metric: (value, called.get(pk, "")) for metric, (value, pk) in ours.items()}
        for name, ours in largest.items()
    }


@dataclass(frozen=True, slots=True)
class Doubts:
    """Of one instance's groups that a round of the last hour has seen: what they have now and nobody knows.

    By the metric's name in the history of lag. `unseen`: of groups without a fresh minute, the largest of what they had last.
    Such a group may be unreadable (a partition of its topic has no leader), not well. `unknown`: groups of whose last minute the
    figure is not known, with what it was in the newest minute of the last hour in which it was; None: there is none.
    """

    unseen: Mapping[str, Largest] = field(default_factory=dict)
    unknown: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)


NO_DOUBTS = Doubts()


def doubts_get(names: Sequence[str], now_s: int) -> dict[str, Doubts]:
    """Of those of these instances of whose groups not all is known now."""
    if not names:
        return {}
    this = floor(now_s, MINUTES.step_s)
    minutes = LagMinutes.objects.filter(group=OuterRef("pk"), at__lte=now_s).order_by("-at")
    # By where rows begin as well: of a group whose bytes were never known, all of its 15 days would be read otherwise.
    since = this - GONE_AFTER_S
    of_hour = minutes.filter(at__gte=since - RUN_S[MINUTES], until__gte=since)
    groups = _there(instance__in=names).annotate(
        last_at=Subquery(minutes.values("at")[:1]),
        last_until=Subquery(minutes.values("until")[:1]),
        sized_at=Subquery(of_hour.filter(size__isnull=False).values("at")[:1]),
        dated_at=Subquery(of_hour.filter(oldest_ms__isnull=False).values("at")[:1]),
    )
    found = groups.filter(last_until__gte=this - GONE_AFTER_S).filter(
        Q(last_until__lt=this - LAG_FRESH_S)
        | ~Q(last_at=F("sized_at"))
        | ~Q(last_at=F("dated_at"))
        | Q(sized_at=None)
        | Q(dated_at=None)
    )
    of = {row.pk: row for row in found}
    moments = {at for row in of.values() for at in (row.last_at, row.sized_at, row.dated_at) if at is not None}
    rows = {
        (row.group, row.at): dict(_figures(row))
        for row in LagMinutes.objects.filter(group__in=list(of), at__in=moments)
    }
    unseen: defaultdict[str, dict[str, Largest]] = defaultdict(dict)
    unknown: defaultdict[str, dict[str, dict[str, float | None]]] = defaultdict(dict)
    for pk, row in sorted(of.items()):
        known_at = {"lag_bytes": row.sized_at, "lag_seconds": row.dated_at}
        for metric, value in rows.get((pk, row.last_at), {}).items():
            if value is None:
                earlier = rows.get((pk, known_at[metric]), {}).get(metric)
                unknown[row.instance].setdefault(metric, {})[row.name] = earlier
            elif row.last_until < this - LAG_FRESH_S:
                ours = unseen[row.instance]
                if metric not in ours or value > ours[metric][0]:
                    ours[metric] = float(value), row.name
    return {name: Doubts(unseen.get(name, {}), unknown.get(name, {})) for name in {*unseen, *unknown}}


def _there(**of: Any) -> QuerySet[LagGroup]:
    """Groups of which nobody has said that they are gone."""
    return LagGroup.objects.filter(deleted_at=None, **of)


def _figures(row: LagMinutes) -> tuple[tuple[str, float | None], ...]:
    """By their names in the history of lag; None: not known."""
    lag = _lag(row)
    return ("lag_messages", lag.messages), ("lag_bytes", lag.size), ("lag_seconds", lag.seconds)


def earlier_lags(instance: str, now_s: int, names: Collection[str] | None) -> dict[str, Earlier]:
    """What pages about groups ask for: see `groups.earlier`."""
    if names is None:
        found = lags_of(instance, now_s, MOST_GROUPS)
    else:
        found = {name: each for (_, name), each in lags_get([(instance, name) for name in names], now_s).items()}
    return {name: Earlier(each.messages, each.seconds, each.taken_s) for name, each in found.items()}


def _by_instance(waited: Waited) -> dict[str, dict[int, dict[str, int]]]:
    """Milliseconds by instance, beginning of a step, and direction."""
    found: defaultdict[str, dict[int, dict[str, int]]] = defaultdict(dict)
    for (instance, direction, at), waited_ms in waited.items():
        found[instance].setdefault(at, {})[direction] = waited_ms
    return dict(found)


def _throttled(
    samples: Mapping[int, object], waited: Mapping[int, Mapping[str, int]], steps: range, waited_s: int
) -> dict[str, Number]:
    """Of the time that ends with the newest of `steps` of which anything is known: a step without a sample may have waits."""
    last = max((at for at in (*samples, *waited) if at in steps), default=None)
    if last is None:
        return {}
    window = range(last + steps.step - waited_s, last + 1, steps.step)
    known = [at for at in window if at in samples or at in waited]
    return {
        metric: round(sum(waited.get(at, {}).get(direction, 0) for at in known) / (len(known) * steps.step), 1)
        for metric, direction in WAITED.items()
    }


def _last_minutes(groups: Sequence[int] | QuerySet[Any], now_s: int) -> dict[int, LagMinutes]:
    since = floor(now_s, MINUTES.step_s) - LAG_FRESH_S
    rows = LagMinutes.objects.filter(group__in=groups, until__gte=since, at__lte=now_s).order_by("group", "until")
    return {row.group: row for row in rows}


def _lag(row: LagMinutes) -> LatestLag:
    seconds = age_s(row.until + row.late_s, row.oldest_ms)
    return LatestLag(
        row.messages,
        None if seconds is None else round(seconds, 1),
        row.size,
        taken_s=row.until + row.late_s,
        consumed=row.consumed,
        produced=row.produced,
    )
