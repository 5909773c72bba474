"""Rows without the operations that bring them up."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from controlplane.accounts.models import AccessKey, ServiceAccount
from controlplane.clusters.services import cluster_ensure
from controlplane.health.models import HealthReason
from controlplane.instances.models import Instance, InstanceState
from controlplane.tenants.models import CustomRole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controlplane.accounts.models import User
    from controlplane.tenants.models import Organisation

LONG_AGO = datetime(2026, 5, 2, tzinfo=UTC)


def instance_row(organisation: Organisation, instance_id: str, name: str = "events") -> Instance:
    """Running, as far as the database knows."""
    row = Instance(
        id=instance_id, organisation=organisation, cluster=cluster_ensure(), name=name,
        bandwidth_mib_per_s=5, storage_gib=10, partitions=60, state=InstanceState.RUNNING, created_at=LONG_AGO,
    )  # fmt: skip
    row.save(force_insert=True)
    return row


def reason_row(instance_id: str, code: str, state: str) -> HealthReason:
    """Why an instance was not well when it was looked at last."""
    return HealthReason.objects.create(
        instance=instance_id, code=code, state=state, title=code, detail=code, since=LONG_AGO
    )


def service_account_row(organisation: Organisation, service_account_id: str = "svc-abcdefghijkl") -> ServiceAccount:
    """One without keys."""
    row = ServiceAccount(
        id=service_account_id, organisation=organisation, name=service_account_id, role="member",
        created_by="alice@example.com", created_at=LONG_AGO,
    )  # fmt: skip
    row.save(force_insert=True)
    return row


def access_key_row(organisation: Organisation, user: User, key_id: str = "key-000000000001") -> AccessKey:
    """One that no installation has made: nothing is signed by it."""
    row = AccessKey(
        id=key_id, organisation=organisation, user=user, name="sdk", secret_id=f"AKID{key_id}", made_with="0" * 16,
        created_at=LONG_AGO,
    )  # fmt: skip
    row.save(force_insert=True)
    return row


def custom_role_row(
    organisation: Organisation, role_id: str = "rol-abcdefghijkl", scopes: Mapping[str, str] | None = None
) -> CustomRole:
    """One that nobody has; it looks at topics if nothing else is said."""
    row = CustomRole(
        id=role_id,
        organisation=organisation,
        name=role_id,
        scopes=dict(scopes or {"topics": "look"}),
        created_at=LONG_AGO,
    )
    row.save(force_insert=True)
    return row
