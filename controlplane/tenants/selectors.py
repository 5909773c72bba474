"""Which organisations a person belongs to, and who belongs to one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.tenants.models import Membership, Organisation

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from controlplane.tenants.services import Person


def organisation_list(*, user: Person) -> QuerySet[Organisation]:
    """Organisations of a person, by name."""
    return Organisation.objects.filter(memberships__user=user.pk).order_by("name")


def member_list(*, organisation: Organisation) -> QuerySet[Membership]:
    """Members with their people, by email."""
    return organisation.memberships.select_related("user", "custom_role").order_by("user__email")
