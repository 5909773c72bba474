"""Health in Prometheus' text format. Pure.

::

    # TYPE sluice_instance_health gauge
    sluice_instance_health{instance="ins-k3v9x2qa"} 2                             0 healthy, 1 degraded, 2 critical
    # TYPE sluice_instance_health_reason gauge
    sluice_instance_health_reason{instance="ins-k3v9x2qa",code="storage_full",state="critical"} 1
    # TYPE sluice_instance_health_reason_since_seconds gauge                       since 1970
    sluice_instance_health_reason_since_seconds{instance="ins-k3v9x2qa",code="storage_full"} 1763712063

Ids and codes only: names that people give have any characters, and change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.health.rules import HealthState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controlplane.health.rules import Health

LEVELS = {HealthState.HEALTHY: 0, HealthState.DEGRADED: 1, HealthState.CRITICAL: 2}


def metrics_text(found: Mapping[str, Health]) -> str:
    """Of these instances, by id."""
    ordered = sorted(found.items())
    reasons = [(name, reason) for name, health in ordered for reason in health.reasons]
    lines = ["# TYPE sluice_instance_health gauge"]
    lines += [f'sluice_instance_health{{instance="{name}"}} {LEVELS[health.state]}' for name, health in ordered]
    lines += ["# TYPE sluice_instance_health_reason gauge"]
    lines += [
        f'sluice_instance_health_reason{{instance="{name}",code="{reason.code}",state="{reason.state.value}"}} 1'
        for name, reason in reasons
    ]
    lines += ["# TYPE sluice_instance_health_reason_since_seconds gauge"]
    lines += [
        f'sluice_instance_health_reason_since_seconds{{instance="{name}",code="{reason.code}"}} '
        f"{reason.since.timestamp():.0f}"
        for name, reason in reasons
        if reason.since is not None
    ]
    return "\n".join(lines) + "\n"
