"""Rebalancing that begins by itself: when, and why a proposal was made."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('clusters', '0005_zones_and_states'),
        ('rebalancing', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='rebalance',
            name='cause',
            field=models.TextField(blank=True, default=''),
        ),
        migrations.CreateModel(
            name='BalanceRule',
            fields=[
                ('cluster', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='+', serialize=False, to='clusters.physicalcluster')),
                ('mode', models.CharField(choices=[('off', 'Off'), ('propose', 'Propose'), ('carry_out', 'Carry Out')], default='off', max_length=16)),
                ('new_brokers', models.BooleanField(default=True)),
                ('skew_percent', models.PositiveIntegerField(default=50, null=True)),
                ('lasting_minutes', models.PositiveIntegerField(default=30)),
                ('rest_hours', models.PositiveIntegerField(default=6)),
                ('in_windows', models.BooleanField(default=False)),
                ('throttle_bytes_per_s', models.BigIntegerField(default=52428800)),
                ('at_once', models.PositiveIntegerField(default=20)),
                ('changed_by', models.CharField(blank=True, default='', max_length=254)),
                ('changed_at', models.DateTimeField(null=True)),
                ('waiting_for', models.CharField(blank=True, default='', max_length=16)),
                ('waiting_since', models.DateTimeField(null=True)),
            ],
        ),
    ]
