import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0007_metering_waivers'),
        ('instances', '0005_route'),
        ('tenants', '0004_second_factor'),
    ]

    operations = [
        migrations.CreateModel(
            name='MonthCost',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('month', models.CharField(max_length=7)),
                ('currency', models.CharField(max_length=3)),
                ('so_far', models.DecimalField(decimal_places=2, max_digits=24)),
                ('forecast', models.DecimalField(decimal_places=2, max_digits=24)),
                ('counted_until', models.DateTimeField()),
                ('computed_at', models.DateTimeField()),
                ('is_final', models.BooleanField(default=False)),
                ('instance', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='instances.instance')),
                ('organisation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.organisation')),
            ],
            options={
                'indexes': [models.Index(fields=['organisation', 'month'], name='costs_of_a_month')],
                'constraints': [models.UniqueConstraint(fields=('instance', 'month'), name='one_cost_per_month')],
            },
        ),
    ]
