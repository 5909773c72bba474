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
            name='TopicNote',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('topic_id', models.CharField(max_length=32)),
                ('name', models.CharField(max_length=249)),
                ('text', models.TextField(blank=True, default='')),
                ('tags', models.JSONField(default=list)),
                ('updated_at', models.DateTimeField()),
                ('instance', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='instances.instance')),
                ('organisation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.organisation')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('instance', 'topic_id'), name='one_note_of_a_topic')],
            },
        ),
    ]
