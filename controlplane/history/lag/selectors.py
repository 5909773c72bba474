"""A history of a group's lag. It outlives the group, and the instance, as the rest of the history does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.groups.selectors import group_known
from controlplane.history.lag.rows import METRICS, RESOLUTIONS, RUN_S, Step, age_s, digest_of, minute
from controlplane.history.models import LagGroup, LagHours, LagMinutes
from controlplane.history.resolutions import MINUTES, Plan, floor
from controlplane.history.selectors import History, Series, planned
from controlplane.instances.selectors import instance_any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from controlplane.instances.models import Instance
    from controlplane.tenants.models import Organisation


def group_history_get(
    *,
    organisation: Organisation,
    instance_id: str,
    name: str,
    start: datetime,
    end: datetime,
    step_s: int | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> History:
    """Of a group that is there, or of which there are rows. Raises NotFound, Invalid, ClusterUnavailable.

    The cluster is asked only about a name that the history does not know.
    """
    instance = instance_any(organisation=organisation, instance_id=instance_id)
    if not lag_is_kept(instance=instance, name=name):
        group_known(organisation=organisation, instance_id=instance_id, name=name)
    return lag_get(instance=instance, name=name, start=start, end=end, step_s=step_s, clock=clock)


def lag_is_kept(*, instance: Instance, name: str) -> bool:
    """Whether there are rows of a group of this name, be it there or not; the caller has the instance from its organisation."""
    return _rows_of(instance, name) is not None


def lag_get(
    *,
    instance: Instance,
    name: str,
    start: datetime,
    end: datetime,
    step_s: int | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> History:
    """Whether or not there is such a group; the caller has the instance from its organisation's scope. Raises Invalid."""
    plan = planned(start, end, step_s, clock.now(), RESOLUTIONS)
    group = _rows_of(instance, name)
    steps: dict[int, Step] = {}
    if group is not None:
        for at, step in _known(group, plan):
            steps.setdefault(floor(at, plan.step_s), Step()).add(step)
    return History.over(plan, _series(plan, steps))


def _rows_of(instance: Instance, name: str) -> int | None:
    """The group's number, by which rows are found."""
    rows = LagGroup.objects.filter(instance=instance.pk, digest=digest_of(name))
    return rows.values_list("pk", flat=True).first()


def _known(group: int, plan: Plan) -> Iterator[tuple[int, Step]]:
    """Each minute or hour of the plan of which anything is known."""
    begins, model = floor(plan.start, RUN_S[plan.resolution]), LagMinutes if plan.resolution is MINUTES else LagHours
    for row in model.objects.filter(group=group, at__gte=begins, at__lt=plan.end):
        for at in range(row.at, row.until + 1, plan.resolution.step_s):
            if plan.start <= at < plan.end:
                yield at, _step(row, at)


def _step(row: LagMinutes | LagHours, at: int) -> Step:
    if isinstance(row, LagMinutes):
        return minute(row.messages, age_s(at + row.late_s, row.oldest_ms), row.size)
    return Step(
        row.samples,
        row.messages_sum,
        row.messages_max,
        row.dated,
        row.seconds_sum,
        row.seconds_max or 0.0,
        row.sized or 0,
        row.size_sum or 0,
        row.size_max or 0,
    )


def _series(plan: Plan, steps: dict[int, Step]) -> Iterator[Series]:
    found = [steps.get(at) for at in plan.moments]
    yield Series(
        METRICS["lag_messages"],
        [None if step is None else round(step.messages / step.samples, 1) for step in found],
        [None if step is None else step.messages_most for step in found],
    )
    sized = [None if step is None or not step.sized else step for step in found]
    yield Series(
        METRICS["lag_bytes"],
        [None if step is None else round(step.size / step.sized, 1) for step in sized],
        [None if step is None else step.size_most for step in sized],
    )
    dated = [None if step is None or not step.dated else step for step in found]
    yield Series(
        METRICS["lag_seconds"],
        [None if step is None else round(step.seconds / step.dated, 1) for step in dated],
        [None if step is None else round(step.seconds_most, 1) for step in dated],
    )
