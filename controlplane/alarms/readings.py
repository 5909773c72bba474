"""What is watched, read for many instances at once: their health, and the newest figures of their history.

Figures are those of `history.latest`: an alarm judges the number that the chart and the tenant's Prometheus show, not one of its
own. Partitions and health reasons are asked of the flow masters and ZooKeeper, as health is; the history has none of them.

What cannot be known has no value, and `Missing` says why. A sample older than SAMPLE_FRESH_S is none. Where no flow master
answers, or one that has not heard of its brokers yet, storage and partitions are not known (but what health still says is there
is there), where ZooKeeper does not, routes are not; that they are not is a health reason itself, and can be watched.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from controlplane.alarms.rules import OF_GROUPS, Missing
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.health.metrics import LEVELS
from controlplane.health.rules import CODES
from controlplane.health.selectors import health_get
from controlplane.history.latest import Latest, LatestLag, lags_get, latest_get
from controlplane.history.metrics import COUNTED, METRICS
from controlplane.metering.selectors import SILENT_FOR_ALARMS_S
from controlplane.quotas.figures import figures_get
from controlplane.quotas.selectors import flows_get

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from controlplane.alarms.rules import Rule
    from controlplane.clusters.coordination import ObservedCluster
    from controlplane.health.rules import Health
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
Watched = tuple[str, str | None]
"""What is watched, and the group whose it is; None: the instance's."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Of one instance: a value for everything that can be watched, or why there is none; what health says of a reason."""

    values: Mapping[Watched, float | Missing] = field(default_factory=dict)
    details: Mapping[str, str] = field(default_factory=dict)

    def of(self, rule: Rule) -> float | Missing:
        """What a rule watches."""
        return self.values.get((rule.watch, rule.group), Missing.NOT_READ)


NOTHING = Reading()


def readings_get(
    instances: Sequence[Instance],
    *,
    groups: Iterable[tuple[str, str]] = (),
    observed: Mapping[int, ObservedCluster | None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> dict[str, Reading]:
    """By id; `groups` are the consumer groups that are watched, by instance and name.

    What goes wrong with one instance is logged, leaves it without values, and keeps no other from being read.
    """
    if not instances:
        return {}
    groups = list(groups)
    try:
        return _read(instances, groups, observed, clock)
    except Exception:
        if len(instances) == 1:
            LOG.exception("instance %s cannot be read", instances[0].pk)
            return {instances[0].pk: NOTHING}
    half = len(instances) // 2
    return readings_get(instances[:half], groups=groups, observed=observed, clock=clock) | readings_get(
        instances[half:], groups=groups, observed=observed, clock=clock
    )


def _read(
    instances: Sequence[Instance],
    groups: Sequence[tuple[str, str]],
    observed: Mapping[int, ObservedCluster | None] | None,
    clock: Clock,
) -> dict[str, Reading]:
    figures = figures_get(instances, flows_get, clock=clock)
    healths = health_get(
        instances, figures=figures, observed=observed, by_worker=True, silent_after_s=SILENT_FOR_ALARMS_S, clock=clock
    )
    now_s, names = int(clock.now().timestamp()), [instance.pk for instance in instances]
    latest = latest_get(names, now_s, fresh_s=SAMPLE_FRESH_S, waited_s=WAITED_S, with_requests=True)
    ours = [each for each in groups if each[0] in latest]
    lags = lags_get(ours, now_s)
    found = {name: reading_of(healths.get(name), figures.fresh.get(name), latest[name]) for name in names}
    for instance, group in ours:
        if found[instance] is not NOTHING:
            found[instance] = _with_group(found[instance], group, lags.get((instance, group)))
    return found


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
    known: dict[Watched, float | Missing] = {(name, None): value for name, value in values.items()}
    return Reading(known, {code: reason.detail for code, reason in there.items()})


def _with_group(reading: Reading, group: str, lag: LatestLag | None) -> Reading:
    of_group: dict[Watched, float | Missing] = dict.fromkeys(((name, group) for name in OF_GROUPS), Missing.NO_GROUP)
    if lag is not None:
        of_group["group_lag_messages", group] = float(lag.messages)
        of_group["group_lag_bytes", group] = Missing.NO_SIZE if lag.size is None else float(lag.size)
        of_group["group_lag_seconds", group] = Missing.NO_AGE if lag.seconds is None else lag.seconds
    return Reading({**reading.values, **of_group}, reading.details)


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
