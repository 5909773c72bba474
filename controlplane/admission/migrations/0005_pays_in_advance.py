"""Whether who asked for a scheduled change may pay in advance. Those that wait are made as ever."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("admission", "0004_changes_in_windows"),
    ]

    operations = [
        migrations.AddField(
            model_name="scheduledchange",
            name="pays_in_advance",
            field=models.BooleanField(db_default=True, default=True),
        ),
    ]
