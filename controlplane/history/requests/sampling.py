"""Windows of requests from the masters to rows, each once, whoever asks how often.

Every five seconds each master is asked for what has settled since: windows that ended ten seconds ago, so that all brokers have
told theirs. Masters keep a minute of them: a worker, or a master, that was away for less costs nothing. The mark of a cluster
says up to which window it was done; it moves by compare-and-set in the transaction that writes the rows, so of two workers one
writes.

With the first window of a minute the one before is whole: it is added to the rows of its minute, its hour and its day, and to the
totals, in that transaction as well. So rows of every length are exact sums of windows, and nothing has to be rolled up again.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from django.db import transaction

from controlplane.clusters import master
from controlplane.clusters.services import cluster_list
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Unavailable
from controlplane.core.portions import portions
from controlplane.history.models import (
    RequestDay,
    RequestHour,
    RequestMark,
    RequestMinute,
    RequestSample,
    RequestTotal,
)
from controlplane.history.resolutions import DAY_S, HOURS, MINUTES, floor
from controlplane.instances.models import Instance, InstanceState
from quota.contracts.instance import ContractError
from quota.contracts.requests import WINDOW_S, RequestCounts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controlplane.clusters.models import PhysicalCluster
    from controlplane.history.models import RequestRow

LOG = logging.getLogger(__name__)
SETTLED_S = 10
"""After a window's end: brokers report every second, and their clocks need not agree to the second."""
AHEAD_S = 120
"""A mark further ahead than this is of a worker whose clock was wrong."""
AWAY_S = 1800
"""A cluster of which nothing was heard for so long tells no more of the minute at which that began."""
ASKED_AT_ONCE, ROWS_AT_ONCE = 200, 500
LEVELS: tuple[tuple[type[RequestRow], int], ...] = (
    (RequestMinute, MINUTES.step_s),
    (RequestHour, HOURS.step_s),
    (RequestDay, DAY_S),
)


