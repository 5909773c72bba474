"""Windows of requests from the masters to rows, each once, whoever asks how often.

Every five seconds each master is asked for the window that comes next, if it ended ten seconds ago. It is taken when every
registered broker has told all of it: one whose line to the master is away for a while tells it later. Masters keep a minute of
windows. So what is not whole within HELD_S is given up, as is what nobody asked for in time: it leaves a gap, in which nothing is
known of any instance of the cluster, since the sum without a broker would be a wrong number.

The mark of a cluster says up to which window it was done; it moves by compare-and-set in the transaction that writes the rows, so
of two workers one writes. It moves by the brokers' clocks: a worker whose own is ahead passes over nothing.

With the first window of a minute the one before is whole: it is added to the rows of its minute, its hour and its day, and to the
totals, in that transaction as well. So rows of every length are exact sums of windows, and nothing has to be rolled up again.

A row is the sum over brokers. What topics moved stands beside it, and what was asked of each broker; and each broker of a
cluster has rows of its own, of all its instances together: they are made, and added up, as those of an instance that is called
`broker_name`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import orjson
from django.db import transaction
from django.db.models import Max

from controlplane.clusters import master
from controlplane.clusters.selectors import broker_count, broker_list
from controlplane.clusters.services import for_each_cluster
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Unavailable
from controlplane.core.portions import portions
from controlplane.history.models import (
    RequestDay,
    RequestGap,
    RequestHour,
    RequestMark,
    RequestMinute,
    RequestSample,
    RequestTotal,
)
from controlplane.history.requests import by_broker
from controlplane.history.resolutions import DAY_S, HOURS, MINUTES, floor
from controlplane.instances.models import Instance, InstanceState
from quota.contracts.instance import ContractError
from quota.contracts.requests import WINDOW_S, RequestCounts
from quota.contracts.topics_moved import TopicsMoved

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from django.db.models import QuerySet

    from controlplane.clusters.models import PhysicalCluster
    from controlplane.history.models import RequestRow

LOG = logging.getLogger(__name__)
SETTLED_S = 10
"""After a window's end: brokers report every second, and nobody is asked in vain."""
HELD_S = 50
"""So long before the newest window's end one may have begun that is waited for: a minute of them is kept, and one to spare."""
AHEAD_S = 120
"""A mark further ahead than this is of a worker whose clock was wrong."""
AWAY_S = 1800
"""A cluster of which nothing was heard for so long tells no more of the minute at which that began."""
GONE_S = 24 * 3600
"""A broker that has been away for so long has no totals; one that comes back later begins anew, as counters may."""
ASKED_AT_ONCE, ROWS_AT_ONCE = 20, 500
"""Instances of a master."""
TEXTS_AT_ONCE = 80
"""Of a master, one of each broker for an instance: most are a kilobyte, but of this many the largest are one answer, too."""
MOST_TOPICS, MOST_TOPIC_BYTES = 500, 32 * 2**10
"""That are named in a row; of those of a window a broker names fewer."""
LEVELS: tuple[tuple[type[RequestRow], int], ...] = (
    (RequestMinute, MINUTES.step_s),
    (RequestHour, HOURS.step_s),
    (RequestDay, DAY_S),
)


