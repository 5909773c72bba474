import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('metering', '0012_instance_maxima'),
        ('clusters', '0004_absences'),
    ]

    operations = [
        migrations.CreateModel(
            name='ElasticJournal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('master', models.IntegerField()),
                ('http', models.CharField(max_length=200)),
                ('position', models.BigIntegerField(default=0)),
                ('active_at', models.DateTimeField()),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='clusters.physicalcluster')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('cluster', 'master'), name='elastic_journal_per_master')],
            },
        ),
        migrations.CreateModel(
            name='ElasticMinute',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('instance', models.CharField(max_length=32)),
                ('direction', models.CharField(max_length=8)),
                ('epoch', models.BigIntegerField()),
                ('minute', models.CharField(max_length=20)),
                ('bytes', models.BigIntegerField()),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('instance', 'minute', 'direction', 'epoch'), name='one_row_per_elastic_minute')],
                'indexes': [models.Index(fields=['minute'], name='elastic_minutes_by_age')],
            },
        ),
    ]
