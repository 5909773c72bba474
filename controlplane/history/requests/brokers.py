"""Requests by broker over time: what an instance asked of one of its brokers, and what all instances asked of a broker.

The first is for tenants, to see which of their brokers was slow; the second for operators. Where the master does not say which
broker a text is of, as one of an earlier release, nothing is known (None), never 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import orjson

from controlplane.clusters.selectors import broker_list
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import NotFound
from controlplane.history.metrics import METRICS as OF_INSTANCES
from controlplane.history.metrics import PERCENTILES, Kind
from controlplane.history.models import RequestSample, RequestTotal
from controlplane.history.requests.by_broker import Asked, added, added_known, read
from controlplane.history.requests.figures import LATENCIES, US, carried_of, per_s, values_of
from controlplane.history.requests.reading import texts_lately, texts_of
from controlplane.history.requests.sampling import broker_name
from controlplane.history.requests.selectors import samples_of
from controlplane.history.selectors import History, Series, planned
from quota.contracts.requests import WINDOW_S, RequestCounts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from controlplane.clusters.models import PhysicalCluster
    from controlplane.history.metrics import Metric
    from controlplane.history.requests.reading import Counted
    from controlplane.history.resolutions import Plan
    from controlplane.instances.models import Instance

FLOWS = ("produce_bytes_per_s", "consume_bytes_per_s")
RATES = ("requests_per_s", "errors_per_s")
METRICS: Mapping[str, Metric] = {
    name: replace(OF_INSTANCES[name], kind=Kind.COUNTED)
    for name in (
        *FLOWS,
        *RATES,
        *(f"{api}_{percentile}_ms" for api in LATENCIES for percentile in ("p50", "p99")),
    )
}
"""All are counted, so none has a maximum."""
Values = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """One broker over the whole time, as an instance asked it."""

    broker: int
    requests: int
    errors: int
    produce_p99_ms: float | None
    fetch_p99_ms: float | None


def broker_history_get(
    *,
    instance: Instance,
    broker: int,
    start: datetime,
    end: datetime,
    step_s: int | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> History:
    """What the instance asked of one broker of its cluster. Raises NotFound, Invalid."""
    _checked(instance.cluster, broker)
    plan = planned(start, end, step_s, clock.now())
    known, texts = texts_of(instance.pk, instance.cluster_id, plan, "brokers", only=str(broker))
    samples = samples_of(instance.pk, plan)
    asked: dict[int, Asked | None] = {}
    for step, text in texts:
        before = asked.get(step, Asked())
        if text is None or before is None:
            asked[step] = None
            continue
        row = orjson.loads(text).get(str(broker))
        if row:
            before.add_row(row)
        asked[step] = before
    found: dict[int, Values] = {}
    for at in plan.moments:
        seconds = known.seconds(at, plan.step_s, samples.get(at, 0))
        of_step = asked.get(at, Asked())
        if seconds and of_step is not None:
            found[at] = broker_values(of_step, seconds)
    return _history(plan, found, known)


def cluster_broker_history_get(
    *,
    cluster: PhysicalCluster,
    broker: int,
    start: datetime,
    end: datetime,
    step_s: int | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> History:
    """What all instances asked of a broker that there is, or was. For operators. Raises NotFound, Invalid."""
    _checked(cluster, broker)
    return cluster_broker_moved_get(cluster=cluster, broker=broker, start=start, end=end, step_s=step_s, clock=clock)


def cluster_broker_moved_get(
    *,
    cluster: PhysicalCluster,
    broker: int,
    start: datetime,
    end: datetime,
    step_s: int | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> History:
    """The same whether or not there is such a broker. Of a time in which nobody asked the cluster anything nothing is kept.

    Raises Invalid.
    """
    plan = planned(start, end, step_s, clock.now())
    known, texts = texts_of(broker_name(cluster.pk, broker), cluster.pk, plan, "counts")
    counts: dict[int, RequestCounts] = {}
    for step, text in texts:
        counts.setdefault(step, RequestCounts()).add_text(text or "{}")
    found: dict[int, Values] = {}
    for at, of_step in counts.items():
        windows = known.windows.get(at, 0)
        if at < known.known_to and windows:
            seconds = windows * WINDOW_S
            found[at] = {**values_of(of_step, seconds), **carried_of(of_step, windows, seconds)}
    return _history(plan, found, known)


def brokers_get(*, instance: Instance, start: datetime, end: datetime, step_s: int) -> list[BrokerRow]:
    """Each broker that was asked anything, by its number. Raises Invalid."""
    plan = planned(start, end, step_s, SYSTEM_CLOCK.now())
    _, texts = texts_of(instance.pk, instance.cluster_id, plan, "brokers")
    found = read(added_known(text for _, text in texts))
    return [
        BrokerRow(
            broker,
            asked.requests,
            asked.errors,
            _ms(asked.produce.percentile_us(PERCENTILES["p99"])),
            _ms(asked.fetch.percentile_us(PERCENTILES["p99"])),
        )
        for broker, asked in found.items()
    ]


def brokers_lately(names: Sequence[str], now_s: int, *, seconds: int, fresh_s: int) -> dict[str, dict[int, Asked]]:
    """What each of these instances asked of each broker in the last so many seconds that are known, if that is known.

    They ended not more than `fresh_s` ago. The caller has the instances from a selector within an organisation, or is machinery.
    """
    texts = texts_lately(names, "brokers", now_s, seconds, fresh_s)
    summed = {name: added(ours) for name, ours in texts.items()}
    return {name: read(text) for name, text in summed.items() if text is not None}


def totals_by_broker(instance: str) -> dict[int, Asked]:
    """All that was asked of each broker since this is kept, in the order of their ids; sums only grow."""
    total = RequestTotal.objects.filter(pk=instance).first()
    rows = RequestSample.objects.filter(instance=instance, at__gte=0 if total is None else total.until)
    texts = rows.exclude(brokers=None).values_list("brokers", flat=True)
    return read(added_known([*([] if total is None else [total.brokers]), *texts]))


def _checked(cluster: PhysicalCluster, broker: int) -> None:
    if broker not in {each.broker_id for each in broker_list(cluster)}:
        raise NotFound("there is no broker of this number")


def broker_values(asked: Asked, seconds: float) -> Values:
    """By the metrics' names. Of what did not happen there is no latency: None."""
    found: Values = {
        "requests_per_s": per_s(asked.requests, seconds),
        "errors_per_s": per_s(asked.errors, seconds),
    }
    if asked.carried_windows == asked.windows:
        flows = zip(FLOWS, (asked.produced_bytes, asked.consumed_bytes), strict=True)
        found |= {name: round(size / seconds) for name, size in flows}
    for api, times in zip(LATENCIES, (asked.produce, asked.fetch), strict=True):
        for name in ("p50", "p99"):
            found[f"{api}_{name}_ms"] = _ms(times.percentile_us(PERCENTILES[name]))
    return found


def _history(plan: Plan, found: Mapping[int, Values], known: Counted) -> History:
    series = [Series(metric, [found.get(at, {}).get(name) for at in plan.moments]) for name, metric in METRICS.items()]
    return History.over(plan, series, is_complete=known.is_complete)


def _ms(us: float | None) -> float | None:
    return None if us is None else round(us / US, 3)
