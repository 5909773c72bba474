"""Changes of size that are to be made later."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('admission', '0001_rooms_and_caps'),
        ('instances', '0007_isolation'),
        ('tenants', '0004_second_factor'),
    ]

    operations = [
        migrations.CreateModel(
            name='ScheduledChange',
            fields=[
                ('id', models.CharField(max_length=20, primary_key=True, serialize=False)),
                ('actor', models.CharField(max_length=254)),
                ('changes', models.JSONField()),
                ('accept_full_storage', models.BooleanField(default=False)),
                ('confirm_price', models.BooleanField(default=False)),
                ('at', models.DateTimeField()),
                (
                    'state',
                    models.CharField(
                        choices=[
                            ('waiting', 'Waiting'),
                            ('begun', 'Begun'),
                            ('refused', 'Refused'),
                            ('cancelled', 'Cancelled'),
                        ],
                        default='waiting',
                        max_length=16,
                    ),
                ),
                ('operation_id', models.CharField(blank=True, default='', max_length=32)),
                ('problem', models.TextField(blank=True, default='')),
                ('created_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
                (
                    'instance',
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name='+', to='instances.instance'
                    ),
                ),
                (
                    'organisation',
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.organisation'
                    ),
                ),
            ],
            options={
                'indexes': [
                    models.Index(fields=['state', 'at'], name='changes_due'),
                    models.Index(fields=['instance', 'created_at'], name='changes_of_an_instance'),
                ],
            },
        ),
    ]
