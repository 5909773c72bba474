"""What each broker led, carried and held, each minute."""

from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='BrokerSample',
            fields=[
                ('pk', models.CompositePrimaryKey('cluster', 'broker', 'at', blank=True, editable=False, primary_key=True, serialize=False)),
                ('cluster', models.BigIntegerField()),
                ('broker', models.IntegerField()),
                ('at', models.BigIntegerField()),
                ('reporting', models.BooleanField()),
                ('leaders', models.IntegerField()),
                ('instances', models.IntegerField()),
                ('produce_bytes_per_s', models.BigIntegerField()),
                ('produce_allocated_bytes_per_s', models.BigIntegerField()),
                ('consume_bytes_per_s', models.BigIntegerField()),
                ('consume_allocated_bytes_per_s', models.BigIntegerField()),
                ('loop_us_per_s', models.BigIntegerField(null=True)),
                ('disk_bytes', models.BigIntegerField(null=True)),
                ('behind', models.IntegerField(null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['at'], name='broker_samples_by_moment')],
            },
        ),
    ]
