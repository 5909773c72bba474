"""The audit trail: one row per change a person asked for, in the transaction of the change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.models import AuditEntry

if TYPE_CHECKING:
    from controlplane.core.scope import Tenant

SYSTEM = "system"
"""The actor where no person is behind a change."""


def record(
    *,
    organisation: Tenant,
    actor: str,
    action: str,
    target: str,
    detail: dict[str, Any] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> AuditEntry:
    """Write one entry. `detail` must hold no secret."""
    entry = AuditEntry(
        organisation_id=organisation.pk, actor=actor, action=action, target=target, detail=detail or {}, at=clock.now()
    )
    entry.save(force_insert=True)
    return entry
