"""A token issuer of an instance without a server that publishes its keys."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from controlplane.token_issuers.models import TokenIssuer
from tests.support.tokens import Issuer

if TYPE_CHECKING:
    from controlplane.instances.models import Instance

NOWHERE = "https://login.example.com/jwks.json"


def token_issuer_row(instance: Instance, issuer_id: str = "iss-000000000001") -> TokenIssuer:
    """With keys that were fetched long ago, and are not due."""
    long_ago, far = datetime(2026, 5, 2, tzinfo=UTC), datetime(2126, 5, 2, tzinfo=UTC)
    trusted = Issuer(f"https://login.example.com/{issuer_id}", {"one": "P-256"}).trusted
    row = TokenIssuer(
        id=issuer_id,
        organisation=instance.organisation,
        instance=instance,
        issuer=trusted.issuer,
        jwks_url=NOWHERE,
        audiences=list(trusted.audiences),
        principal_claim=trusted.principal_claim,
        keys=[key.document() for key in trusted.keys],
        keys_fetched_at=long_ago,
        keys_tried_at=long_ago,
        next_fetch_at=far,
        created_at=long_ago,
    )
    row.save(force_insert=True)
    return row
