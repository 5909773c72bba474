"""An instance's figures of now in Prometheus' text format, version 0.0.4, for a tenant's own Prometheus. Pure.

Metrics are gauges: what REST answers of the newest step of the history that is known (docs/subsystems/history.md has the table).
What is not known has no sample, so a gap is a gap there, too. A limit that is unlimited is ``+Inf``. Requests, and bytes that
were carried, are counters and histograms, of all brokers since the instance began: Prometheus makes rates and percentiles of
them, over times of its own. So are the bytes of each topic, of those that moved most, and what was asked of each broker.

Names follow Prometheus' own rules: base units in the name, ``sluice_`` before it, and the instance's id as the label
``instance_id`` (``instance`` is the label that Prometheus sets itself, to the address that it has scraped).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.history.metrics import COUNTED, METRICS
from controlplane.history.requests.figures import LATENCIES
from quota.contracts.requests import BOUNDS_US, PHASES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from controlplane.history.requests.by_broker import Asked
    from quota.contracts.requests import Histogram, RequestCounts
    from quota.contracts.topics_moved import TopicsMoved

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "sluice_"
MS = 1000
MINUTE_S = 60


@dataclass(frozen=True, slots=True)
class Gauge:
    """What a metric is called here, and what its value in the history is divided by."""

    name: str
    help: str
    divisor: int = 1


@dataclass(frozen=True, slots=True)
class GroupLag:
    """A group now; None: its age, its bytes, or the records that it read and that came in its last minute are not known."""

    name: str
    messages: int
    seconds: float | None
    size: int | None = None
    consumed: int | None = None
    produced: int | None = None


def _gauge_of(name: str) -> Gauge:
    metric = METRICS[name]
    if metric.unit == "ms/s":
        stem = name.removesuffix("_ms_per_s")
        return Gauge(f"{PREFIX}{stem}_ratio", "Share of the time in which some client waited, 0 to 1.", MS)
    called = name.removesuffix("_per_s") + "_per_second" if name.endswith("_per_s") else name
    text = metric.help.partition(";")[0]
    return Gauge(PREFIX + called, f"{text[0].upper()}{text[1:]}.")


GAUGES: Mapping[str, Gauge] = {name: _gauge_of(name) for name in METRICS if name not in COUNTED}
"""By the metric's name in the history."""
CARRIED = (
    (Gauge(f"{PREFIX}produced_bytes_total", "Bytes that were produced, on the wire."), "produced_bytes"),
    (Gauge(f"{PREFIX}consumed_bytes_total", "Bytes that were consumed, on the wire."), "consumed_bytes"),
)
OF_TOPICS = (
    (Gauge(f"{PREFIX}topic_produced_bytes_total", "Record bytes that were produced into a topic."), 0),
    (Gauge(f"{PREFIX}topic_consumed_bytes_total", "Record bytes that were consumed from a topic."), 1),
)
OF_BROKERS = (
    (Gauge(f"{PREFIX}broker_requests_total", "Requests that a broker answered."), "requests"),
    (Gauge(f"{PREFIX}broker_request_errors_total", "Error codes that a broker answered."), "errors"),
)
CARRIED_BY_BROKERS = (
    (
        Gauge(f"{PREFIX}broker_produced_bytes_total", "Bytes that were produced to a broker, on the wire."),
        "produced_bytes",
    ),
    (
        Gauge(f"{PREFIX}broker_consumed_bytes_total", "Bytes that a broker sent to consumers, on the wire."),
        "consumed_bytes",
    ),
)
BROKER_DURATIONS = Gauge(
    f"{PREFIX}broker_request_duration_seconds",
    "How long a broker took for Produce, as Kafka's TotalTimeMs, and for Fetch, as its LocalTimeMs.",
)
REQUESTS = Gauge(f"{PREFIX}requests_total", "Requests that were answered, by Kafka's name of the API.")
ERRORS = Gauge(
    f"{PREFIX}request_errors_total", "Error codes that were answered, by API; of a request one for each partition."
)
DURATIONS = Gauge(
    f"{PREFIX}request_duration_seconds",
    "How long requests took, as Kafka's TotalTimeMs, LocalTimeMs, RemoteTimeMs and ThrottleTimeMs.",
)
_US = 1_000_000
WITH_ALL_PHASES = ("Produce", "Fetch")
"""Of other APIs `total` alone is told: a scrape is to be read four times a minute."""
TOLD_BOUNDS = tuple(
    (place, bound)
    for place, bound in enumerate(BOUNDS_US)
    if bound >= 100 and str(bound).rstrip("0") in ("1", "25", "5")
)
"""Places and microseconds: 0.1, 0.25, 0.5, 1 ms … 50, 100 s. Buckets of Prometheus add up, so leaving some out is exact."""
UNLIMITED = frozenset(name for name in METRICS if name.endswith("_limit_bytes_per_s"))
"""Whose null says that there is no limit."""
LAG_MESSAGES = Gauge(f"{PREFIX}group_lag_messages", "Records that a consumer group can still read, of all partitions.")
LAG_BYTES = Gauge(f"{PREFIX}group_lag_bytes", "Bytes of these records as they are stored.")
LAG_SECONDS = Gauge(
    f"{PREFIX}group_lag_seconds",
    "Age of the oldest record that a consumer group is still to read; the largest of the partitions' that are known.",
)
MOVED = (
    (
        Gauge(f"{PREFIX}group_consumed_records_per_second", "Records by which a consumer group's offsets went on."),
        "consumed",
    ),
    (
        Gauge(f"{PREFIX}group_produced_records_per_second", "Records that came to what a consumer group reads."),
        "produced",
    ),
)
"""Of the last minute that is known."""


