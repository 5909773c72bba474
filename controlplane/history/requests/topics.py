"""What a topic moved over time: the record bytes that were produced and consumed, as they are billed, of all brokers.

And how far behind those are that read it: of its groups the largest lag, of the last hour. And what it stored, by the hour, from
its usage (`history.stored`).

Rows of an instance name the topics that moved most; of one that may be among the others a step says nothing (None), never 0. The
history is of a name: it goes on where a topic is deleted and made again, and outlives the topic.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import orjson

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.history.lag.samples import topic_key
from controlplane.history.metrics import OF_GROUPS, Kind, Metric
from controlplane.history.models import RequestSample, RequestTotal
from controlplane.history.requests.figures import per_s
from controlplane.history.requests.reading import read_of, texts_lately
from controlplane.history.requests.selectors import samples_of
from controlplane.history.resolutions import DAY_S, HOURS, SAMPLES
from controlplane.history.selectors import History, Series, lag_by_name, planned
from controlplane.history.stored import stored_by_step
from controlplane.instances.selectors import instance_any
from controlplane.topics.selectors import topic_known
from quota.contracts.topics_moved import Moved, TopicsMoved

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from controlplane.history.resolutions import Plan
    from controlplane.instances.models import Instance
    from controlplane.tenants.models import Organisation

MOVED: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "produce_bytes_per_s",
            "bytes/s",
            Kind.COUNTED,
            "record bytes produced into the topic a second; null: not known",
        ),
        Metric(
            "consume_bytes_per_s",
            "bytes/s",
            Kind.COUNTED,
            "record bytes consumed from the topic a second; null: not known",
        ),
    )
}
NEW_RECORDS = Metric(
    "produce_records_per_s",
    "records/s",
    Kind.COUNTED,
    "records produced into the topic a second, with the marks of transactions; null: not known",
)
STORED = Metric(
    "storage_used_bytes",
    "bytes",
    Kind.COUNTED,
    "bytes stored, of all replicas: the average of whole hours, or of days of long ago; null: not counted yet, or not known",
)
METRICS: Mapping[str, Metric] = {
    **MOVED,
    **OF_GROUPS,
    **{metric.name: metric for metric in (NEW_RECORDS, STORED)},
}


def topic_history_get(
    *,
    organisation: Organisation,
    instance_id: str,
    name: str,
    start: datetime,
    end: datetime,
    step_s: int | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> History:
    """Of a topic that is there, or that is named in this time. Raises NotFound, Invalid, ClusterUnavailable.

    The cluster is asked only about a name that no row has.
    """
    instance = instance_any(organisation=organisation, instance_id=instance_id)
    plan = planned(start, end, step_s, clock.now())
    found, is_named = _history(instance, name, plan)
    if not is_named and found.is_complete:  # the metrics store may have the name, and does not answer
        topic_known(organisation=organisation, instance_id=instance_id, name=name)
    return _with_stored(found, instance, name, plan, clock)


def topic_moved_get(
    *,
    instance: Instance,
    name: str,
    start: datetime,
    end: datetime,
    step_s: int | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> History:
    """Whether or not there is such a topic; the caller has the instance from its organisation's scope. Raises Invalid."""
    plan = planned(start, end, step_s, clock.now())
    found, _ = _history(instance, name, plan)
    return _with_stored(found, instance, name, plan, clock)


def topic_is_kept(*, instance: Instance, name: str, clock: Clock = SYSTEM_CLOCK) -> bool:
    """Whether any row that is kept names the topic, or may: the metrics store does not answer.

    Of the last hour, which may be in no longer row yet, and of days. The caller has the instance from its organisation's scope.
    """
    now = clock.now()
    for ago_s, step_s in ((SAMPLES.kept_s, None), (HOURS.kept_s, DAY_S)):
        found, is_named = _history(instance, name, planned(now - timedelta(seconds=ago_s), now, step_s, now))
        if is_named or not found.is_complete:
            return True
    return False


