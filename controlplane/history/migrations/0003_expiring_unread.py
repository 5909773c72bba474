from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('history', '0002_lag_of_groups'),
    ]

    operations = [
        migrations.CreateModel(
            name='ExpiringUnread',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('instance', models.CharField(max_length=32)),
                ('digest', models.CharField(max_length=32)),
                ('group', models.CharField(max_length=1000)),
                ('topic', models.CharField(max_length=249)),
                ('messages', models.BigIntegerField()),
                ('expires_at', models.DateTimeField()),
                ('began_at', models.DateTimeField()),
                ('seen_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['instance', 'began_at'], name='expiring_by_beginning'), models.Index(fields=['instance', 'ended_at'], name='expiring_by_end'), models.Index(fields=['ended_at'], name='expiring_that_ended')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('instance', 'digest'), name='one_expiry_at_a_time')],
            },
        ),
    ]
