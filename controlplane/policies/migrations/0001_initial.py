import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('instances', '0009_maintenance_window'),
        ('tenants', '0004_second_factor'),
    ]

    operations = [
        migrations.CreateModel(
            name='DiskPolicy',
            fields=[
                ('instance', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='+', serialize=False, to='instances.instance')),
                ('policy', models.CharField(default='none', max_length=16)),
                ('level_percent', models.PositiveIntegerField(default=75)),
                ('step_percent', models.PositiveIntegerField(default=10)),
                ('floor_minutes', models.PositiveIntegerField(default=60)),
                ('spare_unread', models.BooleanField(default=False)),
                ('max_storage_gib', models.FloatField(null=True)),
                ('confirm_price', models.BooleanField(default=False)),
                ('revision', models.PositiveBigIntegerField(default=1)),
                ('acts_next_at', models.DateTimeField(null=True)),
                ('expanded_by', models.CharField(blank=True, default='', max_length=32)),
                ('problem', models.TextField(blank=True, default='')),
                ('problem_at', models.DateTimeField(null=True)),
                ('told_at', models.DateTimeField(null=True)),
                ('organisation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.organisation')),
            ],
        ),
        migrations.CreateModel(
            name='ShortenedTopic',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('topic', models.CharField(max_length=249)),
                ('own_ms', models.BigIntegerField(null=True)),
                ('before_ms', models.BigIntegerField()),
                ('now_ms', models.BigIntegerField(null=True)),
                ('next_ms', models.BigIntegerField(null=True)),
                ('since', models.DateTimeField()),
                ('instance', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='instances.instance')),
                ('organisation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.organisation')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('instance', 'topic'), name='topic_shortened_once')],
            },
        ),
    ]
