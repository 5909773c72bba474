"""Instances that were there before routes were rows have the one that they had."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from controlplane.instances.models import Instance, Route
from controlplane.instances.selectors import routes_wanted

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]  # of earlier releases: they change no more


def test_every_instance_that_is_there_has_its_default_route(alice, instance):
    newest = MigrationExecutor(
        connection
    ).loader.graph.leaf_nodes()  # of all: what depends on these tables goes with them
    gone = Instance.objects.unscoped("a test").get(pk=instance.pk)
    gone.pk, gone.state = "ins-gonegone", "deleted"
    gone.save(force_insert=True)
    MigrationExecutor(connection).migrate([("instances", "0004_config")])
    assert "instances_route" not in connection.introspection.table_names()
    MigrationExecutor(connection).migrate(newest)
    [route] = Route.objects.unscoped("a test")
    assert (route.instance_id, route.key, route.number, route.state) == (instance.id, "default", 1, "running")
    assert routes_wanted(instance.id) == [route]
    assert route.created_at == instance.created_at
