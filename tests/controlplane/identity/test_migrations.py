"""Keys of before keep all rights; those of people who had left are revoked, and stay so when they come back."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from controlplane.accounts.models import ApiKey
from controlplane.tenants.models import Membership, Role
from tests.controlplane.conftest import client_of

pytestmark = pytest.mark.django_db(transaction=True)


def test_keys_of_members_work_on_and_those_of_former_members_are_revoked(alice, bob):
    newest = MigrationExecutor(connection).loader.graph.leaf_nodes()
    Membership.objects.filter(user=bob.user).delete()
    MigrationExecutor(connection).migrate([("accounts", "0008_second_factor")])
    MigrationExecutor(connection).migrate(newest)
    rows = ApiKey.objects.for_organisation(alice.organisation)
    assert rows.get(user=bob.user).revoked_at is not None
    kept = rows.get(user=alice.user)
    assert (kept.revoked_at, kept.expires_at, kept.limits.is_none, kept.limits.is_bound) == (None, None, True, False)
    assert client_of(alice.key).post("/api/v1/api-keys", {"name": "another"}).status_code == 201
    Membership.objects.create(organisation=alice.organisation, user=bob.user, role=Role.MEMBER)
    assert client_of(bob.key).get("/api/v1/me").status_code == 401