def _history(instance: Instance, name: str, plan: Plan) -> tuple[History, bool]:
    """And whether any row has the name."""

    def read(text: str | None) -> tuple[Moved | None, int | None, bool]:
        rows: dict[str, list[int]] = {} if text is None else orjson.loads(text)
        ours = {key: rows[key] for key in (name, "") if key in rows}  # a page reads thousands, of 500 topics each
        topics = TopicsMoved.not_told() if text is None else TopicsMoved.from_trusted(ours)
        return topics.of(name), topics.records_of(name), bool(name) and name in ours

    known, read_rows = read_of(instance.pk, instance.cluster_id, plan, "topics", read, only=name)
    samples = samples_of(instance.pk, plan)
    moved: dict[int, Moved | None] = {}
    records: dict[int, int | None] = {}
    is_named = False
    for step, (more, new, is_there) in read_rows:
        is_named = is_named or is_there
        so_far = records.get(step, 0)
        records[step] = None if new is None or so_far is None else so_far + new
        before = moved.get(step, Moved(0, 0))
        if more is None or before is None:
            moved[step] = None
        else:
            moved[step] = Moved(before.produced + more.produced, before.consumed + more.consumed)
    series = [Series(metric) for metric in MOVED.values()]
    produced = Series(NEW_RECORDS)
    for at in plan.moments:
        seconds = known.seconds(at, plan.step_s, samples.get(at, 0))
        of_step = moved.get(at, Moved(0, 0)) if seconds else None
        for each, place in zip(series, (0, 1), strict=True):
            each.values.append(None if of_step is None else round(of_step[place] / seconds))
        new = records.get(at, 0) if seconds else None
        produced.values.append(None if new is None else per_s(new, seconds))
    lags = lag_by_name(instance.pk, topic_key(name), plan)
    series += [*(Series(metric, lags[name]) for name, metric in OF_GROUPS.items()), produced]
    return History.over(plan, series, known, samples), is_named


def _with_stored(found: History, instance: Instance, name: str, plan: Plan, clock: Clock) -> History:
    stored = Series(STORED, list(stored_by_step(instance, name, plan, clock.now())))
    return replace(found, series=[*found.series, stored])


def moved_lately(
    wanted: Collection[tuple[str, str]], now_s: int, *, seconds: int, fresh_s: int
) -> dict[tuple[str, str], Moved]:
    """By instance and topic: what each of these has moved in the last so many seconds that are known, if that is known.

    Nothing, of a topic that is not there. The caller has the instances from a selector within an organisation, or is machinery.
    """
    names = sorted({instance for instance, _ in wanted})
    texts = texts_lately(names, "topics", now_s, seconds, fresh_s)
    summed = {name: _summed(ours) for name, ours in texts.items()}
    found: dict[tuple[str, str], Moved] = {}
    for instance, topic in wanted:
        of_all = summed.get(instance)
        moved = None if of_all is None else of_all.of(topic)
        if moved is not None:
            found[instance, topic] = moved
    return found


def _summed(texts: Sequence[str | None]) -> TopicsMoved | None:
    """None: a broker of an earlier release had part in one of them."""
    found = TopicsMoved()
    for text in texts:
        if text is None:
            return None
        found.add(TopicsMoved.from_trusted(orjson.loads(text)))
    return found


def totals_by_topic(instance: str) -> TopicsMoved:
    """What topics moved since this is kept, of those that moved most; a sum only grows."""
    total = RequestTotal.objects.filter(pk=instance).first()
    found = TopicsMoved() if total is None else TopicsMoved.from_trusted(orjson.loads(total.topics))
    rows = RequestSample.objects.filter(instance=instance, at__gte=0 if total is None else total.until)
    for text in rows.exclude(topics=None).values_list("topics", flat=True):
        found.add(TopicsMoved.from_trusted(orjson.loads(text or "{}")))
    return found
