"""Isolation: since when and until when; what is written in the history of sizes once, and what may come again."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('instances', '0006_deletion_protection'),
    ]

    operations = [
        migrations.AddField(
            model_name='instance',
            name='destroys_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='instance',
            name='isolated_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AlterField(
            model_name='instance',
            name='state',
            field=models.CharField(
                choices=[
                    ('creating', 'Creating'),
                    ('running', 'Running'),
                    ('failed', 'Failed'),
                    ('isolated', 'Isolated'),
                    ('restoring', 'Restoring'),
                    ('deleting', 'Deleting'),
                    ('deleted', 'Deleted'),
                ],
                default='creating',
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name='specchange',
            name='kind',
            field=models.CharField(
                choices=[
                    ('opened', 'Opened'),
                    ('resized', 'Resized'),
                    ('isolated', 'Isolated'),
                    ('restored', 'Restored'),
                    ('closed', 'Closed'),
                ],
                max_length=16,
            ),
        ),
        migrations.RemoveConstraint(
            model_name='specchange',
            name='opened_and_closed_once',
        ),
        migrations.AddConstraint(
            model_name='specchange',
            constraint=models.UniqueConstraint(
                condition=models.Q(('kind__in', ('opened', 'closed'))),
                fields=('instance', 'kind'),
                name='opened_and_closed_once',
            ),
        ),
        migrations.AddIndex(
            model_name='instance',
            index=models.Index(fields=['state', 'destroys_at'], name='instance_end'),
        ),
    ]
