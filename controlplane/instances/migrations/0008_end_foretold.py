"""When owners were told that an instance is about to be destroyed."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('instances', '0007_isolation'),
    ]

    operations = [
        migrations.AddField(
            model_name='instance',
            name='end_foretold_at',
            field=models.DateTimeField(null=True),
        ),
    ]
