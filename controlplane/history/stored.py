"""What a topic stored over time: bytes of all replicas, from its usage, which bills are made of.

Usage is known by the hour: how many byte-seconds there were. So a step has the average of its hours, and one that is shorter has
that of the hour in which it lies. Of days whose hours are folded there is the average of the day. It is known some minutes after
an hour's end, as far as the meter has come; where there is no meter nothing is known.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from controlplane.history.resolutions import HOURS, floor
from controlplane.metering.selectors import complete_to, counted_until, topic_hours

if TYPE_CHECKING:
    from controlplane.history.resolutions import Plan
    from controlplane.instances.models import Instance

HOUR_S = HOURS.step_s


def stored_by_step(instance: Instance, topic: str, plan: Plan, now: datetime) -> list[float | None]:
    """Bytes in each step of a plan; None: not known, as before there was the instance.

    The caller has the instance from a selector within its organisation.
    """
    read_to = complete_to(instance.cluster.name)
    if read_to is None:
        return [None for _ in plan.moments]
    counted_to = int(counted_until(now, read_to=read_to).timestamp())
    since = floor(int(instance.created_at.timestamp()), HOUR_S)
    begins = max(since, floor(plan.start, HOUR_S))
    ends = min(plan.end, counted_to)
    by_hour = _by_hour(instance, topic, begins, ends) if begins < ends else {}
    found: list[float | None] = []
    for at in plan.moments:
        hours = [
            by_hour.get(hour, 0.0)
            for hour in range(floor(at, HOUR_S), at + plan.step_s, HOUR_S)
            if since <= hour < counted_to
        ]
        found.append(round(sum(hours) / len(hours)) if hours else None)
    return found


def _by_hour(instance: Instance, topic: str, start: int, end: int) -> dict[int, float]:
    """The average of each hour in which any was stored, by its beginning."""
    first, last = (datetime.fromtimestamp(at, UTC) for at in (start, end))
    found: dict[int, float] = {}
    for each in topic_hours(instance=instance, topic=topic, start=first, end=last):
        begins, until = (int(datetime.fromisoformat(hour).timestamp()) for hour in (each.hour, each.last_hour))
        hours = range(begins, until + 1, HOUR_S)
        for hour in hours:
            found[hour] = found.get(hour, 0.0) + each.stored_byte_seconds / (len(hours) * HOUR_S)
    return found
