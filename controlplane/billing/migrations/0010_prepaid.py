import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0009_waivers_of_clusters'),
        ('instances', '0009_maintenance_window'),
        ('tenants', '0004_second_factor'),
    ]

    operations = [
        migrations.CreateModel(
            name='Prepaid',
            fields=[
                ('instance', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='+', serialize=False, to='instances.instance')),
                ('at_end', models.CharField(choices=[('expire', 'expire'), ('renew', 'renew'), ('postpaid', 'postpaid')], default='expire', max_length=16)),
                ('renew_months', models.PositiveSmallIntegerField(default=1)),
                ('is_waiting', models.BooleanField(default=False)),
                ('ends_at', models.DateTimeField(null=True)),
                ('told', models.PositiveSmallIntegerField(default=0)),
                ('organisation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.organisation')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('ends_at__isnull', False)), fields=['ends_at'], name='prepaid_ends'), models.Index(condition=models.Q(('is_waiting', True)), fields=['is_waiting'], name='prepaid_waits')],
            },
        ),
        migrations.CreateModel(
            name='PrepaidEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('kind', models.CharField(choices=[('bought', 'bought'), ('renewed', 'renewed'), ('cancelled', 'cancelled'), ('decided', 'decided'), ('five_days', 'five_days'), ('expired', 'expired'), ('postpaid', 'postpaid')], max_length=16)),
                ('months', models.PositiveSmallIntegerField(default=0)),
                ('prices', models.JSONField(null=True)),
                ('at_end', models.CharField(choices=[('expire', 'expire'), ('renew', 'renew'), ('postpaid', 'postpaid')], default='expire', max_length=16)),
                ('extends', models.DateTimeField(null=True)),
                ('operation_id', models.CharField(blank=True, default='', max_length=32)),
                ('actor', models.CharField(max_length=254)),
                ('at', models.DateTimeField()),
                ('instance', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='instances.instance')),
                ('organisation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.organisation')),
            ],
            options={
                'indexes': [models.Index(fields=['organisation', 'kind'], name='prepaid_events_by_kind')],
                'constraints': [models.UniqueConstraint(fields=('instance', 'number'), name='one_prepaid_event_per_number')],
            },
        ),
    ]
