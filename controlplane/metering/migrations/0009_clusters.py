"""Which cluster's job, broker or topic a row is about. Those from before are the default cluster's, the only one that was metered."""

from django.core.management.color import no_style
from django.db import migrations, models


def numbers_follow(apps, schema_editor):
    """The one row of the status had its id given: the next one must not be given the same by the database."""
    status = apps.get_model('metering', 'PipelineStatus')
    for statement in schema_editor.connection.ops.sequence_reset_sql(no_style(), [status]):
        schema_editor.execute(statement)


class Migration(migrations.Migration):

    dependencies = [
        ('metering', '0008_job_runs'),
    ]

    operations = [
        migrations.AddField(
            model_name='brokerwaiver',
            name='cluster',
            field=models.CharField(db_default='default', default='default', max_length=64),
        ),
        migrations.AddField(
            model_name='loss',
            name='cluster',
            field=models.CharField(db_default='default', default='default', max_length=64),
        ),
        migrations.AddField(
            model_name='progress',
            name='cluster',
            field=models.CharField(db_default='default', default='default', max_length=64),
        ),
        migrations.AddField(
            model_name='statement',
            name='cluster',
            field=models.CharField(db_default='default', default='default', max_length=64),
        ),
        migrations.AddField(
            model_name='pipelinestatus',
            name='cluster',
            field=models.CharField(db_default='default', default='default', max_length=64, unique=True),
        ),
        migrations.AlterField(
            model_name='progress',
            name='partition',
            field=models.IntegerField(),
        ),
        migrations.AddConstraint(
            model_name='progress',
            constraint=models.UniqueConstraint(fields=('cluster', 'partition'), name='progress_per_cluster_and_partition'),
        ),
        migrations.RunPython(numbers_follow, migrations.RunPython.noop),
    ]
