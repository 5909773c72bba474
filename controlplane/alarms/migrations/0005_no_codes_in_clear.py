"""Codes that confirm an address are sealed: see the migration before."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('alarms', '0004_sealed_with_keys'),
    ]

    operations = [
        migrations.RemoveField(
            model_name='receiver',
            name='code',
        ),
    ]
