"""Operations and the audit trail of an organisation, for REST and for pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.core.errors import NotFound
from controlplane.core.models import AuditEntry, Operation

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet

    from controlplane.core.scope import Tenant


def operation_list(
    *,
    organisation: Tenant,
    state: str = "",
    target: str = "",
    kind: str = "",
    start: datetime | None = None,
    end: datetime | None = None,
    only_on: frozenset[str] | None = None,
) -> QuerySet[Operation]:
    """Operations of an organisation: all, or those in a state, or on a target. `only_on`: of these targets alone.

    A kind is asked for whole or by its beginning, as an action of the audit trail is. They were begun in [start, end).
    """
    wanted = {
        "state": state,
        "target": target,
        "kind__startswith": kind,
        "created_at__gte": start,
        "created_at__lt": end,
    }
    rows = Operation.objects.for_organisation(organisation)
    if only_on is not None:
        rows = rows.filter(target__in=only_on)
    return rows.filter(**{name: value for name, value in wanted.items() if value})


def operation_get(
    *, organisation: Tenant, operation_id: str, by_operator: bool = False, only_on: frozenset[str] | None = None
) -> Operation:
    """One operation. Raises NotFound, also for another organisation's, unless an operator of the service asks."""
    if by_operator:
        operations = Operation.objects.unscoped("operators follow what they have begun for a tenant")
    else:
        operations = operation_list(organisation=organisation, only_on=only_on)
    operation = operations.filter(pk=operation_id).first()
    if operation is None:
        raise NotFound(f"no operation {operation_id}")
    return operation


def audit_list(
    *,
    organisation: Tenant,
    actor: str = "",
    action: str = "",
    target: str = "",
    start: datetime | None = None,
    end: datetime | None = None,
) -> QuerySet[AuditEntry]:
    """Changes that were asked for in an organisation, the newest first.

    An action is asked for whole or by its beginning: "topic" is "topic.create", too. Moments are [start, end).
    """
    rows = AuditEntry.objects.for_organisation(organisation)
    wanted = {"actor": actor, "action__startswith": action, "target": target, "at__gte": start, "at__lt": end}
    return rows.filter(**{name: value for name, value in wanted.items() if value}).order_by("-pk")
