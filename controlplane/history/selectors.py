"""A history of some metrics of an instance. The caller has the instance from a selector within its organisation."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from django.db import connection

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Invalid
from controlplane.history.lag.samples import INSTANCE, largest_of
from controlplane.history.metrics import CARRIED, EVERY, OF_GROUPS, Kind, Metric
from controlplane.history.models import Hour, Minute, Sample
from controlplane.history.requests.figures import carried_of, values_of
from controlplane.history.requests.reading import Counted, carried, counted
from controlplane.history.resolutions import (
    HOURS,
    MINUTES,
    RESOLUTIONS,
    SAMPLES,
    Plan,
    RangeError,
    Resolution,
    plan_of,
)
from controlplane.history.statements import COLUMNS, LARGEST, ROLLED, selected
from controlplane.history.store.client import StoreAway
from controlplane.history.store.reading import flow_rows
from controlplane.history.store.spans import FLOW, gone_of, parts_of
from controlplane.history.waiting import waited_by_step

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from controlplane.history.store.spans import Part
    from controlplane.history.waiting import Waited
    from controlplane.instances.models import Instance

LOG = logging.getLogger(__name__)
MODELS: Mapping[Resolution, type[Sample | Minute | Hour]] = {SAMPLES: Sample, MINUTES: Minute, HOURS: Hour}
TOLD_WITHIN_S = 30
"""Throttled time of later samples may not have been told yet: it is not known, rather than none."""

Number = int | float | None


@dataclass(frozen=True, slots=True)
class Series:
    """One metric: of each step its average, or the last value of what is set, and its maximum. None: it is not known."""

    metric: Metric
    values: list[Number] = field(default_factory=list)
    maxima: list[Number] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class History:
    """Some metrics over the same steps."""

    start: datetime
    end: datetime
    step_s: int
    resolution_s: int  # of the rows that steps are made of
    times: list[datetime]
    series: list[Series]
    counted: Counted | None = None  # what was asked in these steps, where a metric needed it
    samples: Mapping[int, int] = field(default_factory=dict)  # how many there were, by the beginning of a step
    is_complete: bool = True  # False: the metrics store does not answer, and what only it has is not known

    def is_sampled(self, time: datetime) -> bool:
        """Whether anything was sampled in the step that begins then: if not, a limit that is None is not known."""
        return int(time.timestamp()) in self.samples

    @property
    def gaps(self) -> list[tuple[datetime, datetime]]:
        """The times of which there is no sample, each from the beginning of its first step to the end of its last."""
        found: list[tuple[datetime, datetime]] = []
        step = timedelta(seconds=self.step_s)
        for time in self.times:
            if self.is_sampled(time):
                continue
            if found and found[-1][1] == time:
                found[-1] = found[-1][0], time + step
            else:
                found.append((time, time + step))
        return found

    @classmethod
    def over(
        cls,
        plan: Plan,
        series: Iterable[Series],
        found: Counted | None = None,
        samples: Mapping[int, int] | None = None,
        *,
        is_complete: bool = True,
    ) -> Self:
        """In the steps of a plan."""
        return cls(
            moment_at(plan.start),
            moment_at(plan.end),
            plan.step_s,
            plan.resolution.step_s,
            [moment_at(at) for at in plan.moments],
            list(series),
            found,
            samples or {},
            is_complete and (found is None or found.is_complete),
        )


def planned(
    start: datetime,
    end: datetime,
    step_s: int | None,
    now: datetime,
    resolutions: Sequence[Resolution] = RESOLUTIONS,
) -> Plan:
    """How a question of [start, end) is answered. Raises Invalid."""
    try:
        return plan_of(
            int(start.timestamp()), -int(-min(end, now).timestamp() // 1), step_s, int(now.timestamp()), resolutions
        )
    except RangeError as error:
        raise Invalid.field(error.field, str(error)) from error


def history_get(
    *,
    instance: Instance,
    start: datetime,
    end: datetime,
    step_s: int | None = None,
    metrics: Sequence[Metric] = tuple(EVERY.values()),
    counts_requests: bool = True,
    clock: Clock = SYSTEM_CLOCK,
) -> History:
    """In the steps that were asked for, or the shortest of which not too many are needed. Raises Invalid.

    `counts_requests`: False where no metric is counted, and `counted` is not needed: thousands of rows are then read quickly.
    """
    now = clock.now()
    plan = planned(start, end, step_s, now)
    rows, is_complete = rows_by_step(instance.pk, plan)
    if plan.resolution is SAMPLES and any(metric.kind is Kind.WAITED for metric in metrics):
        _add_waiting(rows, waited_by_step(plan.start, plan.end, plan.step_s, instances=[instance.pk]))
    found = None
    if any(metric.kind is Kind.COUNTED or metric.name in CARRIED for metric in metrics):
        found = counted(instance, plan) if counts_requests else carried(instance, plan)
        _add_requests(rows, found, plan, are_counted=any(metric.kind is Kind.COUNTED for metric in metrics))
    known_to = int(now.timestamp()) - (TOLD_WITHIN_S if plan.resolution is SAMPLES else 0)
    samples = {at: int(row["samples"]) for at, row in rows.items() if "samples" in row}
    lags: Mapping[str, list[Number]] = {}
    if any(metric.kind is Kind.LARGEST for metric in metrics):
        lags = lag_by_name(instance.pk, INSTANCE, plan)
    series = [
        Series(metric, lags[metric.name]) if metric.kind is Kind.LARGEST else _series(metric, plan, rows, known_to)
        for metric in metrics
    ]
    is_complete = is_complete and (found is None or found.is_complete)
    return History.over(plan, series, found if counts_requests else None, samples, is_complete=is_complete)


def metrics_named(text: str | None, field_name: str = "metrics") -> list[Metric]:
    """From names with commas between; all, where none is said. Raises Invalid."""
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    unknown = [name for name in names if name not in EVERY]
    if unknown:
        raise Invalid.field(field_name, f"there is no metric {unknown[0][:64]!r}; there are {', '.join(EVERY)}")
    return [EVERY[name] for name in dict.fromkeys(names)] or list(EVERY.values())


def lag_by_name(instance: str, key: str, plan: Plan) -> dict[str, list[Number]]:
    """OF_GROUPS of each step: of an instance, or of a topic (`lag.samples.topic_key`)."""
    columns = zip(*largest_of(instance, key, plan), strict=True)
    return {name: list(column) for name, column in zip(OF_GROUPS, columns, strict=True)}


def rows_by_step(instance: str, plan: Plan) -> tuple[dict[int, dict[str, Any]], bool]:
    """By the beginning of their step; and whether these are all, or some could not be asked of the metrics store."""
    found: dict[int, dict[str, Any]] = {}
    is_complete = True
    parts = parts_of(plan, FLOW)
    if gone_of(plan, FLOW, [part for part in parts if part.store]):  # a store that is not asked any more has them
        is_complete = False
    for part in parts:
        try:
            rows = flow_rows(instance, plan, part) if part.store else _rows_here(instance, plan, part)
        except StoreAway as error:
            LOG.warning("the metrics store does not answer: %s", error)
            rows, is_complete = _rows_here(instance, plan, part), is_complete and part.is_here
        for at, row in rows.items():
            found[at] = _joined(found[at], row) if at in found else row
    return found, is_complete


def _rows_here(instance: str, plan: Plan, part: Part) -> dict[int, dict[str, Any]]:
    statement = selected(MODELS[plan.resolution], plan.step_s, of_one=True)
    with connection.cursor() as cursor:
        cursor.execute(statement, [part.start, part.end, instance])
        return {row[1]: dict(zip(COLUMNS, row, strict=True)) for row in cursor.fetchall()}


def _joined(row: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Two parts of one step: what is set is what the later one says."""
    added = {name: row[name] + later[name] for name in ROLLED if name not in LARGEST}
    return {**later, **added, **{name: max(row[name], later[name]) for name in LARGEST}}


