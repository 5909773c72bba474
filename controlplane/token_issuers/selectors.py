"""Reading the token issuers of an instance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.core.errors import NotFound
from controlplane.instances.selectors import instance_get
from controlplane.token_issuers.models import TokenIssuer

if TYPE_CHECKING:
    from controlplane.tenants.models import Organisation


def token_issuer_list(*, organisation: Organisation, instance_id: str) -> list[TokenIssuer]:
    """All of them, by issuer. Raises NotFound."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    return list(TokenIssuer.objects.for_organisation(organisation).filter(instance=instance).order_by("issuer"))


def token_issuer_get(*, organisation: Organisation, instance_id: str, issuer_id: str) -> TokenIssuer:
    """One of them, with its instance. Raises NotFound."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    rows = TokenIssuer.objects.for_organisation(organisation).select_related("instance__cluster", "organisation")
    row = rows.filter(instance=instance, pk=issuer_id).first()
    if row is None:
        raise NotFound(f"no token issuer {issuer_id}")
    return row
