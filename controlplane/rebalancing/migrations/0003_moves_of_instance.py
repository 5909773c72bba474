"""Moves are looked for by their instance, whose alarms leave out what rebalancing does to it."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('rebalancing', '0002_by_itself'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='rebalancemove',
            index=models.Index(fields=['instance', 'rebalance'], name='moves_of_instance'),
        ),
    ]
