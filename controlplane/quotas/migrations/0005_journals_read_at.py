"""When the journals of throttled intervals were read last."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('quotas', '0004_quota_report'),
    ]

    operations = [
        migrations.AddField(
            model_name='masterjournal',
            name='read_at',
            field=models.DateTimeField(null=True),
        ),
    ]
