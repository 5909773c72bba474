"""Scheduled changes as rows."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from controlplane.admission.models import ScheduledChange
from controlplane.core.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from controlplane.instances.models import Instance


def change_row(instance: Instance, change_id: str = "chg-000000000001", **members: object) -> ScheduledChange:
    """One that waits for tomorrow, unless it is said otherwise."""
    now = SYSTEM_CLOCK.now()
    row = ScheduledChange(
        id=change_id,
        organisation=instance.organisation,
        instance=instance,
        **{
            "actor": "alice@example.com",
            "changes": {"partitions": 90},
            "at": now + timedelta(days=1),
            "created_at": now,
            **members,
        },
    )
    row.save(force_insert=True)
    return row
