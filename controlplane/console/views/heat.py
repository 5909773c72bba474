"""Operators' maps of heat: brokers over time, instances over time, instances by broker; and the page of one broker.

Nothing is asked of masters or brokers but by the page of one broker: what is shown stands in rows and in the cache. A map is one
drawing of eight outlines, however many places it has; whoever cannot see it has the table of those that have most.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from controlplane.clusters.selectors import absences_of
from controlplane.clusters.services import cluster_list, cluster_named
from controlplane.console.over_time import broker_charts_of, is_empty
from controlplane.console.page import staff_page
from controlplane.console.templatetags.console import DASH, amount, in_bytes, rate
from controlplane.console.times import RANGES, range_times
from controlplane.console.views.fleet import brokers_of
from controlplane.console.views.history import MOST_MARKS, all_drawn
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import NotFound
from controlplane.fleet import selectors
from controlplane.fleet.heat import Heat, heat_of
from controlplane.fleet.measures import NOW, OF_BROKERS, OF_INSTANCES, Unit
from controlplane.history.requests.brokers import cluster_broker_moved_get

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from django.http import HttpRequest, HttpResponse

    from controlplane.clusters.models import PhysicalCluster
    from controlplane.fleet.measures import Measure, Number
    from controlplane.fleet.selectors import Row, Span, Table

BROKERS, INSTANCES, BOTH = "brokers", "instances", "now"
MAPS = {BROKERS: "Brokers over time", INSTANCES: "Instances over time", BOTH: "Instances by broker, now"}
MOST_NAMED = 10
SHOWN_INSTANCES = 25
SHOWN_ABSENCES = 10
LINE_PX, LEAST_PX, MOST_PX = 14, 56, 720
MOST_LABELS = 50


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the drawing: what is said where it is pointed at, and where it leads."""

    y: int
    title: str
    href: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """A map with what stands around it."""

    heat: Heat
    height_px: int
    lines: list[Line]
    labels: list[tuple[float, str]]  # where, in pixels from the top, and what
    under: list[str]  # what columns are: the first, one between and the last
    legend: list[tuple[int, str]]
    is_trouble: bool


@require_safe
@staff_page
def shown(request: HttpRequest) -> HttpResponse:
    """One map: of a cluster, of brokers or instances, of one measure, over a range of time."""
    clusters = cluster_list()
    named = request.GET.get("cluster")
    cluster = cluster_named(named) if named else clusters[0]
    of = _chosen(request, "of", MAPS, BROKERS)
    measures = {BROKERS: OF_BROKERS, INSTANCES: OF_INSTANCES, BOTH: NOW}[of]
    measure = measures[_chosen(request, "measure", measures, "flow")]
    spans = {BROKERS: selectors.SPANS, INSTANCES: selectors.OF_INSTANCES_SPANS, BOTH: {}}[of]
    span = spans[_chosen(request, "range", spans, "1h")] if spans else None
    table = _table(cluster, of, measure, span)
    said = {"cluster": named, "of": of, "measure": measure.name, "range": span and span.name}
    context = {
        "cluster": cluster,
        "of": of,
        "measure": measure,
        "table": table,
        "drawing": _drawing(table, of, cluster) if table and table.rows else None,
        "first": [_named(row, table, of, cluster) for row in _first(table, of)] if table else [],
        "clusters_to_choose": [
            (each.name, _with(said, cluster=each.name), each.pk == cluster.pk) for each in clusters if len(clusters) > 1
        ],
        "maps": [(title, _with(said, of=key, measure=None, range=None), key == of) for key, title in MAPS.items()],
        "measures": [
            (each.title, _with(said, measure=each.name), each.name == measure.name) for each in measures.values()
        ],
        "spans": [(each.words, _with(said, range=each.name), each is span) for each in spans.values()],
    }
    return render(request, "console/fleet_heat.html", context)


@require_safe
@staff_page
def broker(request: HttpRequest, cluster: str, broker: int) -> HttpResponse:
    """One broker: how it is, every measure of it over time, what is on it, and when it was away."""
    found = cluster_named(cluster)
    state = brokers_of(found)
    own = next((each for each in state["brokers"] if each["id"] == broker), None)
    if own is None:
        raise NotFound(f"there is no broker {broker} in cluster {found.name}")
    span = selectors.SPANS[_chosen(request, "range", selectors.SPANS, "1h")]
    tables = selectors.broker_over_time(found, broker, span)
    context = {
        "cluster": found,
        "broker": own,
        "away": state["away"],
        "strips": [_strip(table) for table in tables],
        "times": _times(tables[0].columns),
        "spans": [(each.words, f"?range={each.name}", each is span) for each in selectors.SPANS.values()],
        "instances": [
            (
                instance,
                [(measure.title, _written(measure, values[measure.name])) for measure in NOW.values()],
            )
            for instance, values in selectors.instances_on(found, broker, most=SHOWN_INSTANCES)
        ],
        "measures": [measure.title for measure in NOW.values()],
        "absences": absences_of(found, broker)[:SHOWN_ABSENCES],
        **_requests(request, found, broker, span),
    }
    return render(request, "console/fleet_broker.html", context)


