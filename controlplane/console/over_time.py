"""The history of an instance, a group or a topic as charts: which lines belong together, in which units, over which time.

Averages are drawn with the maximum of each step, so that a peak of ten seconds is seen in a chart of 400 days. What happened to
the instance meanwhile is marked in each of its charts, all that happened in one step by one mark.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import itemgetter
from typing import TYPE_CHECKING

from django.utils.safestring import mark_safe

from controlplane.console.charts import Chart, Line, Mark
from controlplane.console.templatetags.console import (
    DASH,
    amount,
    count,
    detail_of,
    duration,
    event_words,
    in_bytes,
    rate,
)
from controlplane.console.wording import filled, joined, worded
from controlplane.history.requests.figures import values_of
from quota.contracts.report import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from controlplane.alarms.events import Event
    from controlplane.console.times import Times
    from controlplane.history.requests.selectors import Requests
    from controlplane.history.selectors import History, Series
    from quota.contracts.requests import RequestCounts

    Over = History | Requests

MINUTE, DAY = 60, 86_400
MOST_LEVELS = 5
STEP = 1024


@dataclass(frozen=True, slots=True)
class _Unit:
    """How values are written, here and by charts.js, which knows it by its name, and what steps an axis may have."""

    name: str
    text: Callable[[float | None], str]
    base: int  # steps are 1, 2, 5 … of a power of it
    parts: tuple[int, ...]


BYTES_PER_S = _Unit("rate", rate, STEP, (1, 2, 4, 8, 16, 32, 64, 128, 256, 512))
BYTES = _Unit("bytes", in_bytes, STEP, (1, 2, 4, 8, 16, 32, 64, 128, 256, 512))
COUNT = _Unit("amount", amount, 10, (1, 2, 5))
PERCENT = _Unit("percent", lambda value: DASH if value is None else f"{amount(round(value, 1))} %", 10, (1, 2, 5))

THOUSANDTHS, MS_US = 1000, 1000
"""Axes have steps of whole numbers: rates are drawn in thousandths, latencies in microseconds."""
PER_S = _Unit(
    "per_s", lambda value: DASH if value is None else f"{amount(round(value / THOUSANDTHS, 3))}/s", 10, (1, 2, 5)
)
LATENCY = _Unit(
    "latency", lambda value: DASH if value is None else f"{amount(round(value / MS_US, 3))} ms", 10, (1, 2, 5)
)
MOST_LINES = 4
LINE_KINDS = ("flow", "other", "limit", "allocation", "most")
PERCENTILE_LINES = (("most", "p99.9", "p999"), ("other", "p99", "p99"), ("flow", "p50", "p50"))
RECORDS = _Unit("records", lambda value: amount(None if value is None else round(value, 1)), 10, (1, 2, 5))
AGE = _Unit("duration", lambda value: DASH if value is None else duration(value), 60, (1, 2, 5, 10, 20, 30))


MARKS = {
    "instance.resized": "resized",
    "throttling.ended": "throttling",
    "throttling.began": "throttling",
    "alarm.fired": "fired",
    "broker.away": "failover",
}
"""How events are drawn."""
MARK_WORDS = {
    "resized": "Resized",
    "throttling": "Throttled",
    "fired": "Alarm fired",
    "failover": "A broker of the cluster went away",
}
"""Of several in one step, the last of these kinds is drawn."""
MOST_TOLD = 4
"""Of one step; what is more is counted."""


def charts_of(
    history: History, chosen: Times, events: Sequence[Event] = (), requests: Requests | None = None
) -> list[Chart]:
    """In the order in which the page shows them. `events` are of its time, of kinds that have a mark."""
    charts = _marked(_charts(history, chosen), marks_of(history, events))
    if requests is not None:  # perhaps in longer steps
        charts += _marked(request_charts_of(requests, chosen), marks_of(requests, events))
    return charts


def marks_of(history: Over, events: Sequence[Event]) -> dict[int, Mark]:
    """By the beginning of the step in which each happened."""
    return _marks(history, _happened(events))


def _happened(events: Iterable[Event]) -> list[tuple[datetime, str, str]]:
    return [(event.time, MARKS[event.kind], event_text(event)) for event in events]


def _marks(history: Over, happened: Iterable[tuple[datetime, str, str]]) -> dict[int, Mark]:
    """Of moments, each with a kind of mark and a text."""
    by_step: dict[int, list[tuple[str, str]]] = {}
    for time, kind, text in sorted(happened, key=itemgetter(0)):
        if history.start <= time < history.end:
            step = int(time.timestamp()) // history.step_s * history.step_s
            by_step.setdefault(step, []).append((kind, text))
    return {step: _mark(some) for step, some in by_step.items()}


def _mark(happened: Sequence[tuple[str, str]]) -> Mark:
    texts = list(dict.fromkeys(text for _, text in happened))
    more = len(texts) - MOST_TOLD
    if more > 0:
        texts = [*texts[:MOST_TOLD], filled("{number} more", number=more)]
    kind = max((kind for kind, _ in happened), key=list(MARK_WORDS).index)
    return Mark(kind, str(worded(MARK_WORDS[kind])), tuple(texts))


def _marked(charts: Iterable[Chart], marks: Mapping[int, Mark]) -> list[Chart]:
    return [replace(chart, marks=marks, summary=_with_marks(chart.summary, marks)) for chart in charts]


def event_text(event: Event) -> str:
    """As a chart and its table tell it: ``Resized: bandwidth 5 → 10 MiB/s``."""
    more = event.told.subject if event.kind.startswith("alarm.") else detail_of(event)
    return f"{event_words(event)}: {more}" if more else event_words(event)


def legend_of(chart: Chart) -> list[tuple[str, str]]:
    """Of marks that are there: how they are drawn, and what they are."""
    there = {mark.kind for mark in chart.marks.values()}
    return [(kind, words) for kind, words in MARK_WORDS.items() if kind in there]


def _with_marks(summary: str, marks: Mapping[int, Mark]) -> str:
    if not marks:
        return summary
    return joined(summary, filled("It has {marks}.", marks=count(len(marks), "mark of an event,marks of events")))


def _charts(history: History, chosen: Times) -> list[Chart]:
    series = {each.metric.name: each for each in history.series}
    flows = [
        (title, f"{direction}_", direction)
        for direction, title in zip(DIRECTIONS, ("Produced", "Consumed"), strict=True)
    ]
    found = [
        _chart(
            history,
            chosen,
            direction,
            title,
            BYTES_PER_S,
            [
                *_limits(history, series[f"{prefix}limit_bytes_per_s"], series[f"{prefix}allocated_bytes_per_s"]),
                *_measured(series[f"{prefix}bytes_per_s"], "average"),
            ],
        )
        for title, prefix, direction in flows
    ]
    waited = [
        Line(
            kind, name, [None if value is None else value / 10 for value in series[f"{name}_throttled_ms_per_s"].values]
        )
        for kind, name in zip(("flow", "other"), DIRECTIONS, strict=True)
    ]
    storage = [
        Line("limit", "limit", series["storage_limit_bytes"].values, is_set=True),
        *_measured(series["storage_used_bytes"], "average"),
    ]
    return [
        *found,
        _chart(history, chosen, "throttled", "Throttled, share of the time", PERCENT, waited),
        _chart(history, chosen, "storage", "Storage", BYTES, storage),
        _chart(history, chosen, "connections", "Connections", COUNT, _measured(series["connections"], "average")),
        # Bytes are in REST alone: each table of 200 rows costs time, and with three of lag this page was the slowest of all.
        *(chart for chart in _largest_lags(history, chosen) if chart.name != "group_lag_bytes"),
    ]


def _limits(history: History, limit: Series, allocated: Series) -> list[Line]:
    """Of a step in which something was sampled no limit is unlimited; what is allocated then is, too."""
    free = [step for step, time in enumerate(history.times) if limit.values[step] is None and history.is_sampled(time)]
    words = dict.fromkeys(free, str(worded("unlimited")))
    return [
        Line("limit", "limit", limit.values, words, is_set=True),
        Line(
            "allocation",
            "allocated",
            allocated.values,
            {step: text for step, text in words.items() if allocated.values[step] is None},
            is_set=True,
        ),
    ]


PART_OF_A_JOIN = "MEMBER_ID_REQUIRED"
"""Answered to every client that joins a group for the first time, which comes again with the id that it is given: no failure."""


def request_charts_of(requests: Requests, chosen: Times) -> list[Chart]:
    """By API and by error, the most first, errors only where there were any; and how long producing and fetching took."""
    total = requests.summed()
    if not total.apis:
        return []
    apis = {name: api.requests for name, api in total.apis.items() if api.requests}
    found = [
        _chart(
            requests,
            chosen,
            "requests",
            "Requests by API",
            PER_S,
            _shares(requests, apis, lambda counts, name: counts.of(name).requests),
        )
    ]
    errors = {code: count for code, count in total.errors.items() if code != PART_OF_A_JOIN}
    if errors:
        lines = _shares(requests, errors, lambda counts, code: counts.errors.get(code, 0))
        found.append(_chart(requests, chosen, "errors", "Errors answered", PER_S, lines))
    values = [{} if step is None else values_of(step.counts, step.seconds) for step in requests.steps]
    for api, title in (("produce", "Produce latency"), ("fetch", "Fetch latency")):
        lines = [
            Line(kind, words, [_in_us(each.get(f"{api}_{name}_ms")) for each in values])
            for kind, words, name in PERCENTILE_LINES
        ]
        found.append(_chart(requests, chosen, f"{api}_latency", title, LATENCY, lines))
    return found


def _in_us(value_ms: float | None) -> float | None:
    return None if value_ms is None else value_ms * MS_US


def _shares(requests: Requests, names: Mapping[str, int], count_of: Callable[[RequestCounts, str], int]) -> list[Line]:
    """A line for each of those that there are most of, and one for the others together."""
    ordered = sorted(names, key=lambda name: (-names[name], name))
    parts: list[tuple[str, tuple[str, ...]]] = [
        (mark_safe(name), (name,))  # noqa: S308  # Kafka's own word, not ours to translate
        for name in ordered[:MOST_LINES]
    ]
    others = ordered[MOST_LINES:]
    if others:
        parts.append(("all others", tuple(others)))
    return [
        Line(
            LINE_KINDS[place],
            title,
            [
                None
                if step is None
                else THOUSANDTHS * sum(count_of(step.counts, name) for name in together) / step.seconds
                for step in requests.steps
            ],
        )
        for place, (title, together) in enumerate(parts)
    ]


LARGEST_LAGS = {
    "group_lag_messages": ("Largest lag of a group, in records", RECORDS),
    "group_lag_bytes": ("Largest lag of a group, in bytes", BYTES),
    "group_lag_seconds": ("Age of the oldest record that a group has not read", AGE),
}


def _largest_lags(history: History, chosen: Times) -> list[Chart]:
    """Of all groups of an instance, or of a topic; none where nothing is known of any, as of longer times."""
    series = {each.metric.name: each.values for each in history.series}
    return [
        _chart(history, chosen, name, title, unit, [Line("flow", "furthest behind", series[name])])
        for name, (title, unit) in LARGEST_LAGS.items()
        if any(value is not None for value in series[name])
    ]


def _thousandths(values: Sequence[float | None]) -> list[float | None]:
    """As PER_S draws them."""
    return [None if value is None else value * THOUSANDTHS for value in values]


def lag_charts_of(history: History, chosen: Times, events: Sequence[Event] = ()) -> list[Chart]:
    """Of a group, with what happened to its instance."""
    messages, size, seconds, consumed, produced = history.series
    moved = [
        Line(kind, direction, _thousandths(series.values))
        for kind, direction, series in zip(("flow", "other"), ("consume", "produce"), (consumed, produced), strict=True)
    ]
    charts = [
        _chart(history, chosen, "lag_messages", "Lag in records", RECORDS, _measured(messages, "average")),
        _chart(history, chosen, "lag_bytes", "Lag in bytes", BYTES, _measured(size, "average")),
        _chart(history, chosen, "lag_seconds", "Age of the oldest unread record", AGE, _measured(seconds, "average")),
        _chart(history, chosen, "group_records", "Records read and written", PER_S, moved),
    ]
    return _marked(charts, marks_of(history, events))


def topic_charts_of(history: History, chosen: Times, events: Sequence[Event] = ()) -> list[Chart]:
    """Of a topic, with what happened to its instance."""
    charts = [
        _chart(history, chosen, f"topic_{direction}", title, BYTES_PER_S, [Line("flow", "average", series.values)])
        for direction, title, series in zip(DIRECTIONS, ("Produced", "Consumed"), history.series[:2], strict=True)
    ]
    values = {each.metric.name: each.values for each in history.series}
    new, stored = values["produce_records_per_s"], values["storage_used_bytes"]
    if any(value is not None for value in new):  # brokers of an earlier release do not tell them
        line = Line("flow", "average", _thousandths(new))
        charts.append(_chart(history, chosen, "topic_records", "Records written", PER_S, [line]))
    if any(value is not None for value in stored):
        charts.append(_chart(history, chosen, "topic_storage", "Storage", BYTES, [Line("flow", "average", stored)]))
    return _marked([*charts, *_largest_lags(history, chosen)], marks_of(history, events))


def broker_charts_of(
    history: History, chosen: Times, went_away: Iterable[datetime] = (), events: Iterable[Event] = ()
) -> list[Chart]:
    """Of a broker, as all instances asked it, or one. `went_away`: when it did; `events` are of the instance."""
    values = {each.metric.name: each.values for each in history.series}

    def lines(*parts: tuple[str, str, str], times: int = 1) -> list[Line]:
        return [
            Line(kind, title, [None if value is None else value * times for value in values[name]])
            for kind, title, name in parts
        ]

    flows = [
        (kind, direction, f"{direction}_bytes_per_s")
        for kind, direction in zip(("flow", "other"), DIRECTIONS, strict=True)
    ]
    asked = (("flow", "requests", "requests_per_s"), ("most", "errors", "errors_per_s"))
    found = [
        _chart(history, chosen, "broker_flow", "Produced and consumed", BYTES_PER_S, lines(*flows)),
        _chart(history, chosen, "broker_requests", "Requests and errors", PER_S, lines(*asked, times=THOUSANDTHS)),
    ]
    for api, title in (("produce", "Produce latency"), ("fetch", "Fetch latency")):
        percentiles = [(kind, words, f"{api}_{name}_ms") for kind, words, name in PERCENTILE_LINES[1:]]
        found.append(_chart(history, chosen, f"{api}_latency", title, LATENCY, lines(*percentiles, times=MS_US)))
    away = [(time, "failover", str(worded(MARK_WORDS["failover"]))) for time in went_away]
    return _marked(found, _marks(history, [*away, *_happened(events)]))


def is_empty(history: History) -> bool:
    """Whether nothing is known of all the time."""
    return all(value is None for each in history.series for value in each.values)


def _measured(series: Series, title: str) -> list[Line]:
    return [Line("most", "maximum", series.maxima), Line("flow", title, series.values)]


def _chart(history: Over, chosen: Times, name: str, title: str, unit: _Unit, lines: list[Line]) -> Chart:
    title = str(worded(title))
    lines = [replace(line, title=str(worded(line.title))) for line in lines]
    moments = [int(time.timestamp()) for time in history.times]
    top = max((value for line in lines for value in line.values if value is not None), default=0)
    return Chart(
        name=name,
        title=title,
        lines=lines,
        moments=moments,
        step_s=history.step_s,
        unit=unit.name,
        levels=levels(top, unit.base, unit.parts),
        value_text=unit.text,
        moment_text=lambda at: _moment_text(at, history.step_s),
        summary=_summary(title, chosen, unit, lines),
    )


def levels(top: float, base: int, parts: Sequence[int]) -> list[float]:
    """From 0 to the first round value that is not below `top`, in few steps."""
    power = 0
    while True:
        for part in parts:
            step = part * base**power
            count = max(1, -int(-top // step))
            if count <= MOST_LEVELS:
                return [step * number for number in range(count + 1)]
        power += 1


def _summary(title: str, chosen: Times, unit: _Unit, lines: Sequence[Line]) -> str:
    said = []
    for line in lines:
        known = [value for value in line.values if value is not None]
        if known:
            last, most = unit.text(known[-1]), unit.text(max(known))
            said.append(filled("{title} {last} at the end, {most} at most", title=line.title, last=last, most=most))
    values = {"title": title, "said": "; ".join(said) or worded("nothing is known")}
    if chosen.range is None:
        return filled("{title}, {span} UTC: {said}. The table below has the values.", span=chosen.span, **values)
    words = worded(chosen.range.words)
    return filled("{title}, the last {words}: {said}. The table below has the values.", words=words, **values)


def _moment(at: int) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def _moment_text(at: int, step_s: int) -> str:
    form = "%Y-%m-%d" if step_s >= DAY else "%Y-%m-%d %H:%M" if step_s >= MINUTE else "%Y-%m-%d %H:%M:%S"
    return f"{_moment(at):{form}}"
