"""Whether a scheduled change is made only while the maintenance window is open. Those that wait keep their moment."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('admission', '0003_changes_told'),
    ]

    operations = [
        migrations.AddField(
            model_name='scheduledchange',
            name='in_window',
            field=models.BooleanField(default=False),
        ),
    ]
