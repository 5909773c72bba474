"""An organisation from which nothing is in the way of its end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from controlplane.billing import closing
from controlplane.billing.pricing.rating import Month
from controlplane.core.models import Operation
from controlplane.instances.models import Instance

if TYPE_CHECKING:
    from controlplane.tenants.models import Organisation

LONG_AGO = datetime(2026, 5, 2, tzinfo=UTC)


def emptied(organisation: Organisation) -> None:
    """Its instances were there on one day of May 2026, which is invoiced; its operations have ended."""
    Operation.objects.for_organisation(organisation).update(state="succeeded")
    rows = Instance.objects.for_organisation(organisation)
    rows.update(state="deleted", created_at=LONG_AGO, deleted_at=LONG_AGO + timedelta(days=1))
    for instance in rows:
        closing.invoice_close(instance=instance, month=Month(2026, 5), now=datetime(2026, 6, 2, tzinfo=UTC))
