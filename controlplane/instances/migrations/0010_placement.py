"""What its tenant wished of the cluster that an instance is on."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('instances', '0009_maintenance_window'),
    ]

    operations = [
        migrations.AddField(
            model_name='instance',
            name='placement',
            field=models.JSONField(db_default={}, default=dict),
        ),
    ]
