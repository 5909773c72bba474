"""When the journals of elastic bandwidth were read last, and what was wrong with them."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('metering', '0013_elastic_bandwidth'),
    ]

    operations = [
        migrations.AddField(
            model_name='elasticjournal',
            name='problem',
            field=models.TextField(default=''),
        ),
        migrations.AddField(
            model_name='elasticjournal',
            name='read_at',
            field=models.DateTimeField(null=True),
        ),
    ]
