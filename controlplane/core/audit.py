"""The audit trail: one row per change a person asked for, in the transaction of the change. Behind it they become a chain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from django.db import transaction

from controlplane.core import audit_sealing
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.models import AuditEntry
from controlplane.core.origin import current

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from controlplane.core.origin import Origin
    from controlplane.core.scope import Tenant

SYSTEM = "system"
"""The actor where no person is behind a change."""
OPERATOR = "operator"
"""The actor of an operation that an operator of the service begins in an organisation: who that is stands in the trail alone."""
LONGEST_ADDRESS = 64
"""An IPv6 address with a zone may be longer: what is behind is cut off."""


def record(
    *,
    organisation: Tenant,
    actor: str,
    action: str,
    target: str,
    detail: dict[str, Any] | None = None,
    origin: Origin | None = None,
    at: datetime | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> AuditEntry:
    """Write one entry. `detail` must hold no secret. `origin` and `at`: of a request that is over, where a worker writes.

    Names that Kafka clients gave ACLs may hold NUL, which PostgreSQL takes in no text: it stands as U+FFFD in the entry.
    """
    origin = origin or current()
    entry = AuditEntry(
        organisation_id=organisation.pk,
        actor=actor,
        action=action,
        target=_storable(target),
        detail=_storable(detail or {}),
        at=at or clock.now(),
        request_id=origin.request_id,
        address=origin.address[:LONGEST_ADDRESS],
        key=origin.key,
    )
    entry.save(force_insert=True)
    # What cannot be chained now is so by the worker: the change itself is made.
    transaction.on_commit(lambda: audit_sealing.extend(organisation.pk), robust=True)
    return entry


class Owned(Protocol):
    """What an organisation has, and its entries are about: an instance."""

    id: Any
    organisation: Any


def record_about(
    owned: Owned, actor: str, action: str, detail: dict[str, Any] | None = None, clock: Clock = SYSTEM_CLOCK
) -> AuditEntry:
    """An entry about it, in the log of the organisation that has it."""
    return record(
        organisation=owned.organisation, actor=actor, action=action, target=owned.id, detail=detail, clock=clock
    )


def changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """For `detail`: ``{"partitions": {"from": 60, "to": 90}}``, of each member of `after` that was another before."""
    return {
        name: {"from": before.get(name), "to": value}
        for name, value in after.items()
        if name not in before or before[name] != value
    }


def _storable(value: Any) -> Any:
    """Of JSON, the same without NUL."""
    if isinstance(value, str):
        return value.replace("\0", "\N{REPLACEMENT CHARACTER}")
    if isinstance(value, dict):
        return {_storable(name): _storable(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_storable(inner) for inner in value]
    return value
