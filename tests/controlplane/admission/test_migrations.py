"""The tables of room and caps can go and come back; nothing else is touched."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from controlplane.admission.models import OrganisationCap, ScheduledChange
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.tenants.models import Organisation
from tests.controlplane.conftest import client_of

from .rows import change_row

pytestmark = pytest.mark.django_db(transaction=True)


def test_there_and_back(alice):
    OrganisationCap(organisation=alice.organisation, resource="instances", limit=3).save()
    newest = MigrationExecutor(connection).loader.graph.leaf_nodes()
    MigrationExecutor(connection).migrate([("admission", None)])
    assert "admission_organisationcap" not in connection.introspection.table_names()
    MigrationExecutor(connection).migrate(newest)
    assert Organisation.objects.filter(pk=alice.organisation.pk).exists()
    caps = {each["resource"]: each["limit"] for each in client_of(alice.key).get("/api/v1/caps").json()["caps"]}
    assert caps["instances"] == 20


def test_of_changes_that_ended_before_mails_were_written_nobody_is_told(instance):
    """An upgrade writes to nobody about the past; what waits is told of in its time."""
    newest = MigrationExecutor(connection).loader.graph.leaf_nodes()
    ended = change_row(instance, state="begun", ended_at=SYSTEM_CLOCK.now())
    waiting = change_row(instance, "chg-000000000002")
    MigrationExecutor(connection).migrate([("admission", "0002_scheduled_changes")])
    MigrationExecutor(connection).migrate(newest)
    told = dict(ScheduledChange.objects.unscoped("a test").values_list("pk", "told_at"))
    assert told == {ended.pk: ended.ended_at, waiting.pk: None}