def _add_waiting(rows: dict[int, dict[str, Any]], waited: Waited) -> None:
    """Also to steps without a sample: throttled time is known of them, though nothing else is."""
    for (_, direction, at), waited_ms in waited.items():
        rows.setdefault(at, {})[f"{direction}_throttled_ms"] = waited_ms


def _add_requests(rows: dict[int, dict[str, Any]], found: Counted, plan: Plan, *, are_counted: bool) -> None:
    """To steps of which requests are known: where nothing was sampled, they are so where there were any.

    `are_counted`: whether any metric is asked for that is made of counts, and not what was carried alone.
    """
    for at in plan.moments:
        seconds = found.seconds(at, plan.step_s, int(rows.get(at, {}).get("samples", 0)))
        if seconds:
            row = rows.setdefault(at, {})
            if are_counted:
                row["requests"] = values_of(found.of(at), seconds)
            row["carried"] = carried_of(found.of(at), found.windows.get(at, 0), seconds)


def _series(metric: Metric, plan: Plan, rows: Mapping[int, Mapping[str, Any]], known_to: int) -> Series:
    found = Series(metric)
    for at in plan.moments:
        row = rows.get(at, {})
        value: Number = None
        most: Number = None
        if metric.kind is Kind.WAITED:
            value, most = _waited(metric, plan, row, at, known_to)
        elif metric.kind is Kind.COUNTED:
            value = row.get("requests", {}).get(metric.name)
        elif metric.name in row.get("carried", {}):  # counted to the byte, where samples are of one second in ten
            value = row["carried"][metric.name]
            most = max(value, row.get(f"{metric.name}_max", value))
        elif "samples" not in row:
            pass  # a gap
        elif metric.kind is Kind.SET:
            value = row[metric.name]
        else:
            value, most = _rounded(metric, row[f"{metric.name}_sum"], row["samples"]), row[f"{metric.name}_max"]
        found.values.append(value)
        if metric.maximum is not None:
            found.maxima.append(most)
    return found


def _rounded(metric: Metric, total: int, samples: int) -> Number:
    average = int(total) / int(samples)
    return round(average) if metric.unit.startswith("bytes") else round(average, 1)


def _waited(metric: Metric, plan: Plan, row: Mapping[str, Any], at: int, known_to: int) -> tuple[Number, Number]:
    """Milliseconds a second: of the whole step, or, of minutes, of the time of which anything is known."""
    column = f"{metric.name.removesuffix('_per_s')}"
    if column not in row or (plan.resolution is SAMPLES and at + plan.step_s > known_to):
        return None, None
    if plan.resolution is SAMPLES:
        rate = round(row[column] / plan.step_s, 1)
        return rate, rate
    minute_s = MINUTES.step_s
    return round(int(row[column]) / (int(row["minutes"]) * minute_s), 1), round(row[f"{column}_max"] / minute_s, 1)


def moment_at(at: int) -> datetime:
    """Seconds since 1970 as a moment."""
    return datetime.fromtimestamp(at, UTC)
