"""Rows of numbers for the maps of heat: brokers over time, instances over time, and instances by broker now.

Each is one statement or one entry of the cache, however many there are. For operators: nothing here is of one organisation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Avg, F, Max, Sum

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.fleet.measures import NOW, OF_BROKERS, SKEW, Measure, above_average
from controlplane.fleet.models import BrokerSample
from controlplane.history.models import Hour, Minute
from controlplane.instances.models import Instance, InstanceState
from controlplane.quotas.figures import matrices_last
from controlplane.quotas.matrix import MEASURES, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from controlplane.clusters.models import PhysicalCluster
    from controlplane.fleet.measures import Number

HOUR_S = 3600
MOST_ROWS = 500
"""Of instances: those that have most. What is more would be no line on a screen."""


@dataclass(frozen=True, slots=True)
class Span:
    """A range of time and the steps that it is shown in."""

    name: str
    words: str
    step_s: int
    steps: int

    @property
    def length_s(self) -> int:
        """Of the whole."""
        return self.step_s * self.steps


SPANS: Mapping[str, Span] = {
    span.name: span
    for span in (
        Span("1h", "Hour", 60, 60),
        Span("6h", "6 hours", 300, 72),
        Span("24h", "Day", 1200, 72),
    )
}
OF_INSTANCES_SPANS: Mapping[str, Span] = {
    span.name: span for span in (Span("1h", "Hour", 120, 30), Span("24h", "Day", 3600, 24))
}
"""Minutes of 500 instances for longer than an hour are more rows than a page should read."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a map."""

    key: str  # of the broker, or the instance
    title: str
    values: Sequence[Number]

    @property
    def last(self) -> Number:
        """The newest, or the last of those that are known."""
        return next((value for value in reversed(self.values) if value is not None), None)

    @property
    def most(self) -> Number:
        return max((value for value in self.values if value is not None), default=None)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of numbers under columns: moments (seconds since 1970), or brokers."""

    measure: Measure
    columns: Sequence[int]
    rows: Sequence[Row]
    left_out: int = 0  # rows beyond MOST_ROWS
    at: datetime | None = None  # of what is shown at one moment


def brokers_over_time(cluster: PhysicalCluster, measure: Measure, span: Span, *, clock: Clock = SYSTEM_CLOCK) -> Table:
    """Each broker of a cluster that has a sample, by id."""
    moments = _moments(span, clock)
    rows = BrokerSample.objects.filter(cluster=cluster.pk, at__gte=moments.start, at__lt=moments.stop)
    found = _folded(rows, "broker", measure, moments)
    values = [found[broker] for broker in sorted(found)]
    if measure.name == SKEW:
        values = above_average(values)
    named = [Row(str(broker), f"Broker {broker}", row) for broker, row in zip(sorted(found), values, strict=True)]
    return Table(measure, moments, named)


def broker_over_time(cluster: PhysicalCluster, broker: int, span: Span, *, clock: Clock = SYSTEM_CLOCK) -> list[Table]:
    """Every measure of one broker: a table of one row for each."""
    moments = _moments(span, clock)
    rows = BrokerSample.objects.filter(cluster=cluster.pk, at__gte=moments.start, at__lt=moments.stop)
    skew = brokers_over_time(cluster, OF_BROKERS[SKEW], span, clock=clock)
    tables = []
    for measure in OF_BROKERS.values():
        if measure.name == SKEW:
            own = [row for row in skew.rows if row.key == str(broker)]
        else:
            found = _folded(rows.filter(broker=broker), "broker", measure, moments)
            own = [Row(str(broker), measure.title, found[broker])] if broker in found else []
        tables.append(Table(measure, moments, own))
    return tables


def instances_over_time(
    cluster: PhysicalCluster, measure: Measure, span: Span, *, clock: Clock = SYSTEM_CLOCK
) -> Table:
    """Running instances of a cluster, those that have most of it first."""
    moments = _moments(span, clock)
    names = _names(cluster)
    model = Minute if span.step_s < HOUR_S else Hour
    rows = model.objects.filter(at__gte=moments.start, at__lt=moments.stop, instance__in=_of(cluster).values("pk"))
    found = _folded(rows, "instance", measure, moments, sums=True)
    return _ranked(measure, moments, {key: values for key, values in found.items() if key in names}, names)


def instances_by_broker(cluster: PhysicalCluster, measure: Measure) -> Table | None:
    """Each running instance on each broker as the master said it last; None: no master was ever heard."""
    last = matrices_last(cluster.address, measure.columns)
    if last is None:
        return None
    matrices, at = last
    first = matrices[measure.columns[0]]
    parts = [matrices[name].rows() for name in measure.columns]
    names = _names(cluster)
    found = {
        instance: [
            measure.fold([None if value == UNKNOWN else value for value in place])
            for place in zip(*(part[number] for part in parts), strict=True)
        ]
        for number, instance in enumerate(first.instances)
        if instance in names
    }
    return _ranked(measure, first.brokers, found, names, at=at)


def instances_on(cluster: PhysicalCluster, broker: int, *, most: int) -> list[tuple[Instance, dict[str, Number]]]:
    """Those that have most flow on a broker, with each measure of it, as the master said it last."""
    last = matrices_last(cluster.address, MEASURES)
    if last is None:
        return []
    columns = {name: matrix.column(broker) for name, matrix in last[0].items()}
    there = {name for column in columns.values() for name in column}
    found = {
        name: {
            measure.name: measure.fold([columns[column].get(name) for column in measure.columns])
            for measure in NOW.values()
        }
        for name in there
    }
    first = sorted(found, key=lambda name: (-(found[name]["flow"] or 0), name))[:most]
    rows = _of(cluster).select_related("organisation").in_bulk(first)
    return [(rows[name], found[name]) for name in first if name in rows]


def _moments(span: Span, clock: Clock) -> range:
    """When each step begins; the last one is not over."""
    end = (int(clock.now().timestamp()) // span.step_s + 1) * span.step_s
    return range(end - span.length_s, end, span.step_s)


def _folded(rows: Any, key: str, measure: Measure, moments: range, *, sums: bool = False) -> dict[Any, list[Number]]:
    """By `key`, a number for each step. `sums`: columns are sums of as many samples as stand beside them."""
    step_s = moments.step
    if sums:
        asked = {f"of_{number}": Sum(f"{name}_sum") for number, name in enumerate(measure.columns)}
        asked["count"] = Sum("samples")
    else:
        how = Max if measure.is_trouble else Avg
        asked = {f"of_{number}": how(name) for number, name in enumerate(measure.columns)}
    wanted = [f"of_{number}" for number in range(len(measure.columns))]
    stepped = rows.annotate(step=F("at") - F("at") % step_s).order_by().values(key, "step").annotate(**asked)
    found: dict[Any, list[Number]] = {}
    for row in stepped:
        values = [None if row[name] is None else float(row[name]) for name in wanted]
        if sums:
            values = [None if value is None or not row["count"] else value / row["count"] for value in values]
        line = found.setdefault(row[key], [None] * len(moments))
        place = (row["step"] - moments.start) // step_s
        if 0 <= place < len(line):
            line[place] = measure.fold(values)
    return found


def _of(cluster: PhysicalCluster) -> Any:
    rows = Instance.objects.unscoped("operators see every tenant's")
    return rows.filter(cluster=cluster, state=InstanceState.RUNNING)


def _names(cluster: PhysicalCluster) -> dict[str, str]:
    return dict(_of(cluster).values_list("pk", "name"))


def _ranked(
    measure: Measure,
    columns: Sequence[int],
    found: Mapping[str, Sequence[Number]],
    names: Mapping[str, str],
    *,
    at: datetime | None = None,
) -> Table:
    """Those that have most in all first."""
    first = sorted(found, key=lambda name: (-_total(found[name]), name))
    rows = [Row(name, names[name], found[name]) for name in first[:MOST_ROWS]]
    return Table(measure, columns, rows, left_out=max(0, len(first) - MOST_ROWS), at=at)


def _total(values: Iterable[Number]) -> float:
    return sum(value for value in values if value is not None)
