"""From rows of the history to series of a store and back, and the questions in PromQL. Pure.

A store has three metrics, by how their values are put together in a longer step:

======================  ==================  ==============================================================================
metric                  in a longer step    what it has
======================  ==================  ==============================================================================
`sluice_history_sum`    `sum_over_time`     sums over a row's samples, and counts: of any step the sum of its rows is exact
`sluice_history_max`    `max_over_time`     the largest of a row's samples
`sluice_history_last`   `last_over_time`    limits and allocations at the end of a row; ``+Inf``: unlimited
======================  ==================  ==============================================================================

Labels are `instance_id`, `resolution` (60 or 3600: seconds of a row), `kind` and `column`; `kind` is

* `flow`: what `models.Minute` and `models.Hour` have, `column` by column;
* `windows`: the tens of seconds in which anything was asked, one column of that name;
* `requests`: of each `api` `unanswered`, `errors` by `error`, and histograms, `times` by `phase` and `bucket` (a place in
  `quota.contracts.requests.BOUNDS_US`), with their sums `times_us`; what was carried has no `api`;
* `brokers`: the same of each `broker` as `requests.by_broker` has it; `brokers_unknown` counts rows that do not say it;
* `topics`: `topic_produced`, `topic_consumed`, `topic_records`, and `topic_unknown` of each `topic`, as
  `quota.contracts.topics_moved` has them, `topic_named`, in how many rows, and `topic_counted`, in how many of those records are
  known; `topics_rest` counts rows that have a rest, `topic_in_rest` those of them that name the topic, `topics_unknown` rows that
  say nothing.

A value of zero is left out where absent means the same. A row that begins at `at` stands at its last second: so the window of a
step never has a row of the step before, whether or not a store counts the edges of its windows (Prometheus 2 does, 3 does not).
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import orjson

from controlplane.history.metrics import SET
from controlplane.history.requests.by_broker import Asked
from controlplane.history.statements import COLUMNS, LARGEST, ROLLED
from controlplane.history.store.wire import Point
from quota.contracts.requests import BUCKETS, PHASES, ApiCounts, Histogram, RequestCounts, is_api, is_name
from quota.contracts.topics_moved import TopicsMoved

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from controlplane.history.models import RequestRow, Rolled

SUM, MAX, LAST = "sluice_history_sum", "sluice_history_max", "sluice_history_last"
_SUMS = tuple(name for name in ROLLED if name not in LARGEST)
_HISTOGRAMS = ("at_once", *PHASES)
_OF_BROKERS = ("requests", "errors", "windows", "produced_bytes", "consumed_bytes", "carried_windows")
_TIMES_OF_BROKERS = ("produce", "fetch")
_NUMBER = re.compile(r"[0-9]{1,9}")
_CARRIED = ("produced_bytes", "consumed_bytes", "carried_windows")
COUNTS, BROKERS, TOPICS = "counts", "brokers", "topics"
"""Columns of a row of requests."""
KINDS = {COUNTS: "requests", BROKERS: "brokers", TOPICS: "topics"}
_OF_ONE = {COUNTS: "api", BROKERS: "broker", TOPICS: "topic"}


def stands_at(at: int, resolution_s: int) -> int:
    """When the values of a row stand in the store."""
    return at + resolution_s - 1


def points_of_flow(row: Rolled, resolution_s: int) -> Iterator[Point]:
    """A minute or an hour of an instance."""
    for metric, columns in ((SUM, _SUMS), (MAX, LARGEST), (LAST, SET)):
        for column in columns:
            value = getattr(row, column)
            labels = _labels(metric, row.instance, resolution_s, kind="flow", column=column)
            yield Point(labels, math.inf if value is None else float(value))


def points_of_requests(row: RequestRow, resolution_s: int) -> Iterator[Point]:
    """Likewise of its requests, topics and brokers."""
    yield Point(_labels(SUM, row.instance, resolution_s, kind="windows", column="windows"), float(row.windows))
    for kind, found in (
        ("requests", _counts(row.counts)),
        ("brokers", _brokers(row.brokers)),
        ("topics", _topics(row.topics)),
    ):
        for labels, value in found:
            if value:
                yield Point(_labels(SUM, row.instance, resolution_s, kind=kind, **labels), float(value))


def _labels(metric: str, instance: str, resolution_s: int, **others: str) -> tuple[tuple[str, str], ...]:
    return (
        ("__name__", metric),
        ("instance_id", instance),
        ("resolution", str(resolution_s)),
        *((name, value) for name, value in others.items()),
    )


def _counts(text: str) -> Iterator[tuple[dict[str, str], int]]:
    counts = RequestCounts()
    counts.add_text(text)
    for name in _CARRIED:
        yield {"column": name}, getattr(counts, name)
    for api, ours in counts.apis.items():
        yield {"column": "unanswered", "api": api}, ours.unanswered
        for code, count in ours.errors.items():
            yield {"column": "errors", "api": api, "error": code}, count
        for phase in _HISTOGRAMS:
            yield from _times(getattr(ours, phase), api=api, phase=phase)


def _brokers(text: str | None) -> Iterator[tuple[dict[str, str], int]]:
    if text is None:
        yield {"column": "brokers_unknown"}, 1
        return
    for broker, row in orjson.loads(text).items():
        asked = Asked()
        asked.add_row(row)
        for name in _OF_BROKERS:
            yield {"column": name, "broker": broker}, getattr(asked, name)
        for phase in _TIMES_OF_BROKERS:
            yield from _times(getattr(asked, phase), broker=broker, phase=phase)


def _topics(text: str | None) -> Iterator[tuple[dict[str, str], int]]:
    if text is None:
        yield {"column": "topics_unknown"}, 1
        return
    moved = TopicsMoved.from_trusted(orjson.loads(text))
    has_rest = moved.rest_windows > 0
    yield {"column": "topics_rest"}, int(has_rest)
    for topic, (produced, consumed, unknown, records, uncounted) in moved.names.items():
        yield {"column": "topic_named", "topic": topic}, 1
        yield {"column": "topic_produced", "topic": topic}, produced
        yield {"column": "topic_consumed", "topic": topic}, consumed
        yield {"column": "topic_records", "topic": topic}, records
        yield {"column": "topic_counted", "topic": topic}, 1 - uncounted
        yield {"column": "topic_unknown", "topic": topic}, unknown
        yield {"column": "topic_in_rest", "topic": topic}, int(has_rest)


def _times(times: Histogram, **labels: str) -> Iterator[tuple[dict[str, str], int]]:
    yield {"column": "times_us", **labels}, times.sum_us
    for bucket, count in enumerate(times.counts):
        yield {"column": "times", **labels, "bucket": str(bucket)}, count


def flow_asked(instance: str, resolution_s: int, range_s: int) -> str:
    """All columns of an instance in windows of so many seconds."""
    ours = {"instance_id": instance, "resolution": str(resolution_s), "kind": "flow"}
    return " or ".join(
        f"{over}({_selector(metric, ours)}[{range_s:d}s])"
        for over, metric in (("sum_over_time", SUM), ("max_over_time", MAX), ("last_over_time", LAST))
    )


def requests_asked(instance: str, resolution_s: int, range_s: int, column: str, only: str | None = None) -> str:
    """One column of rows of requests. `only`: of one topic, broker or API; of topics never more, of others None: of all."""
    ours = {"instance_id": instance, "resolution": str(resolution_s)}
    asked, kind = [{**ours, "kind": "windows"}], {**ours, "kind": KINDS[column]}
    if column == TOPICS:
        only = only or ""
    if only is None:
        asked.append(kind)
    else:  # an empty value is that of series without the label
        asked += [{**kind, _OF_ONE[column]: name} for name in dict.fromkeys(("", only))]
    return " or ".join(f"sum_over_time({_selector(SUM, each)}[{range_s:d}s])" for each in asked)


def samples_asked(instance: str, resolution_s: int, range_s: int) -> str:
    """How many samples there were."""
    ours = {"instance_id": instance, "resolution": str(resolution_s), "kind": "flow", "column": "samples"}
    return f"sum_over_time({_selector(SUM, ours)}[{range_s:d}s])"


def _selector(metric: str, labels: Mapping[str, str]) -> str:
    return metric + "{" + ",".join(f"{name}={quoted(value)}" for name, value in labels.items()) + "}"


def quoted(text: str) -> str:
    r"""A string of PromQL: Go's escapes, of which JSON's are a part.

    Only equality is asked for, so nothing in it is a pattern. Raises ValueError of what is no text in UTF-8.
    """
    return orjson.dumps(text).decode()


def flow_row(instance: str, at: int, values: Iterable[tuple[Mapping[str, str], float]]) -> dict[str, Any] | None:
    """As `statements.selected` gives a step; None: there was no sample."""
    found = {labels.get("column", ""): value for labels, value in values}
    if not found.get("samples"):
        return None
    row: dict[str, Any] = {"instance": instance, "at": at}
    for column in COLUMNS[2:]:
        value = found.get(column, 0.0)
        row[column] = None if math.isinf(value) else round(value)
    return row


def windows_of(values: Iterable[tuple[Mapping[str, str], float]]) -> int:
    """In how many anything was asked."""
    return sum(round(value) for labels, value in values if labels.get("kind") == "windows")


def text_of(column: str, values: Iterable[tuple[Mapping[str, str], float]], topic: str | None = None) -> str | None:
    """What such a column of a row has that is all of these rows together; None: of one of them it is not known."""
    wanted = [(labels, round(value)) for labels, value in values if labels.get("kind") != "windows"]
    if column == COUNTS:
        return _counts_text(wanted)
    return _brokers_text(wanted) if column == BROKERS else _topics_text(wanted, topic or "")


def _counts_text(values: Iterable[tuple[Mapping[str, str], int]]) -> str:
    counts = RequestCounts()
    for labels, value in values:
        column, api = labels.get("column", ""), labels.get("api")
        if api is None:
            if column in _CARRIED:
                setattr(counts, column, value)
            continue
        if not is_api(api) or (column == "errors" and not is_name(labels.get("error", ""))):
            continue
        ours = counts.apis.setdefault(api, ApiCounts())
        if column == "unanswered":
            ours.unanswered = value
        elif column == "errors":
            ours.errors[labels.get("error", "")] = value
        elif labels.get("phase") in _HISTOGRAMS:
            _observed(getattr(ours, labels["phase"]), labels, value)
    return counts.to_text()


def _brokers_text(values: Iterable[tuple[Mapping[str, str], int]]) -> str | None:
    found: dict[str, Asked] = {}
    for labels, value in values:
        column, broker = labels.get("column", ""), labels.get("broker")
        if broker is None:
            if column == "brokers_unknown" and value:
                return None
            continue
        if not _NUMBER.fullmatch(broker):
            continue
        asked = found.setdefault(broker, Asked())
        if column in _OF_BROKERS:
            setattr(asked, column, value)
        elif labels.get("phase") in _TIMES_OF_BROKERS:
            _observed(getattr(asked, labels["phase"]), labels, value)
    return orjson.dumps({broker: found[broker].to_row() for broker in sorted(found, key=int)}).decode()


def _topics_text(values: Iterable[tuple[Mapping[str, str], int]], topic: str) -> str | None:
    """Of one topic, and a rest where it may be in one."""
    found: dict[str, int] = {}
    for labels, value in values:
        found[labels.get("column", "")] = value
    if found.get("topics_unknown"):
        return None
    unknown = found.get("topic_unknown", 0) + found.get("topics_rest", 0) - found.get("topic_in_rest", 0)
    rows: dict[str, list[int]] = {}
    if found.get("topic_named"):
        rows[topic] = [found.get("topic_produced", 0), found.get("topic_consumed", 0), unknown]
        if found.get("topic_counted") == found["topic_named"]:  # rows that an earlier release wrote have none of them
            rows[topic].append(found.get("topic_records", 0))
    if unknown:
        rows[""] = [0, 0, unknown]
    return orjson.dumps(rows).decode()


def _observed(times: Histogram, labels: Mapping[str, str], value: int) -> None:
    bucket = labels.get("bucket", "")
    if labels.get("column") == "times_us":
        times.sum_us = value
    elif labels.get("column") == "times" and _NUMBER.fullmatch(bucket) and int(bucket) < BUCKETS:
        times.counts[int(bucket)] = value
