"""What the master says about an instance, within an organisation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from controlplane.core.errors import Unavailable
from controlplane.instances.selectors import instance_get
from controlplane.quotas import master

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controlplane.instances.models import Instance
    from controlplane.tenants.models import Organisation

SHOWN = ("produce", "consume", "storage_used_bytes", "connections")


def allocation_get(*, organisation: Organisation, instance_id: str) -> dict[str, Any]:
    """Per direction: limit, branch and each broker's part, in bytes/s. Raises NotFound, MasterUnavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    document = master.allocation(instance.id)
    return {name: document.get(name) for name in SHOWN}


def storage_used(instances: Sequence[Instance]) -> dict[str, int | None]:
    """Bytes on disk by instance id, every replica counted; None where it is not known.

    After the first call that fails no more are tried: a page must not wait for an absent master once per row.
    """
    used: dict[str, int | None] = {}
    answering = True
    for instance in instances:
        used[instance.id] = None
        if answering:
            try:
                value = master.allocation(instance.id).get("storage_used_bytes")
                used[instance.id] = value if isinstance(value, int) else None
            except Unavailable as error:
                answering = error.code == "allocation_unknown"
    return used
