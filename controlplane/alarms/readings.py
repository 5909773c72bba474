"""What is watched, read for many instances at once: from their health, and from what the flow masters say.

What cannot be known has no value. Where no flow master answers, storage and partitions are not known (but what health still
says is there is there), where ZooKeeper does not, routes are not; that they are not is a health reason itself, and can be
watched.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.health.metrics import LEVELS
from controlplane.health.rules import CODES
from controlplane.health.selectors import health_get
from controlplane.quotas.figures import figures_get
from controlplane.quotas.selectors import flows_get
from quota.contracts.instance import GIB

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.clusters.coordination import ObservedCluster
    from controlplane.health.rules import Health
    from controlplane.instances.models import Instance

LOG = logging.getLogger(__name__)
OF_FLOW = (
    "storage_full",
    "storage_nearly_full",
    "partitions_without_leader",
    "partitions_under_replicated",
    "throttled_under_limit",
)
"""Reasons that come from what flow masters say."""
OF_ROUTES = ("route_down",)
"""Reasons that come from what brokers write to ZooKeeper."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Of one instance: a value for everything that can be watched, None where there is none; what health says of a reason."""

    values: Mapping[str, float | None] = field(default_factory=dict)
    details: Mapping[str, str] = field(default_factory=dict)


NOTHING = Reading()


def readings_get(
    instances: Sequence[Instance],
    *,
    observed: Mapping[int, ObservedCluster | None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> dict[str, Reading]:
    """By id. What goes wrong with one instance is logged, leaves it without values, and keeps no other from being read."""
    if not instances:
        return {}
    try:
        return _read(instances, observed, clock)
    except Exception:
        if len(instances) == 1:
            LOG.exception("instance %s cannot be read", instances[0].pk)
            return {instances[0].pk: NOTHING}
    half = len(instances) // 2
    return readings_get(instances[:half], observed=observed, clock=clock) | readings_get(
        instances[half:], observed=observed, clock=clock
    )


def _read(
    instances: Sequence[Instance], observed: Mapping[int, ObservedCluster | None] | None, clock: Clock
) -> dict[str, Reading]:
    figures = figures_get(instances, flows_get, clock=clock)
    healths = health_get(instances, figures=figures, observed=observed, clock=clock)
    fresh = figures.fresh
    return {
        instance.pk: reading_of(healths.get(instance.pk), fresh.get(instance.pk), round(instance.storage_gib * GIB))
        for instance in instances
    }


def reading_of(health: Health | None, document: Mapping[str, Any] | None, storage_bytes: int) -> Reading:
    """`health` None: the instance does not run; `document` None: no master says anything of it now."""
    if health is None:
        return NOTHING
    there = {reason.code: reason for reason in health.reasons}
    values: dict[str, float | None] = {code: 1.0 if code in there else 0.0 for code in CODES}
    unknown = (*(OF_FLOW if document is None else ()), *(OF_ROUTES if "cluster_unknown" in there else ()))
    values |= {code: None for code in unknown if code not in there}
    values["health_level"] = float(LEVELS[health.state])
    document = document or {}
    values["storage_used_percent"] = _percent(document.get("storage_used_bytes"), storage_bytes)
    for name in ("produce", "consume"):
        direction = document.get(name) or {}
        values[f"{name}_percent"] = _percent(direction.get("flow"), direction.get("limit"))
    values["connections"] = _number(document.get("connections"))
    return Reading(values, {code: reason.detail for code, reason in there.items()})


def _percent(part: Any, whole: Any) -> float | None:
    """None where there is no limit, or one of nothing."""
    used, limit = _number(part), _number(whole)
    return None if used is None or not limit else round(100 * used / limit, 2)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
