"""What owners make and name, roles and service accounts: one way to store it, and to put it on record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from django.db import IntegrityError, transaction

from controlplane.core import audit

if TYPE_CHECKING:
    from controlplane.accounts.models import User
    from controlplane.core.errors import AlreadyExists


class Named(Protocol):
    """A row of an organisation's, whose name no other of its kind has there."""

    id: Any
    name: Any
    organisation: Any

    def save(self, **options: Any) -> None:
        """As Django's models do."""
        ...


def owned_save(row: Named, *, taken: AlreadyExists, **options: Any) -> None:
    """Store it. Raises `taken` where another one has the name."""
    try:
        with transaction.atomic():
            row.save(**options)
    except IntegrityError as error:
        raise taken from error


def owned_audit(row: Named, by: User, action: str, detail: dict[str, Any]) -> None:
    """Put a change of it on record."""
    audit.record(organisation=row.organisation, actor=by.email, action=action, target=row.id, detail=detail)