def _requests(request: HttpRequest, cluster: PhysicalCluster, broker: int, span: Span) -> dict[str, Any]:
    """What all instances asked of it over the same time, and when it went away."""
    chosen = range_times(next(each for each in RANGES if each.name == span.name), SYSTEM_CLOCK.now())
    history = cluster_broker_moved_get(cluster=cluster, broker=broker, start=chosen.start, end=chosen.end)
    if is_empty(history):
        return {"charts": [], "store_away": not history.is_complete}
    went = absences_of(cluster, broker).filter(began_at__gte=history.start, began_at__lt=history.end)
    went_away = went.values_list("began_at", flat=True)[:MOST_MARKS]
    charts = all_drawn(request, broker_charts_of(history, chosen, went_away))
    return {"charts": charts, "store_away": not history.is_complete}


def _table(cluster: PhysicalCluster, of: str, measure: Measure, span: Span | None) -> Table | None:
    if span is None:
        return selectors.instances_by_broker(cluster, measure)
    over_time = selectors.brokers_over_time if of == BROKERS else selectors.instances_over_time
    return over_time(cluster, measure, span)


def _chosen(request: HttpRequest, name: str, known: Mapping[str, object], otherwise: str) -> str:
    """What the address says, where it is something that there is."""
    said = request.GET.get(name, otherwise)
    return said if said in known else otherwise


def _with(said: Mapping[str, str | None], **changed: str | None) -> str:
    wanted = {**said, **changed}
    return f"?{urlencode({name: value for name, value in wanted.items() if value})}"


def _drawing(table: Table, of: str, cluster: PhysicalCluster) -> Drawing:
    measure = table.measure
    heat = heat_of([row.values for row in table.rows], measure.most)
    height_px = max(LEAST_PX, min(MOST_PX, LINE_PX * len(table.rows)))
    line_px = height_px / len(table.rows)
    href = _hrefs(of, cluster)
    lines = [
        Line(y, f"{row.title}: {_written(measure, row.last if of != BOTH else row.most)}", href(row))
        for y, row in enumerate(table.rows)
    ]
    labels = [
        (round((y + 0.75) * line_px, 1), row.key if of == BROKERS else row.title)
        for y, row in enumerate(table.rows)
        if len(table.rows) <= MOST_LABELS
    ]
    under = _times(table.columns) if of != BOTH else _numbers(table.columns)
    return Drawing(heat, round(height_px), lines, labels, under, _legend(heat, measure), measure.is_trouble)


def _legend(heat: Heat, measure: Measure) -> list[tuple[int, str]]:
    """Levels with the largest number of each."""
    return [(level, _written(measure, bound)) for level, bound in enumerate(heat.bounds, 1)]


def _hrefs(of: str, cluster: PhysicalCluster) -> Callable[[Row], str]:
    """One address is made, and the others after its pattern: there are hundreds."""
    if of == BROKERS:
        pattern = reverse("console:fleet_broker", args=[cluster.name, 0])
        return lambda row: f"{pattern[:-1]}{row.key}"
    pattern = reverse("console:fleet_instance", args=["ins-00000000"])
    return lambda row: pattern.replace("ins-00000000", row.key)


def _first(table: Table | None, of: str) -> list[Row]:
    """Rows that have most now; of what is of one moment, on one broker."""
    rows = table.rows if table is not None else []
    if of == BOTH:
        return sorted(rows, key=lambda row: (-(row.most or 0), row.key))[:MOST_NAMED]
    return sorted(rows, key=lambda row: (-(row.last or 0), -(row.most or 0), row.key))[:MOST_NAMED]


def _named(row: Row, table: Table, of: str, cluster: PhysicalCluster) -> tuple[str, str, str, str]:
    """What it is called, where it leads, how much it has now (of one moment: on which broker it has most), and its most."""
    if of != BOTH:
        second = _written(table.measure, row.last)
    else:
        second = DASH if row.most is None else f"Broker {table.columns[list(row.values).index(row.most)]}"
    return row.title, _hrefs(of, cluster)(row), second, _written(table.measure, row.most)


def _strip(table: Table) -> dict[str, Any]:
    """One measure of one broker as a line of places."""
    row = table.rows[0] if table.rows else None
    measure = table.measure
    return {
        "title": measure.title,
        "heat": heat_of([row.values], measure.most) if row else None,
        "last": _written(measure, row.last if row else None),
        "most": _written(measure, row.most if row else None),
        "is_trouble": measure.is_trouble,
    }


def _times(moments: Any) -> list[str]:
    """The first, the middle and the last, of UTC."""
    return [f"{datetime.fromtimestamp(moments[at], UTC):%H:%M}" for at in (0, len(moments) // 2, len(moments) - 1)]


def _numbers(brokers: Any) -> list[str]:
    return [str(brokers[at]) for at in sorted({0, len(brokers) // 2, len(brokers) - 1})] if brokers else []


def _written(measure: Measure, value: Number) -> str:
    if value is None:
        return DASH
    if measure.unit is Unit.RATE:
        return rate(round(value))
    if measure.unit is Unit.BYTES:
        return in_bytes(round(value))
    if measure.unit is Unit.PERCENT:
        return f"{round(value)} %"
    text = amount(round(value, 1))
    return f"{text} ms/s" if measure.unit is Unit.MS_PER_S else text
