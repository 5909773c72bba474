"""The history of sizes: what a bill is computed from. Append-only, written where the size or the state changes."""

from __future__ import annotations

from datetime import datetime

from controlplane.instances.models import Instance, SpecChange, SpecChangeKind

SIZES = ("bandwidth_mib_per_s", "storage_gib", "partitions")


def spec_change_record(*, instance: Instance, kind: SpecChangeKind, at: datetime) -> None:
    """Append the instance's present size. Opened and closed count once: a repetition changes nothing.

    The others are written each time: whoever calls has just changed the row, in the same transaction.
    """
    members = {
        "organisation_id": instance.organisation_id,
        "at": at,
        **{name: getattr(instance, name) for name in SIZES},
    }
    rows = SpecChange.objects.unscoped("the instance's own organisation is written")
    if kind not in (SpecChangeKind.OPENED, SpecChangeKind.CLOSED):
        rows.create(instance=instance, kind=kind, **members)
    else:
        rows.get_or_create(instance=instance, kind=kind, defaults=members)


def spec_change_list(*, instance: Instance) -> list[SpecChange]:
    """Of one instance, in order."""
    rows = SpecChange.objects.unscoped("the caller found the instance in its organisation")
    return list(rows.filter(instance=instance).order_by("at", "pk"))
