"""What owners make and name, roles and service accounts: one way to store it, and to put it on record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, transaction

from controlplane.core import audit

if TYPE_CHECKING:
    from controlplane.accounts.models import ServiceAccount, User
    from controlplane.core.errors import AlreadyExists
    from controlplane.tenants.models import CustomRole


def owned_save(row: CustomRole | ServiceAccount, *, taken: AlreadyExists, **options: Any) -> None:
    """Store it. Raises `taken` where another one has the name."""
    try:
        with transaction.atomic():
            row.save(**options)
    except IntegrityError as error:
        raise taken from error


def owned_audit(row: CustomRole | ServiceAccount, by: User, action: str, detail: dict[str, Any]) -> None:
    """Put a change of it on record."""
    audit.record(organisation=row.organisation, actor=by.email, action=action, target=row.id, detail=detail)
