"""Up to which bandwidth an instance may go above what was bought, and for how much a month."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('instances', '0010_placement'),
    ]

    operations = [
        migrations.AddField(
            model_name='instance',
            name='elastic_budget',
            field=models.DecimalField(decimal_places=2, max_digits=16, null=True),
        ),
        migrations.AddField(
            model_name='instance',
            name='elastic_mib_per_s',
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name='instance',
            name='elastic_off_until',
            field=models.DateTimeField(null=True),
        ),
    ]
