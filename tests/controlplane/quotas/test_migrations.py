"""A journal keeps its position when it gets a cluster, and when it loses it again."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]  # of earlier releases: they change no more
NOW = datetime(2026, 5, 1, tzinfo=UTC)


def models_at(migration):
    """The models as they were after this migration of quotas."""
    nodes = [("quotas", migration), ("clusters", "0003_zookeeper_hosts")]
    MigrationExecutor(connection).migrate(nodes)
    return MigrationExecutor(connection).loader.project_state(nodes).apps


def test_journals_get_the_only_cluster_and_keep_their_positions_both_ways():
    newest = MigrationExecutor(connection).loader.graph.leaf_nodes()
    try:
        old = models_at("0002_journal_problem").get_model("quotas", "MasterJournal")
        old(master=1, http="http://127.0.0.1:1", position=42, active_at=NOW).save()
        new = models_at("0003_journals_of_clusters")
        (row,) = new.get_model("quotas", "MasterJournal").objects.all()
        assert (row.cluster.name, row.master, row.position, row.active_at) == ("default", 1, 42, NOW)
        second = new.get_model("clusters", "PhysicalCluster").objects.create(name="second", zookeeper_hosts="second:1")
        new.get_model("quotas", "MasterJournal").objects.create(cluster=second, master=1, http="x", active_at=NOW)
        old = models_at("0002_journal_problem").get_model("quotas", "MasterJournal")
        assert list(old.objects.values_list("master", "position")) == [(1, 42)]
    finally:
        MigrationExecutor(connection).migrate(newest)
