"""Which cluster's invoices a waiver is about; those that were given before are about all of them."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0008_month_costs'),
    ]

    operations = [
        migrations.AddField(
            model_name='meteringwaiver',
            name='cluster',
            field=models.CharField(blank=True, db_default='', default='', max_length=64),
        ),
        migrations.RemoveConstraint(
            model_name='meteringwaiver',
            name='one_waiver_per_instance',
        ),
        migrations.RemoveConstraint(
            model_name='meteringwaiver',
            name='one_waiver_for_all_instances',
        ),
        migrations.AddConstraint(
            model_name='meteringwaiver',
            constraint=models.UniqueConstraint(fields=('month', 'cluster', 'instance'), name='one_waiver_per_instance'),
        ),
        migrations.AddConstraint(
            model_name='meteringwaiver',
            constraint=models.UniqueConstraint(condition=models.Q(('instance', None)), fields=('month', 'cluster'), name='one_waiver_for_all_instances'),
        ),
    ]
