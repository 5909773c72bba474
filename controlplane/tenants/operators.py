"""What operators of the service ask about organisations: they may name any. Tenants' queries begin at their own."""

from __future__ import annotations

from controlplane.core.errors import NotFound
from controlplane.tenants.models import Organisation


def organisation_any(organisation_id: str) -> Organisation:
    """Raises NotFound."""
    found = Organisation.objects.filter(pk=organisation_id).first()
    if found is None:
        raise NotFound(f"no organisation {organisation_id}")
    return found
