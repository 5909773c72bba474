"""A history of a group's lag. It outlives the group, and the instance, as the rest of the history does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.groups.selectors import group_known
from controlplane.history.lag.rows import METRICS, RESOLUTIONS, RUN_S, Step, age_s, digest_of, minute
from controlplane.history.lag.samples import group_key, samples_of, steps_of
from controlplane.history.models import LagGroup, LagHours, LagMinutes
from controlplane.history.requests.figures import per_s
from controlplane.history.resolutions import HOURS, MINUTES, SAMPLES, Plan, floor
from controlplane.history.selectors import History, Series, planned
from controlplane.instances.selectors import instance_any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
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
    samples = samples_of(instance.pk, group_key(name), plan) if plan.resolution is SAMPLES else {}
    if plan.resolution is SAMPLES and step_s is None and not samples:  # as of a group that only whole rounds come to
        plan = planned(start, end, step_s, clock.now(), RESOLUTIONS[1:])
    group = _rows_of(instance, name)
    steps = steps_of(samples, plan)
    if group is not None:
        for at, step in _known(group, plan):
            if plan.resolution is not SAMPLES:
                steps.setdefault(floor(at, plan.step_s), Step()).add(step)
                continue
            stands_for_all = sum(sampled in samples for sampled in _tens(at)) <= 1
            for each in (ten for ten in _tens(at) if plan.start <= ten < plan.end):
                has_lag = stands_for_all and each not in samples
                steps.setdefault(floor(each, plan.step_s), Step()).add(step if has_lag else step.without_lag)
    return History.over(plan, _series(plan, steps))


def _tens(at: int) -> range:
    """The steps of a minute: where no short round has sampled one of them, what the minute's round has found stands for all.

    The minute's round samples a step as well, so one sample may be that. What moved is known of whole minutes alone.
    """
    return range(at, at + MINUTES.step_s, SAMPLES.step_s)


def _rows_of(instance: Instance, name: str) -> int | None:
    """The group's number, by which rows are found."""
    rows = LagGroup.objects.filter(instance=instance.pk, digest=digest_of(name))
    return rows.values_list("pk", flat=True).first()


def _known(group: int, plan: Plan) -> Iterator[tuple[int, Step]]:
    """Each minute or hour of which anything is known that has a part in the plan.

    Of two weeks these are 20,000 rows: they are read as tuples, not as models, in half the time.
    """
    model, length = (LagHours, HOURS) if plan.resolution is HOURS else (LagMinutes, MINUTES)
    fields, step_of = (_OF_HOURS, _hour) if plan.resolution is HOURS else (_OF_MINUTES, _minute)
    begins = floor(plan.start, RUN_S[length])
    rows = model.objects.filter(group=group, at__gte=begins, at__lt=plan.end)
    for begun, until, *figures in rows.values_list("at", "until", *fields).iterator():
        for at in range(begun, until + 1, length.step_s):
            if floor(plan.start, length.step_s) <= at < plan.end:
                yield at, step_of(at, *figures)


_OF_MINUTES = ("late_s", "messages", "oldest_ms", "size", "consumed", "produced")
_OF_HOURS = (
    "samples", "messages_sum", "messages_max", "dated", "seconds_sum", "seconds_max", "sized", "size_sum", "size_max",
    "moved", "consumed_sum", "produced_sum",
)  # fmt: skip


def _minute(at: int, late_s: int, messages: int, oldest_ms: int | None, *others: int | None) -> Step:
    return minute(messages, age_s(at + late_s, oldest_ms), *others)


def _hour(_at: int, *figures: float | None) -> Step:
    return Step(*(figure or 0 for figure in figures))  # type: ignore[arg-type]  # in the order of `Step`


def _series(plan: Plan, steps: Mapping[int, Step]) -> Iterator[Series]:
    found = [steps.get(at) for at in plan.moments]
    seen = [None if step is None or not step.samples else step for step in found]
    yield Series(
        METRICS["lag_messages"],
        [None if step is None else round(step.messages / step.samples, 1) for step in seen],
        [None if step is None else step.messages_most for step in seen],
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
    moved = [None if step is None or not step.moved else step for step in found]
    yield Series(
        METRICS["consume_records_per_s"],
        [None if step is None else per_s(step.consumed, step.moved * MINUTES.step_s) for step in moved],
    )
    yield Series(
        METRICS["produce_records_per_s"],
        [None if step is None else per_s(step.produced, step.moved * MINUTES.step_s) for step in moved],
    )