def exposition(
    instance_id: str,
    values: Mapping[str, float | None],
    groups: Sequence[GroupLag],
    *,
    is_known: bool,
    requests: RequestCounts | None = None,
    topics: TopicsMoved | None = None,
    brokers: Mapping[int, Asked] | None = None,
) -> str:
    """One document. `values` are by the metrics' names in the history; `is_known`: there is a sample, null in it is unlimited.

    `requests`: all that there ever were; None: none is known. `topics`: what those moved that are named. `brokers`: what was
    asked of each.
    """
    labels = _labels(instance_id=instance_id)
    lines: list[str] = []
    for name, gauge in GAUGES.items():
        value = values.get(name)
        if value is None and name in UNLIMITED and is_known:
            value = math.inf
        if value is not None:
            lines += _family(gauge, [(labels, value / gauge.divisor)])
    of_group = [(_labels(instance_id=instance_id, group=each.name), each) for each in groups]
    lines += _family(LAG_MESSAGES, [(name, each.messages) for name, each in of_group])
    lines += _family(LAG_BYTES, [(name, each.size) for name, each in of_group if each.size is not None])
    lines += _family(LAG_SECONDS, [(name, each.seconds) for name, each in of_group if each.seconds is not None])
    for gauge, attribute in MOVED:
        records = [(name, getattr(each, attribute)) for name, each in of_group]
        lines += _family(gauge, [(name, count / MINUTE_S) for name, count in records if count is not None])
    if requests is not None:
        lines += _of_requests(instance_id, requests)
    rows = [] if topics is None else sorted(topics.names.items())
    for gauge, place in OF_TOPICS:
        of_topics = [(_labels(instance_id=instance_id, topic=name), row[place]) for name, row in rows]
        lines += _family(gauge, of_topics, "counter")
    lines += _of_brokers(instance_id, brokers or {})
    return "".join(f"{line}\n" for line in lines)


def _family(gauge: Gauge, samples: Iterable[tuple[str, float]], kind: str = "gauge") -> Iterator[str]:
    found = list(samples)
    if found:
        yield f"# HELP {gauge.name} {gauge.help}"
        yield f"# TYPE {gauge.name} {kind}"
        yield from (f"{gauge.name}{labels} {_number(value)}" for labels, value in found)


def _of_requests(instance_id: str, requests: RequestCounts) -> Iterator[str]:
    if requests.carried_windows:
        for gauge, name in CARRIED:
            yield from _family(gauge, [(_labels(instance_id=instance_id), getattr(requests, name))], "counter")
    apis = sorted(requests.apis.items())
    counts = [(_labels(instance_id=instance_id, api=name), api.requests) for name, api in apis]
    yield from _family(REQUESTS, counts, "counter")
    errors = [
        (_labels(instance_id=instance_id, api=name, error=code), count)
        for name, api in apis
        for code, count in sorted(api.errors.items())
    ]
    yield from _family(ERRORS, errors, "counter")
    durations = [
        ({"instance_id": instance_id, "api": name, "phase": phase}, api.times(phase))
        for name, api in apis
        for phase in (PHASES if name in WITH_ALL_PHASES else PHASES[:1])
    ]
    yield from _histograms(DURATIONS, durations)


def _of_brokers(instance_id: str, brokers: Mapping[int, Asked]) -> Iterator[str]:
    known = [(_labels(instance_id=instance_id, broker=str(broker)), asked) for broker, asked in brokers.items()]
    for gauge, name in OF_BROKERS:
        yield from _family(gauge, [(labels, getattr(asked, name)) for labels, asked in known], "counter")
    for gauge, name in CARRIED_BY_BROKERS:
        carried = [(labels, getattr(asked, name)) for labels, asked in known if asked.carried_windows]
        yield from _family(gauge, carried, "counter")
    durations = [
        ({"instance_id": instance_id, "broker": str(broker), "api": api, "phase": phase}, times)
        for broker, asked in brokers.items()
        for (api, phase), times in zip(LATENCIES.values(), (asked.produce, asked.fetch), strict=True)
    ]
    yield from _histograms(BROKER_DURATIONS, durations)


def _histograms(gauge: Gauge, durations: Sequence[tuple[dict[str, str], Histogram]]) -> Iterator[str]:
    """A family, of each its labels and how long requests took."""
    if durations:
        yield f"# HELP {gauge.name} {gauge.help}"
        yield f"# TYPE {gauge.name} histogram"
    for labels, times in durations:
        for le, count in _buckets(times):
            yield f"{gauge.name}_bucket{_labels(**labels, le=le)} {count}"
        yield f"{gauge.name}_sum{_labels(**labels)} {_number(times.sum_us / _US)}"
        yield f"{gauge.name}_count{_labels(**labels)} {times.count}"


def _buckets(times: Histogram) -> Iterator[tuple[str, int]]:
    """How many took at most so many seconds."""
    count = before = 0
    for place, bound in TOLD_BOUNDS:
        count += sum(times.counts[before : place + 1])
        before = place + 1
        yield _number(bound / _US), count
    yield "+Inf", times.count


def _labels(**labels: str) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(text: str) -> str:
    """A group may be called anything."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(float(value))
