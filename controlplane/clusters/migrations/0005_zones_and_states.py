"""In which zones a cluster is, whether it takes new instances, and who decided so."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('clusters', '0004_absences'),
    ]

    operations = [
        migrations.AddField(
            model_name='physicalcluster',
            name='state',
            field=models.CharField(choices=[('open', 'Open'), ('cordoned', 'Cordoned'), ('draining', 'Draining'), ('retired', 'Retired')], db_default='open', default='open', max_length=16),
        ),
        migrations.AddField(
            model_name='physicalcluster',
            name='zones',
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.CreateModel(
            name='ClusterEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('actor', models.CharField(max_length=254)),
                ('action', models.CharField(max_length=32)),
                ('detail', models.JSONField(default=dict)),
                ('reason', models.TextField(blank=True, default='')),
                ('at', models.DateTimeField()),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='clusters.physicalcluster')),
            ],
            options={
                'indexes': [models.Index(fields=['cluster', 'id'], name='events_of_a_cluster')],
            },
        ),
    ]
