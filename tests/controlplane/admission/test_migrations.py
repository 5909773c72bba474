"""The tables of room and caps can go and come back; nothing else is touched."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from controlplane.admission.models import OrganisationCap
from controlplane.tenants.models import Organisation
from tests.controlplane.conftest import client_of

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
