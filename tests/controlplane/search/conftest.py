"""An organisation with something of every kind that is looked for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from controlplane.billing import closing
from controlplane.billing.pricing.rating import Month
from controlplane.history.lag.rows import digest_of
from controlplane.history.models import LagGroup, LagMinutes
from controlplane.instances.models import Instance
from controlplane.tenants import invitations
from controlplane.tenants.models import Role
from tests.controlplane.alarms.rows import alarm_row
from tests.controlplane.fakes import FakeGroup
from tests.controlplane.rows import access_key_row

SEARCH = "/api/v1/search"
ACL = {"principal": "User:zebra-app", "operation": "READ", "resource_type": "TOPIC", "resource_name": "zebra-events"}


def group_row(instance_id, name, seen_s=None):
    """One that the history has seen, this minute unless it is said otherwise."""
    row = LagGroup.objects.create(instance=instance_id, digest=digest_of(name), name=name)
    at = int(datetime.now(UTC).timestamp()) // 60 * 60 if seen_s is None else seen_s
    LagMinutes.objects.create(group=row.pk, at=at, until=at, late_s=0, messages=0, oldest_ms=None)


@pytest.fixture
def zoo(alice, bob, instance, admin):
    """Everything is called zebra."""
    base = f"/api/v1/instances/{instance.id}"
    for name in ("zebra-events", "other"):
        assert alice.api.post(f"{base}/topics", {"name": name}).status_code == 201
    assert (
        alice.api.patch(f"{base}/topics/other/note", {"note": "stripes of the ZEBRA", "tags": ["black"]}).status_code
        == 200
    )
    group_row(instance.id, "zebra-readers")
    assert alice.api.post(f"{base}/users", {"name": "zebra-app"}).status_code == 201
    assert alice.api.post(f"{base}/acls", ACL).status_code == 201
    Instance.objects.unscoped("a test").filter(pk=instance.pk).update(
        name="zebra", whitelist=["10.7.0.0/16"], topic_whitelists={"zebra-events": ["10.7.3.0/24"]}
    )
    alarm_row(instance, name="zebra alarm")
    closing.invoice_close(instance=instance, month=Month(2026, 3), now=datetime(2026, 4, 2, tzinfo=UTC))
    admin.groups.found[f"{instance.id.removeprefix('ins-')}.zebra-readers"] = FakeGroup()
    invitations.invitation_create(
        organisation=alice.organisation, inviter=alice.user, email="zebra@example.com", role=Role.VIEWER
    )
    access_key_row(alice.organisation, alice.user)
    assert alice.api.post("/api/v1/api-keys", {"name": "zebra key"}).status_code == 201
    instance.refresh_from_db()
    return instance


def looked(api, text, **query):
    answer = api.get(SEARCH, {"q": text, **query})
    assert answer.status_code == 200, answer.content
    return answer.json()


def found(api, text, **query):
    """Kind and name of each."""
    return [(each["kind"], each["name"]) for each in looked(api, text, **query)["items"]]
