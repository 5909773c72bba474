"""A boot is one broker's of one cluster: those that were told before are the default cluster's."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('metering', '0012_instance_maxima'),
    ]

    operations = [
        migrations.AddField(
            model_name='boot',
            name='cluster',
            field=models.CharField(db_default='default', default='default', max_length=64),
        ),
        migrations.RemoveConstraint(
            model_name='boot',
            name='one_row_per_boot',
        ),
        migrations.AddConstraint(
            model_name='boot',
            constraint=models.UniqueConstraint(fields=('cluster', 'broker', 'boot'), name='one_row_per_boot_of_a_cluster'),
        ),
    ]
