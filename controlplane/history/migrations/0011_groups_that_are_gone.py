from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('history', '0010_metrics_store'),
    ]

    operations = [
        migrations.AddField(
            model_name='laggroup',
            name='deleted_at',
            field=models.BigIntegerField(null=True),
        ),
    ]
