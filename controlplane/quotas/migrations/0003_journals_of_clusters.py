"""Masters are numbered within a cluster: a journal belongs to both. So far there was one cluster, whose they all are.

A primary key cannot be taken off a column everywhere; hence another table, with the same rows, under the same name.
"""

import django.db.models.deletion
from django.db import migrations, models

MEMBERS = ("master", "http", "position", "active_at", "problem")


def copy(apps, _schema_editor):
    """Give every journal to the only cluster. Positions stay: nothing is read twice."""
    before, after = apps.get_model("quotas", "MasterJournal"), apps.get_model("quotas", "ClusterJournal")
    rows = list(before.objects.values(*MEMBERS))
    if not rows:
        return
    clusters = apps.get_model("clusters", "PhysicalCluster").objects
    cluster = clusters.order_by("pk").first() or clusters.create(name="default")
    after.objects.bulk_create(after(cluster=cluster, **row) for row in rows)


def copy_back(apps, _schema_editor):
    """Keep the journals of the oldest cluster: a release before this one knows no other."""
    clusters = apps.get_model("clusters", "PhysicalCluster").objects
    before, after = apps.get_model("quotas", "MasterJournal"), apps.get_model("quotas", "ClusterJournal")
    rows = after.objects.filter(cluster=clusters.order_by("pk").first()).values(*MEMBERS)
    before.objects.bulk_create(before(**row) for row in rows)


class Migration(migrations.Migration):

    dependencies = [("quotas", "0002_journal_problem"), ("clusters", "0003_zookeeper_hosts")]

    operations = [
        migrations.CreateModel(
            name="ClusterJournal",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="clusters.physicalcluster"
                    ),
                ),
                ("master", models.IntegerField()),
                ("http", models.CharField(max_length=200)),
                ("position", models.BigIntegerField(default=0)),
                ("active_at", models.DateTimeField()),
                ("problem", models.TextField(default="")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("cluster", "master"), name="journal_per_cluster_and_master")
                ],
            },
        ),
        migrations.RunPython(copy, copy_back),
        migrations.DeleteModel(name="MasterJournal"),
        migrations.RenameModel(old_name="ClusterJournal", new_name="MasterJournal"),
    ]
