"""Requests of an instance in some steps, by API and error, with their latencies. The caller has the instance from a selector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import connection

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.history.requests.figures import latencies, per_s
from controlplane.history.requests.reading import counted
from controlplane.history.selectors import MODELS, moment_at, planned
from controlplane.history.statements import samples_by_step
from controlplane.history.store.client import StoreAway
from controlplane.history.store.reading import sample_counts
from controlplane.history.store.spans import FLOW, parts_of
from quota.contracts.requests import RequestCounts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from controlplane.history.resolutions import Plan
    from controlplane.history.selectors import History
    from controlplane.history.store.spans import Part
    from controlplane.instances.models import Instance


@dataclass(frozen=True, slots=True)
class Step:
    """What was asked in a step, of `seconds` of which it is known."""

    time: datetime
    seconds: int
    counts: RequestCounts


@dataclass(frozen=True, slots=True)
class Requests:
    """Over steps; None: nothing is known of one."""

    start: datetime
    end: datetime
    step_s: int
    resolution_s: int
    times: list[datetime]
    steps: list[Step | None]
    is_complete: bool = True  # False: the metrics store does not answer, and what only it has is not known

    @property
    def seconds(self) -> int:
        """Of how much of the time it is known."""
        return sum(step.seconds for step in self.steps if step is not None)

    def summed(self) -> RequestCounts:
        """All steps together."""
        found = RequestCounts()
        for step in self.steps:
            if step is not None:
                found.add(step.counts)
        return found


@dataclass(frozen=True, slots=True)
class ApiRow:
    """One API over the whole time."""

    api: str
    requests: int
    requests_per_s: float
    errors: int
    error_codes: Mapping[str, int]
    latency_ms: Mapping[str, Mapping[str, float | None]]  # percentiles by phase

    def as_json(self) -> dict[str, object]:
        """As REST has it."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def rows_of(found: Requests) -> list[ApiRow]:
    """By API, the most requests first."""
    seconds = max(1, found.seconds)
    rows = [
        ApiRow(
            name,
            api.requests,
            per_s(api.requests, seconds),
            sum(api.errors.values()),
            dict(sorted(api.errors.items())),
            latencies(api),
        )
        for name, api in found.summed().apis.items()
    ]
    return sorted(rows, key=lambda row: (-row.requests, row.api))


def requests_get(
    *,
    instance: Instance,
    start: datetime,
    end: datetime,
    step_s: int | None = None,
    known: History | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Requests:
    """In the steps that were asked for, or the shortest of which not too many are needed. Raises Invalid.

    `known`: the caller's history of the same steps, which has read what is counted.
    """
    plan = planned(start, end, step_s, clock.now())
    if known is not None and known.counted is not None and known.counted.plan == plan:
        found, samples = known.counted, known.samples
    else:
        found, samples = counted(instance, plan), samples_of(instance.pk, plan)
    steps: list[Step | None] = []
    for at in plan.moments:
        seconds = found.seconds(at, plan.step_s, samples.get(at, 0))
        steps.append(Step(moment_at(at), seconds, found.of(at)) if seconds else None)
    times = [moment_at(at) for at in plan.moments]
    return Requests(
        moment_at(plan.start),
        moment_at(plan.end),
        plan.step_s,
        plan.resolution.step_s,
        times,
        steps,
        found.is_complete,
    )


def samples_of(instance: str, plan: Plan) -> Mapping[int, int]:
    """How many there were in each step: where a master did not answer, nothing is known of requests either.

    Where the metrics store does not answer, those that the database still has.
    """
    found: dict[int, int] = {}
    for part in parts_of(plan, FLOW):
        try:
            counts = sample_counts(instance, plan, part) if part.store else _counts_here(instance, plan, part)
        except StoreAway:  # who asked for requests has said so
            counts = _counts_here(instance, plan, part)
        for at, count in counts.items():
            found[at] = found.get(at, 0) + count
    return found


def _counts_here(instance: str, plan: Plan, part: Part) -> dict[int, int]:
    with connection.cursor() as cursor:
        cursor.execute(samples_by_step(MODELS[plan.resolution], plan.step_s), [part.start, part.end, instance])
        return {int(at): int(count) for at, count in cursor.fetchall()}
