import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('clusters', '0003_zookeeper_hosts'),
    ]

    operations = [
        migrations.CreateModel(
            name='BrokerAbsence',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('broker_id', models.PositiveIntegerField()),
                ('began_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='clusters.physicalcluster')),
            ],
            options={
                'indexes': [models.Index(fields=['cluster', 'began_at'], name='absences_by_beginning'), models.Index(fields=['cluster', 'ended_at'], name='absences_by_end')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('cluster', 'broker_id'), name='one_absence_at_a_time')],
            },
        ),
    ]