def sample(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Keep what has settled of the requests of every instance that runs; how many rows of windows that was."""
    return sum(_sample_of(cluster, int(clock.now().timestamp())) for cluster in cluster_list())


def mark_name(cluster_id: int) -> str:
    """Of a cluster's mark."""
    return f"cluster {cluster_id}"


def _sample_of(cluster: PhysicalCluster, now_s: int) -> int:
    last = floor(now_s - SETTLED_S, WINDOW_S) - WINDOW_S
    mark, _ = RequestMark.objects.get_or_create(name=mark_name(cluster.pk), defaults={"taken": 0, "rolled": 0})
    if mark.taken > last + AHEAD_S:
        _set_back(mark, last)
    if mark.taken >= last:
        return 0
    running = Instance.objects.unscoped("everyone's requests are sampled").filter(
        state=InstanceState.RUNNING, cluster=cluster
    )
    names = list(running.order_by("pk").values_list("pk", flat=True))
    try:
        told = [row for part in portions(names, ASKED_AT_ONCE) for row in _told(cluster, part, mark.taken)]
    except Unavailable as error:
        LOG.debug("requests are not sampled: %s", error)
        return 0
    rows = [row for row in told if row.at <= last and row.at >= mark.rolled]
    with transaction.atomic():
        rolled = max(mark.rolled, floor(last + WINDOW_S, MINUTES.step_s))
        same = RequestMark.objects.filter(pk=mark.pk, taken=mark.taken, rolled=mark.rolled)
        if not same.update(taken=last, rolled=rolled):
            return 0
        RequestSample.objects.bulk_create(rows, ignore_conflicts=True)
        _roll_up(cluster, mark.rolled, rolled)
    return len(rows)


def _set_back(mark: RequestMark, last: int) -> None:
    """A clock that was ahead took what there was, and added it up: no more is counted of this minute, rather than twice."""
    rolled = floor(last + WINDOW_S, MINUTES.step_s) + MINUTES.step_s
    RequestMark.objects.filter(pk=mark.pk, taken=mark.taken).update(taken=last, rolled=rolled)


def finish(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Add up the last minute of clusters that have been away for long: their windows expire, and totals must not get less."""
    now_s = int(clock.now().timestamp())
    for cluster in cluster_list():
        mark = RequestMark.objects.filter(pk=mark_name(cluster.pk), taken__lt=now_s - AWAY_S).first()
        if mark is None:
            continue
        end = floor(mark.taken, MINUTES.step_s) + MINUTES.step_s
        with transaction.atomic():
            same = RequestMark.objects.filter(pk=mark.pk, taken=mark.taken, rolled=mark.rolled, rolled__lt=end)
            if same.update(rolled=end):
                _roll_up(cluster, mark.rolled, end)


def _roll_up(cluster: PhysicalCluster, start: int, end: int) -> None:
    """What began in [start, end), if anything can have: called once of each time."""
    if start < end:
        for part in portions(_asked(cluster, start, end), ROWS_AT_ONCE):
            _rolled_up(part, start, end)


def _asked(cluster: PhysicalCluster, start: int, end: int) -> list[str]:
    """Instances of the cluster that had requests in [start, end), also those that do not run any more."""
    rows = RequestSample.objects.filter(at__gte=start, at__lt=end).values("instance")
    found = Instance.objects.unscoped("everyone's requests are added up").filter(cluster=cluster, pk__in=rows)
    return list(found.order_by("pk").values_list("pk", flat=True))


def _told(cluster: PhysicalCluster, names: Sequence[str], after: int) -> list[RequestSample]:
    """What the master says of windows that began after this. Raises MasterUnavailable."""
    found = []
    for document in master.requests(cluster.address, names, after):
        try:
            name = document["instance"]
            for at, text in document["windows"]:
                RequestCounts.from_text(text)
                found.append(RequestSample(instance=name, at=int(at), windows=1, counts=text))
        except (ContractError, KeyError, TypeError, ValueError, AttributeError) as error:  # the others have theirs
            LOG.warning("no requests of %.32s: %r", document, error)
    wanted = frozenset(names)
    return [row for row in found if row.instance in wanted and row.at % WINDOW_S == 0]


def _rolled_up(names: Sequence[str], start: int, end: int) -> None:
    """What began in [start, end) is added to longer rows, and to totals. Called once of each time."""
    rows = list(RequestSample.objects.filter(instance__in=names, at__gte=start, at__lt=end))
    for model, step_s in LEVELS:
        added: dict[tuple[str, int], list[RequestSample]] = {}
        for row in rows:
            added.setdefault((row.instance, floor(row.at, step_s)), []).append(row)
        _added(model, added)
    totals: dict[str, list[RequestSample]] = {}
    for row in rows:
        totals.setdefault(row.instance, []).append(row)
    _totalled(totals, end)


def _added(model: type[RequestRow], added: dict[tuple[str, int], list[RequestSample]]) -> None:
    there = model._default_manager.filter(  # noqa: SLF001  # Django's documented API, despite its name
        instance__in={name for name, _ in added}, at__in={at for _, at in added}
    )
    known = {(row.instance, row.at): row for row in there}
    made = []
    for (name, at), rows in added.items():
        counts, windows = RequestCounts(), len(rows)
        before = known.get((name, at))
        if before is not None:
            counts.add_text(before.counts)
            windows += before.windows
        for row in rows:
            counts.add_text(row.counts)
        made.append(model(instance=name, at=at, windows=windows, counts=counts.to_text()))
    model._default_manager.bulk_create(  # noqa: SLF001
        made, update_conflicts=True, unique_fields=["instance", "at"], update_fields=["windows", "counts"]
    )


def _totalled(totals: dict[str, list[RequestSample]], until: int) -> None:
    known = RequestTotal.objects.in_bulk(list(totals))
    made = []
    for name, rows in totals.items():
        counts = RequestCounts()
        if name in known:
            counts.add_text(known[name].counts)
        for row in rows:
            counts.add_text(row.counts)
        made.append(RequestTotal(instance=name, until=until, counts=counts.to_text()))
    RequestTotal.objects.bulk_create(
        made, update_conflicts=True, unique_fields=["instance"], update_fields=["until", "counts"]
    )
