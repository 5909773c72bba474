"""Keys of before keep all rights; those of people who had left are revoked, and stay so when they come back."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.exceptions import IrreversibleError
from django.db.migrations.executor import MigrationExecutor

from controlplane.accounts.models import ApiKey
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.tenants.models import Membership, Organisation, Role
from tests.controlplane.conftest import client_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]  # of earlier releases: they change no more


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


def test_whoever_goes_back_leaves_no_key_of_single_sign_on_behind(alice, bob):
    """Forwards again nobody would know it of them: they would be ordinary keys."""
    newest = MigrationExecutor(connection).loader.graph.leaf_nodes()
    rows = ApiKey.objects.for_organisation(alice.organisation)
    rows.filter(user=bob.user).update(sso_until=SYSTEM_CLOCK.now())
    MigrationExecutor(connection).migrate([("accounts", "0015_custom_roles")])
    MigrationExecutor(connection).migrate(newest)
    assert rows.get(user=bob.user).revoked_at is not None
    assert rows.get(user=alice.user).revoked_at is None


def test_there_is_no_way_back_while_an_organisation_is_marked_for_deletion(alice):
    """It would be in use again, and its keys good."""
    newest = MigrationExecutor(connection).loader.graph.leaf_nodes()
    marked = {"deletion_asked_at": SYSTEM_CLOCK.now(), "deletes_at": SYSTEM_CLOCK.now()}
    Organisation.objects.filter(pk=alice.organisation.pk).update(**marked)
    try:
        with pytest.raises(IrreversibleError, match=alice.organisation.pk):
            MigrationExecutor(connection).migrate([("tenants", "0005_custom_roles")])
    finally:
        MigrationExecutor(connection).migrate(newest)
    assert not Organisation.objects.get(pk=alice.organisation.pk).is_in_use
