"""Deletion protection: off for what is there."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('instances', '0005_route'),
    ]

    operations = [
        migrations.AddField(
            model_name='instance',
            name='deletion_protection',
            field=models.BooleanField(default=False),
        ),
    ]
