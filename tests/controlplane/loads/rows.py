"""A load of an instance, without a cluster that has its topic."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from controlplane.loads.models import KeptTable, Load

if TYPE_CHECKING:
    from controlplane.instances.models import Instance

LONG_AGO = datetime(2026, 5, 2, tzinfo=UTC)


def load_row(instance: Instance, load_id: str = "load-000000000001", **members: Any) -> Load:
    """Into a folder, without a schedule."""
    usual = {
        "kind": "folder", "folder": f"file:/lake/{load_id}", "topic": "orders", "created_by": "alice",
        "created_at": LONG_AGO, "scheduled_at": LONG_AGO,
    }  # fmt: skip
    row = Load(id=load_id, organisation=instance.organisation, instance=instance, **{**usual, **members})
    row.save(force_insert=True)
    return row


def kept_table_row(instance: Instance, load_id: str) -> KeptTable:
    """Of a load of that id, which was deleted."""
    row = KeptTable(
        id=load_id, organisation=instance.organisation, instance=instance, topic="orders", folder=f"file:/lake/{load_id}",
        deleted_at=LONG_AGO, deleted_by="alice",
    )  # fmt: skip
    row.save(force_insert=True)
    return row
