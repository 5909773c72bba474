"""The tenant scope: every query on an organisation's data says whose data it wants, or raises.

`Model.objects` of a tenant model answers only two calls::

    Instance.objects.for_organisation(organisation)       what a tenant may see
    Instance.objects.unscoped("the reconciler serves all")  with the reason beside it, for the machinery

Anything else (`.all()`, `.filter()`, `.get()`, a reverse relation) raises UnscopedQueryError: forgetting the scope is a
crash in the first test, not a leak. Django's own housekeeping (saving, refreshing, following a foreign key from a row
one already has) uses the base manager and is not affected.
"""

from __future__ import annotations

from typing import Any, Generic, NoReturn, Protocol, TypeVar

from django.db import models

from controlplane.core.errors import UnscopedQueryError

Row = TypeVar("Row", bound=models.Model)


class Tenant(Protocol):
    """Whose data it is: `tenants.models.Organisation`, of which what stands below it needs no more than the key."""

    @property
    def pk(self) -> Any: ...


class TenantManager(models.Manager[Row], Generic[Row]):
    """The default manager of every model with an `organisation`."""

    def get_queryset(self) -> NoReturn:
        """Refuse: this is what every unscoped call comes down to."""
        raise UnscopedQueryError(
            f"{self.model.__name__}.objects needs .for_organisation(organisation) or .unscoped(reason)"
        )

    def for_organisation(self, organisation: Tenant) -> models.QuerySet[Row]:
        return super().get_queryset().filter(organisation_id=organisation.pk)

    def unscoped(self, reason: str) -> models.QuerySet[Row]:
        """Rows of all organisations. `reason` is for the reader, and must not be empty."""
        if not reason:
            raise UnscopedQueryError("say why")
        return super().get_queryset()