def sample(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Keep what has settled of the requests of every instance that runs; how many rows of windows that was."""
    return sum(for_each_cluster(lambda cluster: _sample_of(cluster, int(clock.now().timestamp())), "requests"))


def mark_name(cluster_id: int) -> str:
    """Of a cluster's mark."""
    return f"cluster {cluster_id}"


def broker_name(cluster_id: int, broker: int) -> str:
    """Of a broker, in the place of an instance's id: none has a slash."""
    return f"{cluster_id}/{broker}"


def _sample_of(cluster: PhysicalCluster, now_s: int) -> int:
    count = 0
    while (rows := _next_window(cluster, floor(now_s - SETTLED_S, WINDOW_S) - WINDOW_S)) is not None:
        count += rows
    return count


def _next_window(cluster: PhysicalCluster, last: int) -> int | None:
    """Take the next one, or give up those that it is too late for; how many rows that was. None: there is none up to `last`."""
    mark, _ = RequestMark.objects.get_or_create(name=mark_name(cluster.pk), defaults={"taken": 0, "rolled": 0})
    if mark.taken > last + AHEAD_S:
        _set_back(cluster, mark, last)
    at = mark.taken + WINDOW_S
    if at > last:
        return None
    running = _instances_of(cluster).filter(state=InstanceState.RUNNING)
    try:
        until, rows = _told(cluster, list(running.order_by("pk").values_list("pk", flat=True)), at)
    except Unavailable as error:
        LOG.debug("requests are not sampled: %s", error)
        return None
    kept_from = floor(max(until.values(), default=last + 2 * WINDOW_S), WINDOW_S) - HELD_S
    if at < kept_from:
        return _given_up(cluster, mark, min(kept_from, last + WINDOW_S), until)
    if at + WINDOW_S > min(until.values(), default=last + WINDOW_S):
        LOG.debug("requests are not sampled: brokers have told up to %s", until)
        return None
    return _moved(cluster, mark, at + WINDOW_S, rows)


def _given_up(cluster: PhysicalCluster, mark: RequestMark, end: int, until: Mapping[int, int]) -> int | None:
    start = mark.taken + WINDOW_S
    if not mark.taken or not until:  # before the first window nothing is missing, nor where no instance runs
        return _moved(cluster, mark, end)
    LOG.warning("nobody knows the requests of %s from %d to %d: brokers have told up to %s", mark, start, end, until)
    return _moved(cluster, mark, end, gap=(start, end))


def _moved(
    cluster: PhysicalCluster,
    mark: RequestMark,
    end: int,
    rows: Sequence[RequestSample] = (),
    gap: tuple[int, int] | None = None,
) -> int | None:
    """All that began before `end` is done: how many rows that was; None where another worker was quicker."""
    rolled = max(mark.rolled, floor(end, MINUTES.step_s))
    counted = [row for row in rows if row.at >= mark.rolled]
    with transaction.atomic():
        same = RequestMark.objects.filter(pk=mark.pk, taken=mark.taken, rolled=mark.rolled)
        if not same.update(taken=end - WINDOW_S, rolled=rolled):
            return None
        if gap is not None:
            _leave_gap(mark.pk, *gap)
        RequestSample.objects.bulk_create(counted, ignore_conflicts=True)
        _roll_up(cluster, mark.rolled, rolled)
    return len(counted)


def _leave_gap(name: str, start: int, end: int) -> None:
    """It may overlap others, where a clock was set back."""
    if not RequestGap.objects.filter(name=name, until=start).update(until=end):
        RequestGap.objects.bulk_create([RequestGap(name=name, at=start, until=end)], ignore_conflicts=True)


def _set_back(cluster: PhysicalCluster, mark: RequestMark, last: int) -> None:
    """Clocks were ahead. Nothing is added to minutes of which they have counted anything: it would be counted twice."""
    rows = RequestSample.objects.filter(at__gt=last, instance__in=_instances_of(cluster).values("pk"))
    newest = rows.aggregate(newest=Max("at"))["newest"] or last + WINDOW_S
    rolled = floor(newest, MINUTES.step_s) + MINUTES.step_s
    with transaction.atomic():
        same = RequestMark.objects.filter(pk=mark.pk, taken=mark.taken, rolled=mark.rolled)
        if same.update(taken=last, rolled=rolled):
            _leave_gap(mark.pk, last + WINDOW_S, rolled)
            _roll_up(cluster, mark.rolled, rolled)
    mark.refresh_from_db()


def _instances_of(cluster: PhysicalCluster) -> QuerySet[Instance]:
    return Instance.objects.unscoped("everyone's requests are sampled").filter(cluster=cluster)


def finish(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Add up the last minute of clusters that have been away for long: their windows expire, and totals must not get less."""
    now_s = int(clock.now().timestamp())
    for_each_cluster(lambda cluster: _finished(cluster, now_s), "the last minute of requests")


def _finished(cluster: PhysicalCluster, now_s: int) -> None:
    mark = RequestMark.objects.filter(pk=mark_name(cluster.pk), taken__lt=now_s - AWAY_S).first()
    if mark is None:
        return
    end = floor(mark.taken, MINUTES.step_s) + MINUTES.step_s
    with transaction.atomic():
        same = RequestMark.objects.filter(pk=mark.pk, taken=mark.taken, rolled=mark.rolled, rolled__lt=end)
        if same.update(rolled=end):
            _roll_up(cluster, mark.rolled, end)


def _roll_up(cluster: PhysicalCluster, start: int, end: int) -> None:
    """What began in [start, end), if anything can have: called once of each time."""
    if start < end:
        names, gone = _asked(cluster, start, end), _gone(cluster, end)
        for part in portions(names, ROWS_AT_ONCE):
            _rolled_up(part, start, end, gone)


def _gone(cluster: PhysicalCluster, end: int) -> set[int]:
    """Brokers that have been away for so long that nobody waits for them: totals forget them."""
    return {
        broker.broker_id
        for broker in broker_list(cluster)
        if broker.away_since is not None and broker.away_since.timestamp() < end - GONE_S
    }


def _asked(cluster: PhysicalCluster, start: int, end: int) -> list[str]:
    """Instances of the cluster that had requests in [start, end), also those that do not run any more; and its brokers."""
    rows = RequestSample.objects.filter(at__gte=start, at__lt=end).values("instance")
    names = list(_instances_of(cluster).filter(pk__in=rows).order_by("pk").values_list("pk", flat=True))
    brokers = rows.filter(instance__startswith=broker_name(cluster.pk, 0)[:-1]).distinct()
    return names + sorted(brokers.values_list("instance", flat=True))


def _told(cluster: PhysicalCluster, names: Sequence[str], at: int) -> tuple[dict[int, int], list[RequestSample]]:
    """What the master says of the window that began then, and up to where each broker has told everything.

    Raises MasterUnavailable.
    """
    until: dict[int, int] = {}
    rows = []
    brokers: dict[int, list[RequestCounts]] = {}
    are_named = True
    for part in portions(names, _at_once(cluster)):
        window = master.requests(cluster.address, part, at)
        for broker, moment in window.until.items():
            until[broker] = min(moment, until.get(broker, moment))
        if at + WINDOW_S > min(until.values()):
            break  # it is asked for again
        for name in part:
            counts = _legible(name, window.texts.get(name, ()))
            if not counts:
                continue
            named = window.brokers.get(name, ())
            if len(named) != len(counts):  # a master of an earlier release does not name them
                named, are_named = (), False
            by = {broker: each for broker, each in zip(named, counts, strict=False) if each is not None}
            for broker, each in by.items():
                brokers.setdefault(broker, []).append(each)
            rows.append(_row(name, at, counts, by_broker.text_of(by) if len(by) == len(counts) else None))
    if brokers and are_named:  # of all of them, also of those that nobody asked anything
        rows += [
            RequestSample(
                instance=broker_name(cluster.pk, broker), at=at, windows=1, counts=_summed(brokers.get(broker, ()))
            )
            for broker in sorted({*brokers, *until})
        ]
    return until, rows


def _legible(name: str, texts: Iterable[str]) -> list[RequestCounts | None]:
    """Of each text; None: nobody understands it."""
    found: list[RequestCounts | None] = []
    for text in texts:
        try:
            found.append(RequestCounts.from_text(text))
        except (ContractError, TypeError) as error:  # the others have theirs
            LOG.warning("no requests of %s: %r", name, error)
            found.append(None)
    return found


def _at_once(cluster: PhysicalCluster) -> int:
    return min(ASKED_AT_ONCE, max(1, TEXTS_AT_ONCE // max(1, broker_count(cluster))))


def _row(name: str, at: int, counts: Sequence[RequestCounts | None], brokers: str | None = None) -> RequestSample:
    """A text of None is not legible: without it requests are added up, but what topics moved is not known."""
    topics = _topics_added(None if each is None else each.topics for each in counts)
    known = [each for each in counts if each is not None]
    text = _summed(known) if known else RequestCounts().to_text()
    return RequestSample(instance=name, at=at, windows=1, counts=text, topics=topics, brokers=brokers)


def _summed(known: Sequence[RequestCounts]) -> str:
    found = RequestCounts()
    for counts in known:
        found.add(counts)
    is_carried_known = len(known) == found.carried_windows  # all brokers say it
    found.carried_windows = int(is_carried_known)
    if not is_carried_known:
        found.produced_bytes = found.consumed_bytes = 0
    return found.to_text()


def _topics_added(each: Iterable[TopicsMoved | None]) -> str | None:
    """A row's text; None: nothing is known of any topic."""
    found, is_known = TopicsMoved(), False
    for topics in each:
        found.add(topics or TopicsMoved.not_told())
        is_known = is_known or topics is not None
    found.shorten(MOST_TOPICS, MOST_TOPIC_BYTES)
    return orjson.dumps(found.to_json()).decode() if is_known else None


def _leave_room(topics: TopicsMoved, moving: Collection[str]) -> None:
    """Where there are too many, half of the places are for those that move now: else those that are gone had them for ever."""
    if len(topics.names) <= MOST_TOPICS:
        return
    resting = TopicsMoved({name: row for name, row in topics.names.items() if name not in moving})
    resting.shorten(MOST_TOPICS // 2)
    topics.names = {name: row for name, row in topics.names.items() if name in moving or name in resting.names}
    if resting.rest_windows:
        topics.rest_produced += resting.rest_produced
        topics.rest_consumed += resting.rest_consumed
        topics.rest_windows = max(1, topics.rest_windows)


def _names_of(text: str | None) -> Iterable[str]:
    return () if text is None else orjson.loads(text)


def _topics_of(text: str | None) -> TopicsMoved | None:
    return None if text is None else TopicsMoved.from_trusted(orjson.loads(text))


def _rolled_up(names: Sequence[str], start: int, end: int, gone: Collection[int] = ()) -> None:
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
    _totalled(totals, end, gone)


def _added(model: type[RequestRow], added: dict[tuple[str, int], list[RequestSample]]) -> None:
    there = model._default_manager.filter(  # noqa: SLF001  # Django's documented API, despite its name
        instance__in={name for name, _ in added}, at__in={at for _, at in added}
    )
    known = {(row.instance, row.at): row for row in there}
    made = []
    for (name, at), rows in added.items():
        before = known.get((name, at))
        parts: list[RequestRow] = [*([] if before is None else [before]), *rows]
        counts = RequestCounts()
        for row in parts:
            counts.add_text(row.counts)
        made.append(
            model(
                instance=name,
                at=at,
                windows=sum(row.windows for row in parts),
                counts=counts.to_text(),
                topics=_topics_added(_topics_of(row.topics) for row in parts),
                brokers=by_broker.added(row.brokers for row in parts),
            )
        )
    model._default_manager.bulk_create(  # noqa: SLF001
        made,
        update_conflicts=True,
        unique_fields=["instance", "at"],
        update_fields=["windows", "counts", "topics", "brokers"],
    )


def _totalled(totals: dict[str, list[RequestSample]], until: int, gone: Collection[int] = ()) -> None:
    """Without brokers that are gone, or the totals of each instance would keep every one that there ever was."""
    known = RequestTotal.objects.in_bulk(list(totals))
    made = []
    for name, rows in totals.items():
        counts, topics = RequestCounts(), TopicsMoved()
        if name in known:
            counts.add_text(known[name].counts)
            topics.add(TopicsMoved.from_trusted(orjson.loads(known[name].topics)))
        for row in rows:
            counts.add_text(row.counts)
            topics.add(_topics_of(row.topics) or TopicsMoved())
        _leave_room(topics, {topic for row in rows for topic in _names_of(row.topics)})
        topics.shorten(MOST_TOPICS)
        text = orjson.dumps(topics.to_json()).decode()
        before = [by_broker.without(known[name].brokers, gone)] if name in known else []
        brokers = by_broker.added_known([*before, *(row.brokers for row in rows)])
        made.append(RequestTotal(instance=name, until=until, counts=counts.to_text(), topics=text, brokers=brokers))
    RequestTotal.objects.bulk_create(
        made, update_conflicts=True, unique_fields=["instance"], update_fields=["until", "counts", "topics", "brokers"]
    )
