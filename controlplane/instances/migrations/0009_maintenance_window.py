"""When in a week what disturbs an instance's clients may happen."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('instances', '0008_end_foretold'),
    ]

    operations = [
        migrations.AddField(
            model_name='instance',
            name='maintenance_window',
            field=models.JSONField(null=True),
        ),
    ]
