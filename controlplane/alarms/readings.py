"""What is watched, read for many instances at once: their health, and the newest figures of their history.

Figures are those of `history.latest`: an alarm judges the number that the chart and the tenant's Prometheus show, not one of its
own. Partitions and health reasons are asked of the flow masters and ZooKeeper, as health is; the history has none of them.

What cannot be known has no value, and `Missing` says why. A sample older than SAMPLE_FRESH_S is none. Where no flow master
answers, or one that has not heard of its brokers yet, storage and partitions are not known (but what health still says is there
is there), where ZooKeeper does not, routes are not; that they are not is a health reason itself, and can be watched.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from controlplane.alarms.rules import OF_ANY_BROKER, OF_ANY_GROUP, OF_GROUPS, OF_TOPICS, UNREAD, Missing
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.health.metrics import LEVELS
from controlplane.health.rules import CODES
from controlplane.health.selectors import health_get
from controlplane.history.lag.expiry import unread_lately, unread_unseen
from controlplane.history.lag.known import deleted_lately
from controlplane.history.latest import (
    FRESH_S,
    NO_DOUBTS,
    Largest,
    Latest,
    LatestLag,
    doubts_get,
    lags_get,
    latest_get,
    worst_get,
)
from controlplane.history.metrics import COUNTED, METRICS
from controlplane.history.requests.brokers import broker_values, brokers_lately
from controlplane.history.requests.topics import moved_lately
from controlplane.history.resolutions import MINUTES
from controlplane.metering.selectors import SILENT_FOR_ALARMS_S
from controlplane.quotas.figures import figures_get
from controlplane.quotas.selectors import flows_get

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from controlplane.alarms.rules import Rule
    from controlplane.clusters.coordination import ObservedCluster
    from controlplane.health.rules import Health
    from controlplane.history.requests.by_broker import Asked
    from controlplane.instances.models import Instance

LOG = logging.getLogger(__name__)
OF_FLOW = (
    "storage_full",
    "storage_nearly_full",
    "partitions_without_leader",
    "partitions_under_replicated",
    "throttled_under_limit",
)
"""Reasons that come from what flow masters say."""
OF_ROUTES = ("route_down",)
"""Reasons that come from what brokers write to ZooKeeper."""


OF_PARTITIONS = {
    "under_replicated_partitions": "partitions_under_replicated",
    "offline_partitions": "partitions_without_leader",
}
"""Figures, and what masters call them."""
SHARES = {
    "produce_percent": ("produce_bytes_per_s", "produce_limit_bytes_per_s"),
    "consume_percent": ("consume_bytes_per_s", "consume_limit_bytes_per_s"),
    "storage_used_percent": ("storage_used_bytes", "storage_limit_bytes"),
}
"""Figures that are a part of another."""
SAMPLE_FRESH_S = 30
"""Three samples. What is older says nothing of now."""
WAITED_S = 60
"""Alarms are looked at every 30 s: of a shorter time, waiting between two looks would not be seen."""
UNKNOWN = {"group_lag_bytes": Missing.NO_SIZE, "group_lag_seconds": Missing.NO_AGE}
"""Why a group has no figure that is there."""
LATENCIES_BY_BROKER = ("produce_p99_ms", "fetch_p99_ms")
"""Metrics by broker of which there is none where nothing was asked; the others are 0 then."""
Watched = tuple[str, str | None]
"""What is watched, and the group or topic whose it is; None: the instance's."""


