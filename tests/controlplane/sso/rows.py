"""A provider of an organisation without a server behind it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from controlplane.core.sealed import sealed
from controlplane.sso.models import SsoProvider

if TYPE_CHECKING:
    from controlplane.tenants.models import Organisation


def provider_row(organisation: Organisation) -> SsoProvider:
    """Tested, and not in force."""
    long_ago = datetime(2026, 5, 2, tzinfo=UTC)
    row = SsoProvider(
        organisation=organisation,
        issuer="https://login.example.com",
        client_id="sluice",
        client_secret=sealed(SsoProvider, "client_secret", b"secret", organisation_id=organisation.pk),
        label="Corp",
        tested_at=long_ago,
        created_at=long_ago,
    )
    row.save(force_insert=True)
    return row
