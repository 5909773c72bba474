"""Clusters that a reconciliation did not look at."""


from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('metering', '0014_journals_read_at'),
    ]

    operations = [
        migrations.AddField(
            model_name='reconciliation',
            name='begins_later',
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.AddField(
            model_name='reconciliation',
            name='gone',
            field=models.JSONField(db_default=[], default=list),
        ),
    ]