@dataclass(frozen=True, slots=True)
class Watches:
    """What alarms want of instances beside the figures of each: by instance and name, or by instance.

    `firing`: of `any_group` and `unread` the instances of which such an alarm fires.
    """

    groups: Sequence[tuple[str, str]] = ()
    topics: Sequence[tuple[str, str]] = ()
    any_group: Sequence[str] = ()
    any_broker: Sequence[str] = ()
    unread: Sequence[str] = ()
    firing: Sequence[str] = ()

    @classmethod
    def of(
        cls, rules: Iterable[tuple[str, str, str | None, str | None]], *, firing: Iterable[tuple[str, str]] = ()
    ) -> Self:
        """Of rules: instance, what is watched, group, topic; of those that fire the first two. Each once, in their order."""
        rows = list(rules)
        return cls(
            groups=sorted({(instance, group) for instance, _, group, _ in rows if group is not None}),
            topics=sorted({(instance, topic) for instance, _, _, topic in rows if topic is not None}),
            any_group=sorted({instance for instance, watch, _, _ in rows if watch in OF_ANY_GROUP}),
            any_broker=sorted({instance for instance, watch, _, _ in rows if watch in OF_ANY_BROKER}),
            unread=sorted({instance for instance, watch, _, _ in rows if watch == UNREAD}),
            firing=sorted({instance for instance, watch in firing if watch in OF_ANY_GROUP or watch == UNREAD}),
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """Of one instance: a value for everything that can be watched, or why there is none; what health says of a reason.

    `whose`: of what is the largest of all groups or brokers, the one whose it is, by what is watched. Of what is watched while it
    fires there are, likewise: `unseen`, what it may be if groups that are not seen now, but were within the last hour, are as
    they were last, and which of them has most; `unknown`, groups of which it is not known, each with what it was last within an
    hour, or None. `deleted`: groups that were lately, where there is no other.
    """

    values: Mapping[Watched, float | Missing] = field(default_factory=dict)
    details: Mapping[str, str] = field(default_factory=dict)
    whose: Mapping[str, str] = field(default_factory=dict)
    unseen: Mapping[str, Largest] = field(default_factory=dict)
    unknown: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    deleted: Collection[str] = ()

    def of(self, rule: Rule) -> float | Missing:
        """What a rule watches."""
        name = rule.topic if rule.group is None else rule.group
        return self.values.get((rule.watch, name), Missing.NOT_READ)


NOTHING = Reading()


def readings_get(
    instances: Sequence[Instance],
    *,
    watched: Watches | None = None,
    observed: Mapping[int, ObservedCluster | None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> dict[str, Reading]:
    """By id; `watched` says which groups and topics are.

    What goes wrong with one instance is logged, leaves it without values, and keeps no other from being read.
    """
    if not instances:
        return {}
    watched = watched or Watches()
    try:
        return _read(instances, watched, observed, clock)
    except Exception:
        if len(instances) == 1:
            LOG.exception("instance %s cannot be read", instances[0].pk)
            return {instances[0].pk: NOTHING}
    half = len(instances) // 2
    return readings_get(instances[:half], watched=watched, observed=observed, clock=clock) | readings_get(
        instances[half:], watched=watched, observed=observed, clock=clock
    )


def _read(
    instances: Sequence[Instance],
    watched: Watches,
    observed: Mapping[int, ObservedCluster | None] | None,
    clock: Clock,
) -> dict[str, Reading]:
    figures = figures_get(instances, flows_get, clock=clock)
    healths = health_get(
        instances, figures=figures, observed=observed, by_worker=True, silent_after_s=SILENT_FOR_ALARMS_S, clock=clock
    )
    now_s, names = int(clock.now().timestamp()), [instance.pk for instance in instances]
    latest = latest_get(names, now_s, fresh_s=SAMPLE_FRESH_S, waited_s=WAITED_S, with_requests=True)
    found = {name: reading_of(healths.get(name), figures.fresh.get(name), latest[name]) for name in names}
    known = {name for name, reading in found.items() if reading is not NOTHING}
    more = _more(watched, known, now_s)
    for name, (values, whose) in more.items():
        found[name] = Reading({**found[name].values, **values}, found[name].details, whose)
    found.update(_in_doubt({name: found[name] for name in watched.firing if name in known}, now_s))
    return found


def _in_doubt(found: Mapping[str, Reading], now_s: int) -> dict[str, Reading]:
    """With what is not known of groups: a few statements for all of these instances."""
    if not found:
        return {}
    names = list(found)
    doubts, records = doubts_get(names, now_s), unread_unseen(names, now_s)
    deleted = deleted_lately(instance_ids=names, now_s=now_s)
    figures = {watch: of.removeprefix("group_") for watch, of in OF_ANY_GROUP.items()}
    with_doubts = {}
    for name, reading in found.items():
        ours = doubts.get(name, NO_DOUBTS)
        unseen = {watch: ours.unseen[metric] for watch, metric in figures.items() if metric in ours.unseen}
        unknown = {watch: ours.unknown[metric] for watch, metric in figures.items() if metric in ours.unknown}
        now = reading.values.get((UNREAD, None))
        if name in records and isinstance(now, float):
            messages, group = records[name]
            unseen[UNREAD] = now + messages, group
        with_doubts[name] = replace(reading, unseen=unseen, unknown=unknown, deleted=deleted.get(name, ()))
    return with_doubts


More = tuple[dict[Watched, "float | Missing"], dict[str, str]]
"""Values of one instance that its figures have not, and whose they are."""


def _more(watched: Watches, known: Collection[str], now_s: int) -> dict[str, More]:
    """Of the instances in `known`, what alarms want of their groups and topics: a few statements for each kind."""
    found: defaultdict[str, More] = defaultdict(lambda: ({}, {}))
    groups = [each for each in watched.groups if each[0] in known]
    lags = lags_get(groups, now_s)
    for instance, group in groups:
        found[instance][0].update(_of_group(group, lags.get((instance, group))))
    of_any = [name for name in watched.any_group if name in known]
    unread = [name for name in watched.unread if name in known]
    worst = worst_get(sorted({*of_any, *unread}), now_s)
    for name in of_any:
        for watch, of in OF_ANY_GROUP.items():
            largest = None if name not in worst else worst[name].get(of.removeprefix("group_"))
            if largest is None:
                found[name][0][watch, None] = Missing.NO_GROUP if name not in worst else UNKNOWN[of]
            else:
                found[name][0][watch, None], found[name][1][watch] = largest
    expiring = unread_lately([name for name in unread if name in worst], now_s)
    for name in worst:
        if name in unread:
            messages, group = expiring.get(name, (0, ""))
            found[name][0][UNREAD, None] = float(messages)
            found[name][1][UNREAD] = group
    topics = [each for each in watched.topics if each[0] in known]
    moved = moved_lately(topics, now_s, seconds=WAITED_S, fresh_s=FRESH_S)
    for instance, topic in topics:
        rates = moved.get((instance, topic))
        for place, watch in enumerate(OF_TOPICS):
            found[instance][0][watch, topic] = Missing.NO_TOPIC if rates is None else rates[place] / WAITED_S
    of_brokers = [name for name in watched.any_broker if name in known]
    asked = brokers_lately(of_brokers, now_s, seconds=WAITED_S, fresh_s=FRESH_S)
    for name in of_brokers:
        _add_brokers(found[name], asked.get(name))
    return dict(found)


def _add_brokers(more: More, asked: Mapping[int, Asked] | None) -> None:
    """The largest of all brokers that were asked anything; None: what each of them was asked is not known."""
    values, whose = more
    of = {broker: broker_values(each, WAITED_S) for broker, each in (asked or {}).items()}
    for watch, metric in OF_ANY_BROKER.items():
        figures = [(value, -broker) for broker, each in of.items() if (value := each[metric]) is not None]
        if figures:
            value, broker = max(figures)  # of those that are the same the one with the smallest number
            values[watch, None], whose[watch] = float(value), str(-broker)
        elif asked is None:
            values[watch, None] = Missing.NO_BROKERS
        else:
            values[watch, None] = Missing.NO_REQUESTS if metric in LATENCIES_BY_BROKER else 0.0


def reading_of(health: Health | None, document: Mapping[str, Any] | None, latest: Latest) -> Reading:
    """`health` None: the instance does not run; `document` None: no master says anything of it now.

    One that is `learning` says 0 of what it has not heard yet: that is no value, and resolves nothing.
    """
    if health is None:
        return NOTHING
    if document is not None and document.get("learning"):
        document = None
    there = {reason.code: reason for reason in health.reasons}
    values: dict[str, float | Missing] = {code: 1.0 if code in there else 0.0 for code in CODES}
    if document is None:
        values |= {code: Missing.NO_MASTER for code in OF_FLOW if code not in there}
    if "cluster_unknown" in there:
        values |= {code: Missing.NO_ROUTES for code in OF_ROUTES if code not in there}
    values["health_level"] = float(LEVELS[health.state])
    for name, called in OF_PARTITIONS.items():
        values[name] = _counted((document or {}).get(called))
    values |= {name: _sampled(latest, name) for name in METRICS}
    values |= {name: _percent(values[part], values[whole]) for name, (part, whole) in SHARES.items()}
    values |= dict.fromkeys((*OF_ANY_GROUP, UNREAD), Missing.NO_GROUP)  # until somebody has asked
    values |= dict.fromkeys(OF_TOPICS, Missing.NO_TOPIC)
    values |= dict.fromkeys(OF_ANY_BROKER, Missing.NO_BROKERS)
    known: dict[Watched, float | Missing] = {(name, None): value for name, value in values.items()}
    return Reading(known, {code: reason.detail for code, reason in there.items()})


def _of_group(group: str, lag: LatestLag | None) -> dict[Watched, float | Missing]:
    if lag is None:
        return dict.fromkeys(((name, group) for name in OF_GROUPS), Missing.NO_GROUP)
    consumed, produced = (
        Missing.NO_RATE if records is None else records / MINUTES.step_s for records in (lag.consumed, lag.produced)
    )
    return {
        ("group_consume_records_per_s", group): consumed,
        ("group_produce_records_per_s", group): produced,
        ("group_lag_messages", group): float(lag.messages),
        ("group_lag_bytes", group): Missing.NO_SIZE if lag.size is None else float(lag.size),
        ("group_lag_seconds", group): Missing.NO_AGE if lag.seconds is None else lag.seconds,
    }


def _sampled(latest: Latest, name: str) -> float | Missing:
    """A limit, or an allocation, that is absent from a sample is unlimited; a latency is of requests that there were."""
    value = latest.values.get(name)
    if value is not None:
        return float(value)
    if name not in latest.values:
        return Missing.NO_SAMPLE
    return Missing.NO_REQUESTS if name in COUNTED else Missing.NO_LIMIT


def _percent(part: float | Missing, whole: float | Missing) -> float | Missing:
    """No number where there is no limit, or one of nothing."""
    if isinstance(part, Missing):
        return part
    if isinstance(whole, Missing):
        return whole
    return round(100 * part / whole, 2) if whole else Missing.NO_LIMIT


def _counted(value: Any) -> float | Missing:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else Missing.NO_MASTER
